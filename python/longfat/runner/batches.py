"""Groups waiting trials into calls of an executor."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence

from longfat.results.trial import Trial
from longfat.store.planning import CellTrials, PlannedTrials

_Place = tuple[float, int, str]
"""The place of a cell in the queue: its rank, its turn among equal ranks, and its key."""
SHORTEST = 0.25
"""Duration of the last calls, as a part of the others: many short ones would occupy a scheduler."""
SPARE = 64
"""Outdated places that a queue may contain."""


class Batches:
    """The waiting trials of all cells.

    Cells take turns, so that an interrupted run has about as many trials of each. With `longest_first`, the
    cells with the longest trials come first once their duration is known, so that none is left for the end,
    and the last calls are shorter, so that all jobs end at about the same time.
    """

    def __init__(self, trials: PlannedTrials, most: int, *, longest_first: bool = False) -> None:
        self._groups = {group.cell_key: group for group in trials.groups}
        self._next = dict.fromkeys(self._groups, 0)
        self._most = most
        self._seconds: dict[str, float] = {}
        self._longest_first = longest_first
        self._unknown = len(self._groups)
        self._single = 0
        self._seconds_left = 0.0
        self._turn = 0
        self._places: dict[str, _Place] = {}
        self._waiting: list[_Place] = []
        for cell in self._groups:
            self._enqueue(cell)

    def next(self, span: float, jobs: int = 1) -> CellTrials | None:
        """Returns the next trials of one cell, which take `span` s in all: one until their duration is known.

        At the end, they take half of a job's share of the rest.

        Returns None at the end, and if more trials have to wait for the duration of those that run.
        """
        cell = self._next_cell(jobs)
        if cell is None:
            return None
        group, first = self._groups[cell], self._next[cell]
        seconds = self._seconds.get(cell)
        if self._longest_first and not self._unknown:
            span = min(span, max(self._seconds_left / (2 * jobs), SHORTEST * span))
        count = 1 if seconds is None else int(span / max(seconds, 1e-6))
        last = min(first + min(max(count, 1), self._most), len(group))
        self._next[cell] = last
        self._seconds_left -= (last - first) * (seconds or 0.0)
        self._single += seconds is None
        if last < len(group):
            self._enqueue(cell)
        return group[first:last]

    def _enqueue(self, cell: str) -> None:
        """Places a cell behind those with its rank."""
        self._turn += 1
        self._place(self._rank(cell), self._turn, cell)

    def _place(self, rank: float, turn: int, cell: str) -> None:
        place = (rank, turn, cell)
        self._places[cell] = place
        heapq.heappush(self._waiting, place)
        if len(self._waiting) > 2 * len(self._places) + SPARE:
            # Most places are outdated.
            self._waiting = sorted(self._places.values())

    def _next_cell(self, jobs: int) -> str | None:
        while self._waiting:
            place = heapq.heappop(self._waiting)
            cell = place[2]
            if self._places.get(cell) is not place:
                continue
            del self._places[cell]
            # Single trials of unknown duration occupy each job once; then `measured` enqueues their cells.
            if cell in self._seconds or not self._next[cell] or self._single < jobs:
                return cell
        return None

    def _rank(self, cell: str) -> float:
        return -self._seconds.get(cell, math.inf) if self._longest_first else 0.0

    def measured(self, trials: Sequence[Trial], seconds: float) -> None:
        """Notes the duration of a call with these trials."""
        cell = trials[0].cell_key
        known, found = self._seconds.get(cell), seconds / len(trials)
        self._unknown -= known is None
        self._seconds_left += (found - (known or 0.0)) * (len(self._groups[cell]) - self._next[cell])
        self._seconds[cell] = found
        if known is None and cell not in self._places and self._next[cell] < len(self._groups[cell]):
            self._enqueue(cell)
        if self._longest_first and (place := self._places.get(cell)) is not None:
            self._place(self._rank(cell), place[1], cell)
