"""Existence of BPF objects in the kernel by number (`bpf(2)`)."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct

_BPF_CALL = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "ppc64le": 361, "s390x": 351}
_MAP_GET_FD_BY_ID, _LINK_GET_FD_BY_ID = 14, 30

_libc = ctypes.CDLL(None, use_errno=True)


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
