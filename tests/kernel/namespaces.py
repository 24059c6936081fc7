"""Network namespaces, TUN devices and BPF numbers, asked of the kernel without any tool."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import pickle
import platform
import socket
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

ROOT = Path(__file__).parents[2]

CLONE_NEWNET = 0x40000000
_SIOCSIFFLAGS, _SIOCSIFADDR, _SIOCSIFNETMASK = 0x8914, 0x8916, 0x891C
_TUNSETIFF = 0x400454CA
_IFF_UP, _IFF_TUN, _IFF_NO_PI = 0x1, 0x1, 0x1000
_BPF_CALL = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "ppc64le": 361, "s390x": 351}
_MAP_GET_FD_BY_ID, _LINK_GET_FD_BY_ID = 14, 30

_libc = ctypes.CDLL(None, use_errno=True)


def enter_new_namespace() -> None:
    """This thread has a network of its own from here on, in which only `lo` exists, and that is up."""
    if _libc.unshare(CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"unshare: {os.strerror(number)}")
    _up("lo")


def tun(name: str, address: str) -> int:
    """A TUN device of this thread's namespace with an address out of its /24; its descriptor."""
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    fcntl.ioctl(descriptor, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _IFF_TUN | _IFF_NO_PI))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for call, value in ((_SIOCSIFADDR, address), (_SIOCSIFNETMASK, "255.255.255.0")):
            place = struct.pack("HH4s8x", socket.AF_INET, 0, socket.inet_aton(value))
            fcntl.ioctl(control, call, struct.pack("16s16s8x", name.encode(), place))
    _up(name)
    return descriptor


def _up(name: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sH22x", name.encode(), _IFF_UP))


def in_namespace(work: Callable[..., T], *arguments: object) -> T:
    """What `work` gives in a process that has a network of its own; OSError where that is not allowed."""
    # A fresh interpreter: the threads of this one would not survive a fork.
    done = subprocess.run(
        [sys.executable, "-m", __name__],
        input=pickle.dumps((work, arguments)),
        stdout=subprocess.PIPE,
        cwd=ROOT,
        check=True,
    )
    result, error = pickle.loads(done.stdout)
    if error is not None:
        raise error
    given: T = result
    return given


def link_exists(number: int) -> bool:
    """Whether the kernel has a BPF link with this number."""
    return _exists(_LINK_GET_FD_BY_ID, number)


def map_exists(number: int) -> bool:
    """Whether the kernel has a BPF map with this number."""
    return _exists(_MAP_GET_FD_BY_ID, number)


def _exists(command: int, number: int) -> bool:
    attributes = ctypes.create_string_buffer(struct.pack("I124x", number))
    descriptor = _libc.syscall(_BPF_CALL[platform.machine()], command, attributes, len(attributes.raw) - 1)
    if descriptor >= 0:
        os.close(descriptor)
        return True
    if ctypes.get_errno() != errno.ENOENT:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return False


if __name__ == "__main__":
    given, failed = None, None
    try:
        enter_new_namespace()
        work, arguments = pickle.load(sys.stdin.buffer)
        given = work(*arguments)
    except (OSError, AssertionError) as error:
        failed = error
    sys.stdout.buffer.write(pickle.dumps((given, failed)))
