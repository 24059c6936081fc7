"""Groups waiting trials into calls of an executor."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from longfat.runner.trial import Trial

SECONDS_PER_CALL = 0.05
"""Duration of a call with several trials: far above the cost of a call, and short for progress and Ctrl-C."""


class Batches:
    """The waiting trials of all cells, which take turns.

    An interrupted run therefore has about as many trials of each cell.
    """

    def __init__(self, trials: Iterable[Trial], most: int) -> None:
        self._waiting: dict[int, deque[Trial]] = {}
        for trial in trials:
            self._waiting.setdefault(id(trial.cell), deque()).append(trial)
        self._turns = deque(self._waiting)
        self._most = most
        self._seconds: dict[int, float] = {}

    def next(self) -> list[Trial]:
        """Returns the next trials, all of one cell: one until their duration is known; empty at the end."""
        if not self._turns:
            return []
        cell = self._turns.popleft()
        waiting = self._waiting[cell]
        seconds = self._seconds.get(cell)
        count = 1 if seconds is None else int(SECONDS_PER_CALL / max(seconds, 1e-6))
        found = [waiting.popleft() for _ in range(min(max(count, 1), self._most, len(waiting)))]
        if waiting:
            self._turns.append(cell)
        return found

    def measured(self, trials: Sequence[Trial], seconds: float) -> None:
        """Notes the duration of a call with these trials."""
        self._seconds[id(trials[0].cell)] = seconds / len(trials)
