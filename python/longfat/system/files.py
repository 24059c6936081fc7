"""Atomic writing of files."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from longfat.system.remote_path import Location, RemotePath

T = TypeVar("T")

TEMPORARY = ".tmp"
"""Suffix of a file during writing. A later run removes such files of killed processes."""


def write_whole(path: Location, content: bytes) -> None:
    """Writes a temporary file, syncs it and renames it to `path`.

    Raises OSError without leaving a partial file. Writes to a device, a pipe or a URL directly.
    """
    if isinstance(path, RemotePath) or is_special(path):
        path.write_bytes(content)
    else:
        _publish(
            path, lambda temporary: temporary.write_bytes(content), lambda temporary: temporary.replace(path)
        )


def produce_whole(path: Path, produce: Callable[[Path], T]) -> T:
    """Writes a file like `write_whole` by calling `produce` with the path to write; returns its result."""
    if is_special(path):
        return produce(path)
    return _publish(path, produce, lambda temporary: temporary.replace(path))


def create_whole(path: Location, content: bytes) -> bool:
    """Writes a file like `write_whole` unless it exists; returns whether it did."""
    if isinstance(path, RemotePath):
        return path.create_bytes(content)
    try:
        _publish(
            path, lambda temporary: temporary.write_bytes(content), lambda temporary: _link(temporary, path)
        )
    except FileExistsError:
        return False
    return True


def _publish(path: Path, produce: Callable[[Path], T], publish: Callable[[Path], object]) -> T:
    # Several processes may write the same file.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(3)}{TEMPORARY}")
    try:
        produced = produce(temporary)
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        publish(temporary)
        _sync_folder(path.parent)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            # Report the final name instead of the temporary one.
            if error.errno is None:
                raise OSError(str(error).replace(str(temporary), str(path))) from None
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise
    return produced


def _link(temporary: Path, path: Path) -> None:
    """Gives a file its name unless the name is taken: FileExistsError."""
    try:
        path.hardlink_to(temporary)
    except FileExistsError:
        raise
    except OSError:
        # Some filesystems have no links.
        if path.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
        temporary.replace(path)
    else:
        temporary.unlink()


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
