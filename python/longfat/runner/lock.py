"""One run a folder: a lock that the system releases when its holder dies, however it dies."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import BinaryIO

NAME = ".lock"


class FolderBusyError(ValueError):
    """Another process is running a study in this folder."""


def acquire(folder: Path) -> BinaryIO:
    """Locks a folder for as long as the returned file stays open.

    Raises FolderBusyError, naming the process, where another one holds it, and OSError where it cannot be
    written.
    """
    file = (folder / NAME).open("a+b")
    try:
        _lock(file)
    except OSError:
        file.seek(0)
        holder = file.read(20).decode("ascii", "replace").strip()
        file.close()
        who = f" (process {holder})" if holder.isdigit() else ""
        raise FolderBusyError(
            f"{folder}: another run is using this folder{who}: wait for it or choose --out"
        ) from None
    try:
        # Unbuffered, so that closing the file after an error writes nothing.
        file.truncate(0)
        os.write(file.fileno(), f"{os.getpid()}\n".encode())
    except OSError as error:
        file.close()
        raise OSError(error.errno, error.strerror, str(folder / NAME)) from None
    return file


def _lock(file: BinaryIO) -> None:
    if sys.platform == "win32":
        import msvcrt

        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
