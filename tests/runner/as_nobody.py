"""Runs a command as an ordinary user who may read the project: `as_nobody.py UID FOLDER... -- COMMAND...`.

A folder that is closed to other users, such as root's home, may contain the project or the interpreter.
The command gets a mount namespace in which each such folder contains only what the command needs, and in
which all users may open the TUN device, as on most systems. Requires root.
"""

from __future__ import annotations

import ctypes
import os
import stat
import sys
from pathlib import Path

CLONE_NEWNS = 0x00020000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000

TUN = Path("/dev/net/tun")

_libc = ctypes.CDLL(None, use_errno=True)


def closed(folders: list[Path]) -> dict[Path, list[Path]]:
    """Returns the outermost folders closed to other users, with the required folders below each of them."""
    found: dict[Path, list[Path]] = {}
    for folder in folders:
        for parent in reversed([folder, *folder.parents]):
            if not parent.stat().st_mode & 0o001:
                found.setdefault(parent, []).append(folder)
                break
    return found


def open_up(parent: Path, folders: list[Path]) -> None:
    """Replaces a closed folder by one that contains only these folders."""
    # The original folders stay accessible through their descriptors.
    originals = {folder: os.open(folder, os.O_PATH) for folder in folders}
    _mount("tmpfs", parent, "tmpfs", 0, b"mode=755")
    for folder, descriptor in originals.items():
        if folder == parent:
            raise OSError(f"{folder} itself is closed to other users: chmod o+x {folder}")
        folder.mkdir(parents=True, exist_ok=True)
        _mount(f"/proc/self/fd/{descriptor}", folder, None, MS_BIND | MS_REC, None)
        os.close(descriptor)


def open_device(device: Path) -> None:
    """Replaces the folder of a device by one that contains only this device, open to all users."""
    number = device.stat().st_rdev
    _mount("tmpfs", device.parent, "tmpfs", 0, b"mode=755")
    os.mknod(device, 0o666 | stat.S_IFCHR, number)


def _mount(source: str, target: Path, kind: str | None, flags: int, data: bytes | None) -> None:
    kind_bytes = kind.encode() if kind else None
    if _libc.mount(source.encode(), os.fsencode(target), kind_bytes, ctypes.c_ulong(flags), data) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(target))


def main() -> None:
    user, *words = sys.argv[1:]
    end = words.index("--")
    command = words[end + 1 :]
    os.umask(0)
    if _libc.unshare(CLONE_NEWNS) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"unshare: {os.strerror(number)}")
    _mount("none", Path("/"), None, MS_REC | MS_PRIVATE, None)
    for parent, needed in closed([Path(word) for word in words[:end]]).items():
        open_up(parent, needed)
    if TUN.exists() and TUN.stat().st_mode & 0o006 != 0o006:
        open_device(TUN)
    os.umask(0o022)

    os.setgroups([])
    os.setgid(int(user))
    os.setuid(int(user))
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
