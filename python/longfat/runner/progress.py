"""How far a run is, on standard error: a bar at a terminal, now and then a line elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

LINE_EVERY_S = 5.0


class Reporter(Protocol):
    """Told of a run's progress by the runner, from its one thread."""

    def start(self, world: str, todo: int, present: int, seconds: float | None = None) -> None:
        """A world begins: so many trials to do in about so many seconds, so many found in the store."""

    def advance(self, *, failed: bool) -> None:
        """One trial is done."""

    def note(self, text: str) -> None:
        """Something a reader should know."""

    def finish(self) -> None:
        """The world is done, or given up."""


class Silent:
    """Says nothing: for use from Python."""

    def start(self, world: str, todo: int, present: int, seconds: float | None = None) -> None:
        """Nothing."""

    def advance(self, *, failed: bool) -> None:
        """Nothing."""

    def note(self, text: str) -> None:
        """Nothing."""

    def finish(self) -> None:
        """Nothing."""


class Lines:
    """Plain lines, for logs: one at the start and the end of a world, one every few seconds between."""

    def __init__(self) -> None:
        self._world = ""
        self._todo = self._done = self._failed = 0
        self._started = self._said = 0.0

    def start(self, world: str, todo: int, present: int, seconds: float | None = None) -> None:
        """Says what is ahead."""
        self._world, self._todo, self._done, self._failed = world, todo, 0, 0
        self._started = self._said = time.monotonic()
        found = f", {present} already there" if present else ""
        about = f", about {clock(seconds)}" if seconds is not None else ""
        self.note(f"{world}: {todo} {'trial' if todo == 1 else 'trials'} to run{found}{about}")

    def advance(self, *, failed: bool) -> None:
        """Says how far it is, if it has not for a while."""
        self._done += 1
        self._failed += failed
        now = time.monotonic()
        if now - self._said >= LINE_EVERY_S:
            self._said = now
            self.note(f"{self._progress()}, {clock(self._left(now))} left")

    def finish(self) -> None:
        """Says how it went, once."""
        if self._todo:
            self.note(f"{self._progress()} in {clock(time.monotonic() - self._started)}")
            self._todo = 0

    def note(self, text: str) -> None:
        """A line on standard error."""
        print(text, file=sys.stderr, flush=True)

    def _progress(self) -> str:
        failed = f", {self._failed} failed" if self._failed else ""
        return f"{self._world}: {self._done} of {self._todo} trials{failed}"

    def _left(self, now: float) -> float:
        # Trials of all cells come in turn, so those ahead cost what those behind did.
        return (now - self._started) / self._done * (self._todo - self._done)


class Bar:
    """A bar with the time left, at a terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._failed = 0

    def start(self, world: str, todo: int, present: int, seconds: float | None = None) -> None:
        """Shows the bar."""
        self.finish()
        if not todo:
            return
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._failed = 0
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("trials"),
            TimeRemainingColumn(elapsed_when_finished=True),
            TextColumn("{task.fields[failed]}", style="red"),
            console=self._console,
        )
        found = f" ({present} already there)" if present else ""
        about = f", about {clock(seconds)}" if seconds is not None else ""
        self._task = self._progress.add_task(f"{world}{found}{about}", total=todo, failed="")
        self._progress.start()

    def advance(self, *, failed: bool) -> None:
        """Moves the bar."""
        if self._progress is None or self._task is None:
            return
        if failed:
            self._failed += 1
            self._progress.update(self._task, failed=f"{self._failed} failed")
        self._progress.advance(self._task)

    def note(self, text: str) -> None:
        """A line above the bar."""
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def finish(self) -> None:
        """Leaves the bar as it stands."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None


def reporter() -> Reporter:
    """The reporter for this process's standard error."""
    if not sys.stderr.isatty():
        return Lines()
    from rich.console import Console

    return Bar(Console(stderr=True))


def clock(seconds: float) -> str:
    """A duration to read.

    >>> clock(0.25), clock(75), clock(7260)
    ('0.2 s', '1 min 15 s', '2 h 1 min')
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 1:
        return f"{rest} s"
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
