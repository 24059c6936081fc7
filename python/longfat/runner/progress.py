"""Progress of a run's trials."""

from __future__ import annotations

import time

from longfat.system.progress import Display, Silent, clock

_KEY = "trials"


class Reporter:
    """Shows the progress of a run, one world after the other; called from the runner's one thread."""

    def __init__(self, display: Display | None = None) -> None:
        self._display: Display = display or Silent()
        self._world = ""
        self._todo = self._done = self._failed = self._present = 0
        self._started = 0.0

    def start(self, world: str, todo: int, present: int, seconds: float | None = None) -> None:
        """Starts a world with `todo` trials to run in about `seconds`; `present` ones are in the store."""
        self._world, self._todo, self._done, self._failed, self._present = world, todo, 0, 0, present
        self._started = time.monotonic()
        found = f", {present} already there" if present else ""
        about = f", about {clock(seconds)}" if seconds is not None else ""
        self.note(f"{world}: {todo} {'trial' if todo == 1 else 'trials'} to run{found}{about}")

    def advance(self, ended: int, failed: int) -> None:
        """Counts trials that ended, and those of them that failed."""
        self._done += ended
        self._failed += failed
        # Trials of all cells take turns, so those ahead take as long as those before.
        left = (time.monotonic() - self._started) / self._done * (self._todo - self._done)
        self._display.show(_KEY, f"{self._counts()}, {clock(left)} left", self._part())

    def finish(self) -> None:
        """Reports the end of the world's trials, complete or not."""
        if self._todo:
            self._display.remove(_KEY)
            self.note(f"{self._counts()} in {clock(time.monotonic() - self._started)}")
            self._todo = 0

    def note(self, text: str) -> None:
        """Prints a line that stays."""
        self._display.note(text)

    def _part(self) -> float:
        return (self._present + self._done) / (self._present + self._todo)

    def _counts(self) -> str:
        failed = f", {self._failed} failed" if self._failed else ""
        done, all_trials = self._present + self._done, self._present + self._todo
        return f"{self._world}: {done} of {all_trials} trials{failed}"
