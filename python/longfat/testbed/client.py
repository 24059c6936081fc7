"""Runs a command at a host of another process's testbed."""

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
"""Exit code if the testbed stops before the command."""


def execute(name: str, host: str, command: list[str]) -> int:
    """Runs a command with this process's standard streams, or a terminal if they are one.

    Returns its exit code. Raises ValueError for an unknown testbed or host.
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
            return _run(connection, request)
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
        answer = directory.receive(connection)
    except OSError:
        print("longfat: the testbed stopped, and the command with it", file=sys.stderr)
        return LOST
    if "error" in answer:
        print(f"longfat: {answer['error']}", file=sys.stderr)
    return int(answer.get("code", LOST))


def _run(connection: socket.socket, request: dict[str, Any]) -> int:
    """Starts the command with this process's streams, waits for it, and passes signals to it."""

    def pass_on(number: int, _frame: object) -> None:
        with contextlib.suppress(OSError):
            connection.send(json.dumps({"signal": number}).encode())

    # The command may print, and its user react, before a handler set afterwards would be in place.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)
    try:
        _send(connection, request, (0, 1, 2))
        before = {number: signal.signal(number, pass_on) for number in _PASSED_ON}
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    try:
        return _outcome(connection)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _relay(connection: socket.socket, ours: int) -> int:
    """Copies bytes between this terminal and the command's until the command exits."""
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
    """Copies available bytes; False at the end, which a terminal reports as EIO (`pty(7)`)."""
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
            # The command has exited: discard what is typed now.
            if error.errno != errno.EIO:
                raise
            return bool(data)
    return bool(data)


@contextlib.contextmanager
def _raw() -> Iterator[None]:
    """Sends keys to the command unprocessed, including Ctrl-C."""
    before = termios.tcgetattr(0)
    tty.setraw(0, termios.TCSADRAIN)  # keeps what was typed ahead
    try:
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)


def _copy_size(terminal: int) -> None:
    with contextlib.suppress(OSError):
        size = fcntl.ioctl(0, termios.TIOCGWINSZ, struct.pack("4H", 0, 0, 0, 0))
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, size)
