"""How far transfers of files are, on standard error: bars at a terminal, now and then a line elsewhere."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from longfat.runner.progress import LINE_EVERY_S, clock

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import TaskID

_SPEED_OVER_S = 3.0


class Transfers(Protocol):
    """Told how far transfers are. A transfer is known by any key; sizes are in bytes."""

    def begin(self, key: str, name: str, total: int, done: int) -> None:
        """A transfer begins, with so much of it there already."""

    def advance(self, key: str, done: int, name: str | None = None) -> None:
        """So much is there; `name` is that of the file at hand, where it changes."""

    def end(self, key: str) -> None:
        """A transfer is over, whatever became of it."""

    def note(self, text: str) -> None:
        """A line to read."""

    def close(self) -> None:
        """All is over."""


@dataclass
class _Line:
    name: str
    total: int
    said: float = field(default_factory=time.monotonic)
    done_then: int = 0


class Lines:
    """Plain lines, for logs: one every few seconds for each transfer."""

    def __init__(self) -> None:
        self._transfers: dict[str, _Line] = {}

    def begin(self, key: str, name: str, total: int, done: int) -> None:
        """Remembers it."""
        self._transfers[key] = _Line(name, total, done_then=done)

    def advance(self, key: str, done: int, name: str | None = None) -> None:
        """Says how far it is, if it has not for a while."""
        line = self._transfers.get(key)
        if line is None:
            return
        line.name = name or line.name
        now = time.monotonic()
        if now - line.said < LINE_EVERY_S:
            return
        rate = max(0, done - line.done_then) / (now - line.said)
        left = f"{clock((line.total - done) / rate)} left" if rate else "nothing moves"
        self.note(f"{line.name}: {size(done)} of {size(line.total)}, {size(rate)}/s, {left}")
        line.said, line.done_then = now, done

    def end(self, key: str) -> None:
        """Forgets it."""
        self._transfers.pop(key, None)

    def note(self, text: str) -> None:
        """A line on standard error."""
        print(text, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Nothing."""


class Bars:
    """A bar for each transfer, with rate and time left, at a terminal."""

    def __init__(self, console: Console) -> None:
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )
        from rich.table import Column

        self._console = console
        self._tasks: dict[str, TaskID] = {}
        self._progress = Progress(
            TextColumn(
                "{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis")
            ),
            BarColumn(bar_width=20),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=console,
            speed_estimate_period=_SPEED_OVER_S,
            transient=True,
        )

    def begin(self, key: str, name: str, total: int, done: int) -> None:
        """Adds its bar."""
        self.end(key)
        self._tasks[key] = self._progress.add_task(name, total=total, completed=done)
        self._progress.start()

    def advance(self, key: str, done: int, name: str | None = None) -> None:
        """Moves its bar."""
        task = self._tasks.get(key)
        if task is not None:
            self._progress.update(task, completed=done, description=name)

    def end(self, key: str) -> None:
        """Takes its bar away, and the display with the last one."""
        task = self._tasks.pop(key, None)
        if task is not None:
            self._progress.remove_task(task)
        if not self._tasks:
            self._progress.stop()

    def note(self, text: str) -> None:
        """A line above the bars."""
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def close(self) -> None:
        """Takes all bars away."""
        for key in list(self._tasks):
            self.end(key)


def transfers() -> Transfers:
    """The display for this process's standard error."""
    if not sys.stderr.isatty():
        return Lines()
    from rich.console import Console

    return Bars(Console(stderr=True))


def size(count: float) -> str:
    """Bytes to read.

    >>> size(12), size(1857353), size(0)
    ('12 B', '1.86 MB', '0 B')
    """
    from longfat.presentation.formatting import quantity

    return quantity(count, "B") if count >= 1000 else f"{round(count)} B"


def shown(name: str) -> str:
    r"""The name of a file as it may be shown: what cannot be seen, or would change the display, is replaced.

    >>> shown("notes.txt"), shown("a\x1b[2Jb\n") == "a\N{REPLACEMENT CHARACTER}[2Jb\N{REPLACEMENT CHARACTER}"
    ('notes.txt', True)
    """
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name)


def files(count: int) -> str:
    """So many files.

    >>> files(1), files(2)
    ('1 file', '2 files')
    """
    return f"{count} file" if count == 1 else f"{count} files"
