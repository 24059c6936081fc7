"""Connections over Linux's MPTCP that announce how much they will send.

    import longfat as lf

    with lf.mptcp.connect(("192.0.2.1", 80), size=50_000) as connection:
        connection.sendall(data)

A user-space path manager (`longfat mptcp`, or one in this process) then chooses the paths: the one with the
smallest RTT for a short transfer, all for a long one.
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
from longfat.system.local_sockets import is_trusted, peer

__all__ = ["MptcpWarning", "Subflow", "connect", "status", "subflows", "token"]

NAME: Final = "longfat/mptcp"
"""Abstract Unix socket of the machine's path manager in a network namespace."""
_PROTOCOL: Final = 262
_SOL_MPTCP: Final = 284
_INFO: Final = 1
_TOKEN: Final = struct.Struct("12xI")
_TIMEOUT_S: Final = 5.0


class MptcpWarning(UserWarning):
    """A connection is plain TCP, or the kernel chooses its paths."""


class _NoManagerError(Exception):
    """No path manager is available."""


@dataclass(frozen=True)
class Subflow:
    """The current state of a subflow."""

    local: str
    """This host's address."""
    remote: str
    """The peer's address."""
    rtt_ms: float
    """Smoothed RTT in milliseconds."""
    bytes_sent: int
    """Payload bytes sent, with retransmissions."""
    bytes_received: int
    """Payload bytes received."""
    retransmissions: int
    """Retransmitted segments."""


def connect(
    address: tuple[str, int],
    size: int | None = None,
    *,
    timeout: float | None = None,
    policy: str | dict[str, Any] = "fsfs",
) -> socket.socket:
    """Connects with MPTCP, with the first subflow on the path chosen by the path manager.

    The path manager of this network namespace (`longfat mptcp`) chooses the paths. Without one, this process
    becomes the path manager of its own connections, if the kernel permits it. Otherwise a MptcpWarning
    reports that the kernel chooses the paths, or that the connection is plain TCP. Changes no setting of
    the system.

    Further subflows join automatically. Shut the socket down for writing only after all data is sent: Linux
    admits no subflow afterwards.

    Args:
        address: Host and port.
        size: Bytes that will be sent, if known.
        timeout: Timeout of the socket in s.
        policy: Path policy of this process's own path manager.

    Raises:
        OSError: if the peer is unreachable.
        ValueError: for a negative size, and for an invalid policy.
    """
    if size is not None and size < 0:
        raise ValueError(f"size: {size} is out of range: at least 0")
    family, _, _, _, to = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[0]
    support = _native.mptcp_support()
    if support in {"missing", "disabled"}:
        remedy = {
            "missing": "the kernel has no MPTCP",
            "disabled": "MPTCP is disabled (enable it with sysctl net.mptcp.enabled=1)",
        }
        _warn(f"{remedy[support]}: this is plain TCP")
        return _open(family, to, None, timeout, protocol=0)
    try:
        name = _manager(support, policy)
        answer = _request(name, {"open": {"to": to[0], "size": size}})["opening"]
    except _NoManagerError as error:
        _warn(f"{error}: the kernel chooses the paths")
        return _open(family, to, None, timeout)
    connection = _open(family, to, answer["from"], timeout)
    number = token(connection)
    if number is None:
        _warn(f"{to[0]} does not support MPTCP: this is plain TCP")
        return connection
    try:
        _request(name, {"begin": {"opening": answer["opening"], "token": number, "port": to[1]}})
    except _NoManagerError as error:
        _warn(f"{error}: the kernel chooses the paths")
    return connection


def token(connection: socket.socket) -> int | None:
    """Returns the kernel's token of a connection; None for plain TCP."""
    try:
        found: tuple[int] = _TOKEN.unpack(connection.getsockopt(_SOL_MPTCP, _INFO, _TOKEN.size))
    except OSError:
        return None
    return found[0]


def subflows(connection: socket.socket) -> list[Subflow]:
    """Returns the open subflows of a connection; none for plain TCP."""
    text = _native.mptcp_subflows(connection.fileno())
    return [Subflow(**subflow) for subflow in json.loads(text)["subflows"]] if text else []


def status() -> dict[str, Any]:
    """Returns the state of this network namespace's path manager: `peers` with paths, and `connections`.

    Raises OSError if none runs, or if it belongs to or serves another user.
    """
    try:
        found: dict[str, Any] = _request(NAME, {"status": {}})["status"]
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


def _request(name: str, request: dict[str, Any]) -> dict[str, Any]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as manager:
        manager.settimeout(_TIMEOUT_S)
        try:
            manager.connect(f"\0{name}")
            _verify(name, manager)
            # A manager that refuses this user closes the connection; its reason can still be read.
            with contextlib.suppress(BrokenPipeError):
                manager.sendall(json.dumps(request).encode() + b"\n")
            with manager.makefile("rb") as lines:
                reply: dict[str, Any] = json.loads(lines.readline() or b"{}")
        except OSError as error:
            raise _NoManagerError(
                f"no path manager answers (start one with longfat mptcp): {error.strerror or error}"
            ) from None
    if "error" in reply or not reply:
        raise _NoManagerError(str(reply.get("error", "the path manager stopped")))
    return reply


def _verify(name: str, connected: socket.socket) -> None:
    """Raises _NoManagerError for another user's server, since any user can take an abstract name."""
    _, user = peer(connected)
    if not is_trusted(user):
        raise _NoManagerError(f"@{name} belongs to user {user}, who is neither root nor this user")


def _runs(name: str) -> bool:
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as manager:
            manager.connect(f"\0{name}")
            _verify(name, manager)
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
        self._ready.wait(_TIMEOUT_S)
        if self._error is not None:
            raise self._error
        atexit.register(self.close)

    def _run(self) -> None:
        try:
            _native.manage_paths(self._policy, self.name, self._handle, requested_only=True)
        except (OSError, ValueError) as error:
            self._error = error
        finally:
            self._ready.set()

    def _handle(self, event: str | None) -> bool:
        if event is not None:
            self._ready.set()
        return not self._stop

    def close(self) -> None:
        """Stops the thread."""
        self._stop = True
        self._thread.join(_TIMEOUT_S)


_own: dict[str, _Own] = {}
_guard = threading.Lock()


def _manager(support: str, policy: str | dict[str, Any]) -> str:
    """Returns the socket name of the machine's path manager, or of this process's own."""
    if _runs(NAME):
        return NAME
    if support != "user":
        raise _NoManagerError("no path manager runs (start one with longfat mptcp --set-sysctl)")
    # One path manager for each namespace and policy.
    space = Path("/proc/thread-self/ns/net").stat().st_ino
    key = f"{NAME}/{os.getpid()}/{space}/{json.dumps(policy)}"
    with _guard:
        if key not in _own:
            try:
                _own[key] = _Own(f"{NAME}/{os.getpid()}/{space}/{len(_own)}", policy)
            except OSError as error:
                raise _NoManagerError(str(error)) from None
        return _own[key].name
