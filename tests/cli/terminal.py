"""`longfat` at a terminal, and a command there that Ctrl-C is for."""

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
    """A command of `longfat` at a terminal of its own. What it starts as the user's shell is plain sh."""

    def __init__(self, *arguments: object, folder: Path | None = None) -> None:
        self._ended = False
        self._unread = ""
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            # Tests that run in the background ignore Ctrl-C, and what they start would too.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            if folder is not None:
                os.chdir(folder)
            os.environ.update(SHELL="/bin/sh", PS1="> ", TERM="dumb")
            line = command(*arguments)
            os.execv(line[0], line)

    def type(self, text: str) -> None:
        os.write(self.terminal, text.encode())

    def until(self, words: str) -> str:
        """What it shows until these words; what follows them is left for the next call."""
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
        """Waits for its end; gives the exit code."""
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self._ended = True
        return code

    def close(self) -> None:
        """Ends it in any case."""
        if not self._ended:
            os.kill(self.pid, signal.SIGKILL)
            self.end()
        os.close(self.terminal)


class Sleep:
    """A command that does nothing for long, and can be distinguished from others of its kind.

    Ctrl-C is for it once it runs: a shell forgets the signal that comes while it starts a command.
    """

    def __init__(self) -> None:
        self._time_s = f"100.{uuid.uuid4().int % 10**9}"

    def __str__(self) -> str:
        return f"sleep {self._time_s}"

    def runs(self) -> bool:
        return runs("sleep", self._time_s)

    def wait(self) -> None:
        """Until it runs."""
        wait_until(self.runs)
