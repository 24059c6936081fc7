"""File names in studies, which refer to the study file's folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from longfat.named_classes import CLASS_KEYS, anchored, is_class

TRACE = "trace"
"""The key of a link that names a file with a recorded rate."""


def anchored_files(value: Any, folder: Path, key: str = "") -> Any:
    """Returns a value in which the names of traces and of controllers' files are absolute."""
    if isinstance(value, list):
        return [anchored_files(entry, folder, key) for entry in value]
    if isinstance(value, dict):
        return {
            inner: anchored_files(entry, folder, inner.rpartition(".")[2]) for inner, entry in value.items()
        }
    if key == TRACE and isinstance(value, str):
        return str(folder / value)
    return anchored(value, folder) if key in CLASS_KEYS and is_class(value) else value
