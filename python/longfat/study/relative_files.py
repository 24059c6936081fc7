"""File names in studies, which refer to the study file's folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from longfat.named_classes import CLASS_KEYS, anchored, is_class

TRACE = "trace"
"""The key of a link that names a file with a recorded rate."""


def anchored_files(value: Any, folder: Path) -> Any:
    """Returns a value in which the names of traces and of controllers' files are absolute."""
    return with_names(value, lambda trace: str(folder / trace), lambda name: anchored(name, folder))


def with_names(value: Any, trace: Callable[[str], Any], cls: Callable[[str], Any], key: str = "") -> Any:
    """Returns a value in which `trace` replaces the names of traces, and `cls` those of Python classes."""
    if isinstance(value, list):
        return [with_names(entry, trace, cls, key) for entry in value]
    if isinstance(value, dict):
        return {
            inner: with_names(entry, trace, cls, inner.rpartition(".")[2]) for inner, entry in value.items()
        }
    if key == TRACE and isinstance(value, str):
        return trace(value)
    return cls(value) if key in CLASS_KEYS and is_class(value) else value
