"""Atomic writing of files."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

TEMPORARY = ".tmp"
"""Suffix of a file during writing. A later run removes such files of killed processes."""


def write_whole(path: Path, content: bytes) -> None:
    """Writes a temporary file, syncs it and renames it to `path`.

    Raises OSError without leaving a partial file. Writes to a device or pipe directly.
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
            # Report the final name instead of the temporary one.
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise


def is_special(path: Path) -> bool:
    """Returns whether a path is a device, a pipe or a folder, which a new file must not replace.

    >>> is_special(Path("/dev/null")), is_special(Path("no such file"))
    (True, False)
    """
    return path.exists() and not path.is_file()


def _sync_folder(folder: Path) -> None:
    """Makes a rename survive a power failure, on POSIX systems."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove_temporaries(folder: Path) -> None:
    """Removes temporary files of killed processes."""
    for leftover in folder.glob(f".*{TEMPORARY}"):
        leftover.unlink(missing_ok=True)
