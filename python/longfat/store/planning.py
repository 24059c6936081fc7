"""The trials of a run that have no record yet, in memory that grows with the cells, not with the trials."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import overload

import numpy as np

from longfat.results.run import Cell
from longfat.results.trial import CellKeys, Digests, Trial
from longfat.store.present import Present
from longfat.store.shard import Shard
from longfat.study.combinations import Cells
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


_Ints = np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass(frozen=True, eq=False)
class CellGroups(LazySequence[CellTrials]):
    """The trials of different cells, by the numbers of the cells; each is made when it is read."""

    cells: Sequence[Cell]
    seed: int
    digests: Digests
    """The keys of all cells."""
    of_cells: _Ints
    """The numbers of the cells with trials."""
    shares: Callable[[int], Numbers]
    """The numbers of the trials of one of `of_cells`, by its place there."""
    lengths: _Ints
    """How many trials these have."""
    places: _Ints
    """The places in `of_cells` of the groups in this sequence."""

    def __len__(self) -> int:
        return len(self.places)

    def at(self, number: int) -> CellTrials:
        """Returns the trials of one cell."""
        place = int(self.places[number])
        cell = int(self.of_cells[place])
        return CellTrials(self.cells, cell, self.seed, self.digests[cell].tobytes().hex(), self.shares(place))

    def taken(self, mask: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> CellGroups:
        """Returns the groups that a mask selects."""
        return replace(self, places=self.places[mask])

    @property
    def counts(self) -> _Ints:
        """The number of trials of each group."""
        return self.lengths[self.places]

    @property
    def numbers(self) -> _Ints:
        """The number of the cell of each group."""
        return self.of_cells[self.places]


class PlannedTrials(LazySequence[Trial]):
    """Trials of several cells."""

    def __init__(self, groups: CellGroups) -> None:
        self.groups = groups.taken(groups.counts > 0)
        self._ends = np.cumsum(self.groups.counts)

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
        worlds = _worlds(self.groups.cells, self.groups.numbers)
        return PlannedTrials(self.groups.taken(np.array([one == world for one in worlds], bool)))

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
    if len(counts) != len(cells):
        raise ValueError(f"{len(counts)} counts for {len(cells)} cells")
    digests = CellKeys(seed, version).of_all(cells)
    firsts, counted = _shared(digests, np.asarray(counts, np.int64))
    before = np.cumsum(counted) - counted
    known: dict[int, Numbers] = {}

    def share(place: int) -> range:
        count = int(counted[place])
        return range(count) if shard is None else shard.share(count, int(before[place]))

    def missing(place: int) -> Numbers:
        return known[place] if place in known else share(place)

    lengths = counted.copy()
    if shard is not None:
        lengths[:] = [len(share(place)) for place in range(len(firsts))]
    shared = lengths.copy()
    for place in range(len(firsts)) if present else ():
        key = digests[firsts[place]].tobytes().hex()
        if key in present:
            known[place] = present.missing(key, share(place))
            lengths[place] = len(known[place])
    found = dict.fromkeys(_worlds(cells, np.arange(len(cells))), 0)
    if known:
        for world, count in zip(_worlds(cells, firsts), (shared - lengths).tolist(), strict=True):
            found[world] += count
    groups = CellGroups(cells, seed, digests, firsts, missing, lengths, np.arange(len(firsts)))
    return Plan(PlannedTrials(groups), found)


def _shared(digests: Digests, counts: _Ints) -> tuple[_Ints, _Ints]:
    """Returns the first cell of each key, in order, and the largest count of the cells with that key."""
    halves = digests.copy().view(np.uint64)
    order = np.lexsort((halves[:, 0], halves[:, 1]))
    if not len(order):
        return order, counts
    is_other = np.any(halves[order][1:] != halves[order][:-1], axis=1)
    starts = np.flatnonzero(np.concatenate([[True], is_other]))
    most = np.maximum.reduceat(counts[order], starts)
    # The sort is stable, so the first cell of a key is at its start.
    firsts = order[starts]
    turn = np.argsort(firsts, kind="stable")
    return firsts[turn], most[turn]


def _worlds(cells: Sequence[Cell], numbers: _Ints) -> Iterator[str]:
    """Yields the worlds of cells."""
    if isinstance(cells, Cells):
        return (cells.world(number) for number in numbers.tolist())
    return (cells[number].world for number in numbers.tolist())
