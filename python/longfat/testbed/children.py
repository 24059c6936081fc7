"""Commands at hosts as processes: waiting for them, and ending them."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time

NOT_FOUND = 127
NOT_EXECUTABLE = 126
_PATIENCE_S = 2.0


def code_of(error: OSError) -> int:
    """The exit code by which shells tell that a command cannot be started."""
    return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE


def why(error: OSError) -> str:
    """A command that cannot be started, in one line.

    >>> why(FileNotFoundError(2, "No such file or directory", "pign"))
    'pign: no such command'
    """
    if isinstance(error, FileNotFoundError):
        return f"{error.filename}: no such command"
    if isinstance(error, PermissionError) and error.filename:
        return f"{error.filename}: may not be executed"
    return str(error)


def code_from(status: int) -> int:
    """A wait status as shells tell it: 128 and the number of the signal that ended it.

    >>> code_from(0x0300), code_from(9)
    (3, 137)
    """
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else code


def signal_group(pid: int, number: int) -> None:
    """Sends a signal to a command and what it has started, if it is there."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def end(pid: int) -> int:
    """Ends a command, by force where it does not follow; gives its exit code."""
    signal_group(pid, signal.SIGHUP)
    signal_group(pid, signal.SIGTERM)
    deadline = time.monotonic() + _PATIENCE_S
    handle = os.pidfd_open(pid)
    try:
        while not select.select([handle], [], [], max(0.0, deadline - time.monotonic()))[0]:
            signal_group(pid, signal.SIGKILL)
            deadline = time.monotonic() + _PATIENCE_S
    finally:
        os.close(handle)
    return code_from(os.waitpid(pid, 0)[1])
