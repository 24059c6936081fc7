"""A process with all that it starts: its memory, and its end."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")
_KILL_S = 2.0
"""Longest time in s that `kill` waits for the end of the processes."""
_PAUSE_S = 0.01


class Entry(NamedTuple):
    """A running process; `start` distinguishes processes with the same number."""

    pid: int
    parent: int
    group: int
    start: str
    resident: int
    """Resident memory in bytes."""


class Processes:
    """The running processes of this machine. Several trees share a look at them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: list[Entry] = []
        self._time = -math.inf

    def now(self, age: float) -> list[Entry]:
        """Returns the processes, from a look of at most this age in s."""
        with self._lock:
            if time.monotonic() - self._time >= age:
                self._seen, self._time = list(processes()), time.monotonic()
            return self._seen


class ProcessTree:
    """A process that leads its own group, and its descendants.

    Descendants with their own session and without their parent belong to it if a look has seen them, or,
    on Linux at the end, if they have the process's mark, an environment variable (`NAME=VALUE`).
    """

    def __init__(self, process: subprocess.Popen[bytes], mark: str, listed: Processes) -> None:
        self._process = process
        self._mark = mark.encode()
        self._listed = listed
        self._seen: set[tuple[int, str]] = set()

    def memory(self, age: float) -> int:
        """Returns the resident memory of all processes, in bytes, from a look of at most this age in s.

        Shared pages count once per process.
        """
        return sum(entry.resident for entry in self._entries(age))

    def kill(self) -> None:
        """Kills all processes, and waits up to 2 s for their end."""
        self._entries()  # the children of the processes that the next line kills lose their parent
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        deadline = time.monotonic() + _KILL_S
        while (entries := self._entries(marked=True)) and time.monotonic() < deadline:
            for entry in entries:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(entry.pid, signal.SIGKILL)
            time.sleep(_PAUSE_S)

    def _entries(self, age: float = 0.0, *, marked: bool = False) -> list[Entry]:
        """Looks for the processes of this tree, with `marked` also by their environment."""
        running = self._listed.now(age)
        found = {
            entry.pid: entry
            for entry in running
            if self._process.pid in (entry.pid, entry.group)
            or (entry.pid, entry.start) in self._seen
            or (marked and self._has_mark(entry.pid))
        }
        count = -1
        while count < len(found):
            count = len(found)
            found |= {entry.pid: entry for entry in running if entry.parent in found}
        self._seen |= {(entry.pid, entry.start) for entry in found.values()}
        return list(found.values())

    def _has_mark(self, pid: int) -> bool:
        try:
            return self._mark in (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
        except OSError:  # it has ended, belongs to another user, or the system has no /proc
            return False


def processes() -> Iterator[Entry]:
    """Yields the running processes of this machine."""
    return _from_proc() if (_PROC / "self" / "stat").exists() else from_ps()


def _from_proc() -> Iterator[Entry]:
    page = os.sysconf("SC_PAGE_SIZE")
    for folder in _PROC.iterdir():
        if not folder.name.isdigit():
            continue
        try:
            text = (folder / "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:  # it has ended
            continue
        # The name before the last parenthesis can contain anything; see proc(5).
        state, *fields = text.rpartition(")")[2].split()
        if state not in "ZX":
            yield Entry(int(folder.name), int(fields[0]), int(fields[1]), fields[18], int(fields[20]) * page)


def from_ps() -> Iterator[Entry]:
    """Yields the running processes from `ps` of POSIX, for systems without /proc."""
    columns = [
        argument
        for name in ("pid", "ppid", "pgid", "rss", "stat", "lstart")
        for argument in ("-o", f"{name}=")
    ]
    listed = subprocess.run(["/bin/ps", "-A", *columns], capture_output=True, text=True, check=True)
    for line in listed.stdout.splitlines():
        pid, parent, group, kilobytes, state, start = line.split(maxsplit=5)
        if not state.startswith("Z"):
            yield Entry(int(pid), int(parent), int(group), start.strip(), int(kilobytes) * 1024)
