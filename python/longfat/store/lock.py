"""A lock on a run's folder, which the system releases when its process ends in any way."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import BinaryIO

NAME = ".lock"
BUSY = (errno.EACCES, errno.EAGAIN)
"""The errors of a lock that another process holds."""


class FolderBusyError(ValueError):
    """Another process runs a study in this folder."""


def acquire(folder: Path, *, shared: bool = False) -> BinaryIO:
    """Locks a folder for as long as the returned file stays open; shared locks exclude only others.

    Raises FolderBusyError, with the process ID, if another process holds the lock, and OSError if the
    folder is not writable.
    """
    file = (folder / NAME).open("a+b")
    try:
        _lock(file, shared=shared)
    except OSError as error:
        if shared and error.errno not in BUSY:
            # Some network filesystems have no locks, which shards can do without.
            return file
        file.seek(0)
        holder = file.read(20).decode("ascii", "replace").strip()
        file.close()
        who = f" (process {holder})" if holder.isdigit() else ""
        raise FolderBusyError(
            f"{folder}: another run uses this folder{who}: wait for it, or choose another --out"
        ) from None
    try:
        # Unbuffered, so that closing the file after an error writes nothing.
        file.truncate(0)
        os.write(file.fileno(), f"{os.getpid()}\n".encode())
    except OSError as error:
        file.close()
        raise OSError(error.errno, error.strerror, str(folder / NAME)) from None
    return file


def _lock(file: BinaryIO, *, shared: bool) -> None:
    if sys.platform == "win32":
        import msvcrt

        if shared:
            return
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
