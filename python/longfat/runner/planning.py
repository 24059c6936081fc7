"""The trials of a run that have no record yet, in memory that grows with the cells and 16 bytes per trial."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from longfat.results import Cell
from longfat.runner.shard import Shard
from longfat.runner.trial import CellKeys, Trial

_Bytes = np.ndarray[tuple[int], np.dtype[np.bytes_]]
_Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]


class KeySet:
    """The keys of trials with a record, 16 bytes each."""

    def __init__(self) -> None:
        self._sorted: _Bytes = np.empty(0, "S16")
        self._added: list[bytes] = []

    def add(self, keys: Iterable[str]) -> None:
        """Adds keys in hexadecimal."""
        self._added.append(bytes.fromhex("".join(keys)))

    def has(self, digests: _Bytes) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Returns for each key whether it is in the set."""
        if self._added:
            added = np.frombuffer(b"".join(self._added), "S16")
            self._sorted = np.unique(np.concatenate([self._sorted, added]))
            self._added.clear()
        places = np.searchsorted(self._sorted, digests)
        found = np.zeros(len(digests), bool)
        inside = places < len(self._sorted)
        found[inside] = self._sorted[places[inside]] == digests[inside]
        return found


@dataclass(frozen=True)
class CellTrials:
    """Trials of one cell by their numbers."""

    cell: Cell
    seed: int
    keys: CellKeys
    numbers: _Numbers

    def trials(self, first: int, last: int) -> list[Trial]:
        """Returns some of the trials, made for this call."""
        return [
            Trial(self.keys.key(number), self.cell, number, self.seed)
            for number in self.numbers[first:last].tolist()
        ]


class PlannedTrials(Sequence[Trial]):
    """Trials of several cells, which exist only while they are used."""

    def __init__(self, groups: Iterable[CellTrials]) -> None:
        self.groups = [group for group in groups if len(group.numbers)]
        self._ends = np.cumsum([len(group.numbers) for group in self.groups])

    def __len__(self) -> int:
        return int(self._ends[-1]) if self.groups else 0

    def __iter__(self) -> Iterator[Trial]:
        for group in self.groups:
            for place in range(len(group.numbers)):
                yield from group.trials(place, place + 1)

    @overload
    def __getitem__(self, place: int) -> Trial: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Trial]: ...
    def __getitem__(self, place: int | slice) -> Trial | Sequence[Trial]:
        """Returns one trial, or a list of them, cell by cell."""
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(len(self)))]
        place = range(len(self))[place]
        group = int(np.searchsorted(self._ends, place, side="right"))
        start = int(self._ends[group - 1]) if group else 0
        return self.groups[group].trials(place - start, place - start + 1)[0]

    def of_world(self, world: str) -> PlannedTrials:
        """Returns the trials of one world."""
        return PlannedTrials(group for group in self.groups if group.cell.world == world)

    def firsts(self) -> Iterator[Trial]:
        """Yields the first trial of each cell."""
        for group in self.groups:
            yield from group.trials(0, 1)


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
    present: KeySet,
    shard: Shard | None = None,
) -> Plan:
    """Returns the first `counts` trials of each cell, with a shard only its share of them.

    Cells with equal specifications share their trials.
    """
    shared: dict[str, tuple[Cell, CellKeys, int]] = {}
    for cell, count in zip(cells, counts, strict=True):
        keys = CellKeys.of(cell, seed, version)
        identity = keys.key(0)
        known = shared.get(identity)
        if known is None or known[2] < count:
            first = cell if known is None else known[0]
            shared[identity] = (first, keys, count)
    groups, found = [], dict.fromkeys((cell.world for cell in cells), 0)
    before = 0
    for cell, keys, count in shared.values():
        numbers = np.arange(count, dtype=np.int64)
        share = numbers if shard is None else shard.share(numbers, before)
        before += count
        numbers = share[~present.has(keys.digests(count))[share]]
        found[cell.world] += len(share) - len(numbers)
        groups.append(CellTrials(cell, seed, keys, numbers))
    return Plan(PlannedTrials(groups), found)
