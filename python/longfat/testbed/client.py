"""The other side: one command at a host of a testbed that another process holds."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import pty
import select
import signal
import socket
import struct
import sys
import termios
import tty
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from longfat.testbed import directory

_CHUNK = 65536
_DRAIN_S = 0.2
_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
LOST = 1
"""The exit code where the testbed has ended under the command."""


def execute(name: str, host: str, command: list[str]) -> int:
    """Runs a command with this process's standard streams; at a terminal it gets one of its own.

    Gives its exit code; ValueError where the testbed or the host is not there.
    """
    options: dict[str, Any] = {
        "command": command,
        "directory": str(Path.cwd()),
        "environment": dict(os.environ),
        "terminal": "none",
    }
    with directory.connect(name) as connection:
        request = {"do": "exec", "host": host, "options": options}
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            _send(connection, request, (0, 1, 2))
            return _wait(connection)
        options["terminal"] = "given"
        ours, theirs = pty.openpty()
        _copy_size(ours)
        _send(connection, request, (theirs, theirs, theirs))
        os.close(theirs)
        try:
            return _relay(connection, ours)
        finally:
            os.close(ours)


def _send(connection: socket.socket, request: dict[str, Any], streams: tuple[int, int, int]) -> None:
    socket.send_fds(connection, [json.dumps(request).encode()], streams)


def _outcome(connection: socket.socket) -> int:
    try:
        told = directory.receive(connection)
    except OSError:
        print("longfat: the testbed has ended, and the command with it", file=sys.stderr)
        return LOST
    if "error" in told:
        print(f"longfat: {told['error']}", file=sys.stderr)
    return int(told.get("code", LOST))


def _wait(connection: socket.socket) -> int:
    """Waits for the command's end; signals are the command's."""

    def pass_on(number: int, _frame: object) -> None:
        with contextlib.suppress(OSError):
            connection.send(json.dumps({"signal": number}).encode())

    before = {number: signal.signal(number, pass_on) for number in _PASSED_ON}
    try:
        return _outcome(connection)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _relay(connection: socket.socket, ours: int) -> int:
    """Moves bytes between this terminal and the command's until the command ends."""
    before = signal.signal(signal.SIGWINCH, lambda _number, _frame: _copy_size(ours))
    try:
        with _raw():
            sources = [0, ours, connection.fileno()]
            while True:
                ready, _, _ = select.select(sources, [], [])
                if ours in ready and not _copy(ours, 1):
                    sources.remove(ours)
                if 0 in ready and not _copy(0, ours):
                    sources.remove(0)
                if connection.fileno() in ready:
                    while select.select([ours], [], [], _DRAIN_S)[0] and _copy(ours, 1):
                        pass
                    break
    finally:
        signal.signal(signal.SIGWINCH, before)
    return _outcome(connection)


def _copy(source: int, target: int) -> bool:
    """Moves what is there; False at the end, which a terminal tells as an error (`pty(7)`)."""
    try:
        data = os.read(source, _CHUNK)
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        return False
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(target, rest) :]
        except OSError as error:
            # The command has ended: what is typed now is nobody's.
            if error.errno != errno.EIO:
                raise
            return bool(data)
    return bool(data)


@contextlib.contextmanager
def _raw() -> Iterator[None]:
    """Keys go to the command as they are, Ctrl-C as well."""
    before = termios.tcgetattr(0)
    tty.setraw(0, termios.TCSADRAIN)  # what was typed ahead is kept
    try:
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)


def _copy_size(terminal: int) -> None:
    with contextlib.suppress(OSError):
        size = fcntl.ioctl(0, termios.TIOCGWINSZ, struct.pack("4H", 0, 0, 0, 0))
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, size)
