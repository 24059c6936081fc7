"""`longfat` at a terminal, and a command to interrupt with Ctrl-C."""

from __future__ import annotations

import os
import pty
import select
import signal
import time
import uuid
from pathlib import Path

from tests.conftest import command
from tests.waiting import PATIENCE_S, runs, wait_until


class Terminal:
    """A `longfat` command at a new terminal. The user's shell is sh."""

    def __init__(self, *arguments: object, folder: Path | None = None) -> None:
        self._ended = False
        self._unread = ""
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            if folder is not None:
                os.chdir(folder)
            os.environ.update(SHELL="/bin/sh", PS1="> ", TERM="dumb")
            line = command(*arguments)
            os.execv(line[0], line)

    def type(self, text: str) -> None:
        os.write(self.terminal, text.encode())

    def read_until(self, words: str) -> str:
        """Returns the output up to these words; the next call continues after them."""
        shown, end = self._unread, time.monotonic() + PATIENCE_S
        while words not in shown:
            assert time.monotonic() < end, shown
            if select.select([self.terminal], [], [], 0.1)[0]:
                try:
                    shown += os.read(self.terminal, 65536).decode(errors="replace")
                except OSError:  # the other end is closed
                    assert words in shown, shown
        before, _, self._unread = shown.partition(words)
        return before + words

    def end(self) -> int:
        """Waits for the command to exit; returns the exit code."""
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self._ended = True
        return code

    def close(self) -> None:
        """Kills the command if it still runs, and closes the terminal."""
        if not self._ended:
            os.kill(self.pid, signal.SIGKILL)
            self.end()
        os.close(self.terminal)


class Sleep:
    """A long sleep with a unique command line.

    It receives Ctrl-C once it runs: a shell drops the signal while it starts a command.
    """

    def __init__(self) -> None:
        self._time_s = f"100.{uuid.uuid4().int % 10**9}"

    def __str__(self) -> str:
        return f"sleep {self._time_s}"

    def runs(self) -> bool:
        return runs("sleep", self._time_s)

    def wait(self) -> None:
        """Waits read_until the command runs."""
        wait_until(self.runs)
