"""File names in studies, which refer to the study file's folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from longfat.extensions.names import CLASS_KEYS, anchored, is_class

FILE_KEYS = frozenset({"trace", "traces", "sizes_file"})
"""The keys that name files: recorded rates of links and cells, and distributions of flow sizes."""


def anchored_files(value: Any, folder: Path) -> Any:
    """Returns a value in which the names of files and of Python classes are absolute."""
    return with_names(value, lambda file: str(folder / file), lambda name: anchored(name, folder))


def with_names(value: Any, file: Callable[[str], Any], cls: Callable[[str], Any], key: str = "") -> Any:
    """Returns a value in which `file` replaces the names of files, and `cls` those of Python classes."""
    if isinstance(value, list):
        return [with_names(entry, file, cls, key) for entry in value]
    if isinstance(value, dict):
        return {
            inner: with_names(entry, file, cls, inner.rpartition(".")[2]) for inner, entry in value.items()
        }
    if key in FILE_KEYS and isinstance(value, str):
        return file(value)
    return cls(value) if key in CLASS_KEYS and is_class(value) else value
