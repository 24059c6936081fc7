"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

TEMPORARY = ".tmp"
"""Suffix of a file that is still being written; what is left of one after a kill is removed."""


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file next to its place, syncs it and renames it there.

    Raises OSError, leaving nothing half-written. A device or pipe at the place is written to, not
    replaced.
    """
    if is_special(path):
        path.write_bytes(content)
        return
    temporary = path.with_name(f".{path.name}{TEMPORARY}")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        _sync_folder(path.parent)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            # The reader knows the file by its name, not by the one it has while it is written.
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise


def is_special(path: Path) -> bool:
    """Whether there is a device, a pipe or a folder at a path: nothing that a new file may replace.

    >>> is_special(Path("/dev/null")), is_special(Path("no such file"))
    (True, False)
    """
    return path.exists() and not path.is_file()


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
