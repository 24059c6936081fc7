"""The trials of a run that have no record yet, in memory that grows with the cells, not with the trials."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import overload

import numpy as np

from longfat.results.run import Cell
from longfat.results.trial import CellKeys, Trial
from longfat.store.present import Present
from longfat.store.shard import Shard
from longfat.system.lazy_sequence import LazySequence

Numbers = range | np.ndarray[tuple[int], np.dtype[np.uint32]]
"""Numbers of trials: a range, or single numbers in a run that is resumed."""


@dataclass(frozen=True, eq=False, slots=True)
class CellTrials(Sequence[Trial]):
    """Trials of one of some cells, by their numbers, which exist only while they are used."""

    cells: Sequence[Cell]
    at: int
    seed: int
    cell_key: str
    numbers: Numbers

    @property
    def cell(self) -> Cell:
        """The cell."""
        return self.cells[self.at]

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, place: int) -> Trial: ...
    @overload
    def __getitem__(self, place: slice) -> CellTrials: ...
    def __getitem__(self, place: int | slice) -> Trial | CellTrials:
        """Returns one trial, or some of them."""
        if isinstance(place, slice):
            return replace(self, numbers=self.numbers[place])
        return Trial(self.cell_key, self.cell, int(self.numbers[place]), self.seed)


class PlannedTrials(LazySequence[Trial]):
    """Trials of several cells."""

    def __init__(self, groups: Iterable[CellTrials]) -> None:
        self.groups = [group for group in groups if len(group)]
        self._ends = np.cumsum([len(group) for group in self.groups])

    def __len__(self) -> int:
        return int(self._ends[-1]) if self.groups else 0

    def __iter__(self) -> Iterator[Trial]:
        for group in self.groups:
            yield from group

    def at(self, number: int) -> Trial:
        """Returns one trial, counted cell by cell."""
        group = int(np.searchsorted(self._ends, number, side="right"))
        start = int(self._ends[group - 1]) if group else 0
        return self.groups[group][number - start]

    def of_world(self, world: str) -> PlannedTrials:
        """Returns the trials of one world."""
        return PlannedTrials(group for group in self.groups if group.cell.world == world)

    def firsts(self) -> Iterator[Trial]:
        """Yields the first trial of each cell."""
        for group in self.groups:
            yield group[0]


@dataclass(frozen=True)
class Plan:
    """The trials that a run needs: `missing` ones, and the number of `present` ones of each world."""

    missing: PlannedTrials
    present: dict[str, int]


def plan(
    cells: Sequence[Cell],
    counts: Sequence[int],
    seed: int,
    version: str,
    present: Present,
    shard: Shard | None = None,
) -> Plan:
    """Returns the first `counts` trials of each cell, with a shard only its share of them.

    Cells with equal specifications share their trials.
    """
    keys = CellKeys(seed, version)
    shared: dict[str, tuple[str, int, int]] = {}
    found: dict[str, int] = {}
    for at, (cell, count) in enumerate(zip(cells, counts, strict=True)):
        key = keys.of(cell)
        _, first, known = shared.get(key, ("", at, 0))
        shared[key] = (cell.world, first, max(count, known))
        found.setdefault(cell.world, 0)
    groups = []
    before = 0
    for key, (world, first, count) in shared.items():
        share = range(count) if shard is None else shard.share(count, before)
        before += count
        numbers = present.missing(key, share)
        found[world] += len(share) - len(numbers)
        groups.append(CellTrials(cells, first, seed, key, numbers))
    return Plan(PlannedTrials(groups), found)
