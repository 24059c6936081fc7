"""Connections over Linux's MPTCP that say how much they will send.

    import longfat as lf

    with lf.mptcp.connect(("192.0.2.1", 80), size=50_000) as connection:
        connection.sendall(data)

A path manager in user space (`longfat mptcp`, or one in this process) then decides over which paths: a short
transfer takes the one of the least round-trip time, a long one all.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import socket
import struct
import threading
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from longfat import _native
from longfat.local_sockets import is_trusted, peer

__all__ = ["MptcpWarning", "Subflow", "connect", "status", "subflows", "token"]

NAME: Final = "longfat/mptcp"
"""Where the machine's path manager is asked: an abstract Unix socket of the network namespace."""
_PROTOCOL: Final = 262
_SOL_MPTCP: Final = 284
_INFO: Final = 1
_TOKEN: Final = struct.Struct("12xI")
_PATIENCE_S: Final = 5.0


class MptcpWarning(UserWarning):
    """A connection is not what was asked for: plain TCP, or one whose paths the kernel chooses."""


class _NoManagerError(Exception):
    """Nobody decides about paths here."""


@dataclass(frozen=True)
class Subflow:
    """A subflow of a connection, as it stands now."""

    local: str
    """This host's address."""
    remote: str
    """The peer's address."""
    rtt_ms: float
    """The smoothed round-trip time in milliseconds."""
    bytes_sent: int
    """Payload bytes sent, again or not."""
    bytes_received: int
    """Payload bytes received."""
    retransmissions: int
    """Segments sent again."""


def connect(
    address: tuple[str, int],
    size: int | None = None,
    *,
    timeout: float | None = None,
    policy: str | dict[str, Any] = "fsfs",
) -> socket.socket:
    """Connects by MPTCP, the first subflow on the path that the path manager says.

    `size` is what will be sent, in bytes, where that is known. It asks the path manager that runs in this
    network namespace (`longfat mptcp`); where none does, this process becomes one for its own connections
    with `policy`, if it may and the kernel lets user space decide. Else a MptcpWarning says what the
    connection is: MPTCP whose paths the kernel chooses, or plain TCP. No setting of the system is changed.

    OSError where the peer cannot be reached, ValueError for a size below zero.

    It begins to send like any other socket; further subflows join by themselves. Shut it down for writing
    only when all is sent: Linux lets no subflow join after that.
    """
    if size is not None and size < 0:
        raise ValueError(f"size: {size} is out of range: at least 0")
    family, _, _, _, to = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[0]
    support = _native.mptcp_support()
    if support in {"missing", "disabled"}:
        remedy = {
            "missing": "the kernel has no MPTCP",
            "disabled": "MPTCP is switched off here (sysctl net.mptcp.enabled=1)",
        }
        _warn(f"{remedy[support]}: this is plain TCP")
        return _open(family, to, None, timeout, protocol=0)
    try:
        name = _manager(support, policy)
        answer = _ask(name, {"open": {"to": to[0], "size": size}})["opening"]
    except _NoManagerError as error:
        _warn(f"{error}: the kernel chooses the paths")
        return _open(family, to, None, timeout)
    connection = _open(family, to, answer["from"], timeout)
    number = token(connection)
    if number is None:
        _warn(f"{to[0]} does not speak MPTCP: this is plain TCP")
        return connection
    try:
        _ask(name, {"begin": {"opening": answer["opening"], "token": number, "port": to[1]}})
    except _NoManagerError as error:
        _warn(f"{error}: the kernel chooses the paths")
    return connection


def token(connection: socket.socket) -> int | None:
    """What names a connection to the kernel; None where it is plain TCP."""
    try:
        found: tuple[int] = _TOKEN.unpack(connection.getsockopt(_SOL_MPTCP, _INFO, _TOKEN.size))
    except OSError:
        return None
    return found[0]


