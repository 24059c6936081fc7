"""Processes of commands at hosts."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time

NOT_FOUND = 127
NOT_EXECUTABLE = 126
_TIMEOUT_S = 0.7


def code_of(error: OSError) -> int:
    """Returns the exit code of shells for a command that cannot be started."""
    return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE


def why(error: OSError) -> str:
    """Returns why a command cannot be started, as one line.

    >>> why(FileNotFoundError(2, "No such file or directory", "pign"))
    'pign: no such command'
    """
    if isinstance(error, FileNotFoundError):
        return f"{error.filename}: no such command"
    if isinstance(error, PermissionError) and error.filename:
        return f"{error.filename}: permission denied"
    return str(error)


def code_from(status: int) -> int:
    """Returns the exit code of shells for a wait status: 128 plus the number of a fatal signal.

    >>> code_from(0x0300), code_from(9)
    (3, 137)
    """
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else code


def signal_group(pid: int, number: int) -> None:
    """Sends a signal to the process group of a command, if it exists."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def end(pid: int) -> int:
    """Stops a command, after 0.7 s by SIGKILL, and returns its exit code."""
    signal_group(pid, signal.SIGHUP)
    signal_group(pid, signal.SIGTERM)
    deadline = time.monotonic() + _TIMEOUT_S
    handle = os.pidfd_open(pid)
    try:
        while not select.select([handle], [], [], max(0.0, deadline - time.monotonic()))[0]:
            signal_group(pid, signal.SIGKILL)
            deadline = time.monotonic() + _TIMEOUT_S
    finally:
        os.close(handle)
    return code_from(os.waitpid(pid, 0)[1])
