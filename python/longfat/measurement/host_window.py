"""The largest TCP window that this host's limits allow."""

from __future__ import annotations

from pathlib import Path

_LIMITS = (Path("/proc/sys/net/ipv4/tcp_rmem"), Path("/proc/sys/net/ipv4/tcp_wmem"))
_DEFAULT = 4 << 20
"""Linux's default limit of the send buffer in bytes, where the system reports none."""
SHARE = 0.5
"""Part of a buffer that holds data; the rest is overhead."""


def host_window() -> int:
    """Returns half of the smaller limit of Linux's receive and send buffers, in bytes."""
    return int(SHARE * min(_limit(file) for file in _LIMITS))


def _limit(file: Path) -> int:
    try:
        return int(file.read_text("ascii").split()[2])
    except (OSError, IndexError, ValueError):
        return _DEFAULT
