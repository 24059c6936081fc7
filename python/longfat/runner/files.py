"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

TEMPORARY = ".tmp"
"""Suffix of a file that is still being written; what is left of one after a kill is removed."""


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file beside its place, syncs it and renames it there. Raises OSError, leaving nothing torn."""
    temporary = path.with_name(f".{path.name}{TEMPORARY}")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        # The reader knows the file by its name, not by the one it has while it is written.
        raise OSError(error.errno, error.strerror, str(path)) from None


def _sync_folder(folder: Path) -> None:
    """Makes a rename last through a power cut, where the system can (a folder is no file on Windows)."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove_temporaries(folder: Path) -> None:
    """Removes what a killed process left half-written."""
    for leftover in folder.glob(f".*{TEMPORARY}"):
        leftover.unlink(missing_ok=True)