def subflows(connection: socket.socket) -> list[Subflow]:
    """The open subflows of a connection; none where it is plain TCP."""
    text = _native.mptcp_subflows(connection.fileno())
    return [Subflow(**subflow) for subflow in json.loads(text)["subflows"]] if text else []


def status() -> dict[str, Any]:
    """What the path manager of this network namespace knows: its `peers` with their paths, and `connections`.

    OSError where none runs, or where it belongs to another user or serves others only.
    """
    try:
        found: dict[str, Any] = _ask(NAME, {"status": {}})["status"]
    except _NoManagerError as error:
        raise OSError(str(error)) from None
    return found


def _warn(message: str) -> None:
    warnings.warn(message, MptcpWarning, stacklevel=3)


def _open(
    family: int, to: Any, source: str | None, timeout: float | None, protocol: int = _PROTOCOL
) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM, protocol)
    try:
        made.settimeout(timeout)
        if source is not None:
            made.bind((source, 0))
        made.connect(to)
    except BaseException:
        made.close()
        raise
    return made


def _ask(name: str, request: dict[str, Any]) -> dict[str, Any]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asked:
        asked.settimeout(_PATIENCE_S)
        try:
            asked.connect(f"\0{name}")
            _verify(name, asked)
            # A manager that refuses this user closes the connection, and its reason can still be read.
            with contextlib.suppress(BrokenPipeError):
                asked.sendall(json.dumps(request).encode() + b"\n")
            with asked.makefile("rb") as lines:
                reply: dict[str, Any] = json.loads(lines.readline() or b"{}")
        except OSError as error:
            raise _NoManagerError(
                f"no path manager answers here (longfat mptcp): {error.strerror or error}"
            ) from None
    if "error" in reply or not reply:
        raise _NoManagerError(str(reply.get("error", "the path manager has ended")))
    return reply


def _verify(name: str, connected: socket.socket) -> None:
    """Raises _NoManagerError where the server is another user's: anybody can take an abstract name first."""
    _, user = peer(connected)
    if not is_trusted(user):
        raise _NoManagerError(f"@{name} belongs to user {user}, who is neither root nor this user")


def _runs(name: str) -> bool:
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asked:
            asked.connect(f"\0{name}")
            _verify(name, asked)
    except (OSError, _NoManagerError):
        return False
    return True


class _Own:
    """The path manager of this process for its own connections, in a thread."""

    def __init__(self, name: str, policy: str | dict[str, Any]) -> None:
        self.name = name
        self._stop = False
        self._policy = json.dumps(policy)
        self._ready = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="longfat-mptcp", daemon=True)
        self._thread.start()
        self._ready.wait(_PATIENCE_S)
        if self._error is not None:
            raise self._error
        atexit.register(self.close)

    def _run(self) -> None:
        try:
            _native.manage_paths(self._policy, self.name, self._tell, requested_only=True)
        except (OSError, ValueError) as error:
            self._error = error
        finally:
            self._ready.set()

    def _tell(self, told: str | None) -> bool:
        if told is not None:
            self._ready.set()
        return not self._stop

    def close(self) -> None:
        """Ends the thread."""
        self._stop = True
        self._thread.join(_PATIENCE_S)


_own: dict[str, _Own] = {}
_guard = threading.Lock()


def _manager(support: str, policy: str | dict[str, Any]) -> str:
    """Where to ask: at the machine's path manager, or else at this process's own."""
    if _runs(NAME):
        return NAME
    if support != "user":
        raise _NoManagerError("no path manager runs here (longfat mptcp --set-sysctl)")
    # One for each namespace and policy.
    space = Path("/proc/thread-self/ns/net").stat().st_ino
    key = f"{NAME}/{os.getpid()}/{space}/{json.dumps(policy)}"
    with _guard:
        if key not in _own:
            try:
                _own[key] = _Own(f"{NAME}/{os.getpid()}/{space}/{len(_own)}", policy)
            except OSError as error:
                raise _NoManagerError(str(error)) from None
        return _own[key].name
