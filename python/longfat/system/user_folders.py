"""The user's folders for caches and settings (XDG Base Directory Specification 0.8)."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """Returns the folder of files that can be made again, which may not exist.

    Raises RuntimeError without a home folder.
    """
    return _folder("XDG_CACHE_HOME", ".cache")


def config_folder() -> Path:
    """Returns the folder of keys and settings, which may not exist.

    Raises RuntimeError without a home folder.
    """
    return _folder("XDG_CONFIG_HOME", ".config")


def _folder(variable: str, default: str) -> Path:
    base = Path(os.environ.get(variable, ""))
    # The specification ignores relative paths.
    return (base if base.is_absolute() else Path.home() / default) / "longfat"
