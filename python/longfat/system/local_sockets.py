"""Credentials of the process at the other end of a Unix socket."""

from __future__ import annotations

import os
import socket
import struct

_CREDENTIALS = struct.Struct("iII")


def peer(connection: socket.socket) -> tuple[int, int]:
    """Returns the process ID and the user ID of the peer (`SO_PEERCRED`, `unix(7)`).

    On a client's socket these are the server's credentials when it called `listen`. The process ID is 0 for a
    peer in another process-ID namespace.

    >>> near, far = socket.socketpair(socket.AF_UNIX)
    >>> peer(near) == (os.getpid(), os.getuid())
    True
    >>> near.close(), far.close()
    (None, None)
    """
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, user, _ = _CREDENTIALS.unpack(credentials)
    return int(pid), int(user)


def is_trusted(user: int) -> bool:
    """Returns whether a user may act for this process: root, or the user of this process."""
    return user in (0, os.geteuid())
