"""Credentials of the process at the other end of a Unix socket."""

from __future__ import annotations

import os
import socket
import struct

_CREDENTIALS = struct.Struct("iII")


def peer(connection: socket.socket) -> tuple[int, int]:
    """Returns the process ID and the user ID of the peer (`SO_PEERCRED`, `unix(7)`).

    Of a client's socket these are the credentials with which the server called `listen`. The process ID is 0
    for a peer in another process-ID namespace.

    >>> near, far = socket.socketpair(socket.AF_UNIX)
    >>> peer(near) == (os.getpid(), os.getuid())
    True
    >>> near.close(), far.close()
    (None, None)
    """
    told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, user, _ = _CREDENTIALS.unpack(told)
    return int(pid), int(user)


def is_trusted(user: int) -> bool:
    """Whether a user may act for this process: root and this process's own user."""
    return user in (0, os.geteuid())
