"""Groups waiting trials into calls of an executor."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

from longfat.runner.planning import PlannedTrials
from longfat.runner.trial import Trial


class Batches:
    """The waiting trials of all cells.

    Cells take turns, so that an interrupted run has about as many trials of each. With `longest_first`, the
    cells with the longest trials come first once their duration is known, so that none is left for the end.
    """

    def __init__(self, trials: PlannedTrials, most: int, *, longest_first: bool = False) -> None:
        self._groups = {id(group.cell): group for group in trials.groups}
        self._next = dict.fromkeys(self._groups, 0)
        self._turns = deque(self._groups)
        self._most = most
        self._seconds: dict[int, float] = {}
        self._longest_first = longest_first

    def next(self, span: float) -> list[Trial]:
        """Returns the next trials of one cell, which take `span` s in all: one until their duration is known.

        The list is empty at the end.
        """
        if not self._turns:
            return []
        cell = self._next_cell()
        group, first = self._groups[cell], self._next[cell]
        seconds = self._seconds.get(cell)
        count = 1 if seconds is None else int(span / max(seconds, 1e-6))
        last = min(first + min(max(count, 1), self._most), len(group.numbers))
        self._next[cell] = last
        if last < len(group.numbers):
            self._turns.append(cell)
        return group.trials(first, last)

    def _next_cell(self) -> int:
        if not self._longest_first:
            return self._turns.popleft()
        cell = max(self._turns, key=lambda one: self._seconds.get(one, math.inf))
        self._turns.remove(cell)
        return cell

    def measured(self, trials: Sequence[Trial], seconds: float) -> None:
        """Notes the duration of a call with these trials."""
        self._seconds[id(trials[0].cell)] = seconds / len(trials)
