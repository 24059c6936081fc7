"""The records of a study's trials, read from the parts of its folder by columns.

A run may have millions of trials. In memory are one byte for each, and some columns: those that are read
again are read from the parts.
"""

from __future__ import annotations

from array import array
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
import polars as pl
from polars import selectors

from longfat.store import parts

CACHE = 8 << 20
"""Size in B of the columns that stay in memory."""
Frames = Callable[[parts.Wanted], Iterator[pl.DataFrame]]
"""Reads the wanted columns of all parts."""
Values = np.ndarray[tuple[int], np.dtype[np.float64]]

NONE, MEASURED, FAILED = 0, 1, 2


class Derived(Protocol):
    """A metric that is computed from others, trial by trial."""

    @property
    def column(self) -> str:
        """The name of its column."""

    @property
    def inputs(self) -> Sequence[str]:
        """The columns of the others."""

    def added_to(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Returns a frame with its column."""


class Table:
    """The records of the first `counts` trials of each cell. Cells with equal keys share their records.

    `keys` are those of the cells, `counts` their numbers of trials, `derived` the metrics that are computed
    from others, by column.
    """

    def __init__(
        self,
        frames: Frames,
        keys: Sequence[str],
        counts: Sequence[int],
        derived: Mapping[str, Derived] = MappingProxyType({}),
    ) -> None:
        self._derived = derived
        self._frames = _with_derived(frames, derived) if derived else frames
        slots = {key: slot for slot, key in enumerate(dict.fromkeys(keys))}
        self._slot = [slots[key] for key in keys]
        self._counts = list(counts)
        limits = np.zeros(len(slots), np.int64)
        np.maximum.at(limits, self._slot, counts)
        self._slots = pl.DataFrame(
            {"cell_key": list(slots), "slot": range(len(slots)), "limit": limits},
            schema={"cell_key": pl.String, "slot": pl.Int64, "limit": pl.Int64},
        )
        self._states: list[np.ndarray[tuple[int], np.dtype[np.uint8]]] = [np.zeros(0, np.uint8)] * len(slots)
        self._failures: list[Counter[str]] = [Counter() for _ in slots]
        self._varying: list[dict[str, bool]] = [{} for _ in slots]
        self._missing: list[set[str]] = [set() for _ in slots]
        self._positive: list[set[str]] = [set() for _ in slots]
        self._columns: OrderedDict[str, Values] = OrderedDict()
        self._metrics: dict[str, None] = {}
        self._starts = np.zeros(1, int)
        self._scan()

    @property
    def metrics(self) -> list[str]:
        """The names of all metrics, sorted: in the parts, their order depends on the first trial."""
        return sorted(self._metrics)

    @property
    def height(self) -> int:
        """The number of trials with a record."""
        return sum(int(np.count_nonzero(self._state(cell))) for cell in range(len(self._slot)))

    def trials(self, cell: int) -> Sequence[int]:
        """Returns the numbers of a cell's successful trials."""
        numbers = np.flatnonzero(self._state(cell) == MEASURED)
        if len(numbers) and numbers[-1] == len(numbers) - 1:
            return range(len(numbers))
        return array("Q", numbers.astype(np.uint64).tobytes())

    def failures(self, cell: int) -> dict[str, int]:
        """Returns the number of a cell's failed trials by error, sorted by the error's text."""
        return dict(sorted(self._failures[self._slot[cell]].items()))

    def varying(self, cell: int) -> Mapping[str, bool]:
        """Returns the metrics with a value in a cell, and whether its trials have different ones."""
        return self._varying[self._slot[cell]]

    def missing(self, cell: int) -> Collection[str]:
        """Returns the metrics without a value in some successful trial of a cell."""
        return self._missing[self._slot[cell]]

    def inputs(self, metric: str) -> Sequence[str]:
        """Returns the metrics from which a derived metric is computed; none for others."""
        return self._derived[metric].inputs if metric in self._derived else ()

    def positive(self, cell: int) -> Collection[str]:
        """Returns the metrics above 0 in some successful trial of a cell."""
        return self._positive[self._slot[cell]]

    def values(self, cell: int, metric: str) -> Values:
        """Returns the values of a cell's successful trials; NaN for a trial without one."""
        state = self._state(cell)
        start = self._starts[self._slot[cell]]
        found: Values = self._column(metric)[start : start + len(state)][state == MEASURED]
        return found

    def index(self, cells: Sequence[int] | None = None) -> pl.DataFrame:
        """Returns one row for each trial with a record: `cell` (its number), `trial` and `cell_key`."""
        found = []
        for cell in range(len(self._slot)) if cells is None else cells:
            numbers = np.flatnonzero(self._state(cell))
            key = self._slots["cell_key"][self._slot[cell]]
            found.append(
                pl.DataFrame({"trial": numbers.astype(np.int64)}).select(
                    pl.lit(cell, pl.Int64).alias("cell"), "trial", pl.lit(key).alias("cell_key")
                )
            )
        return pl.concat(found)

    def measured(self) -> pl.DataFrame:
        """Returns one row for each trial with a record: `cell`, `trial`, `error` and all metrics."""
        found = self.index()
        rows = [self._rows(frame) for frame in self._frames(_is_measured)]
        if not rows:
            return found.drop("cell_key").with_columns(error=pl.lit(None, pl.String))
        records = parts.once(pl.concat(rows, how="diagonal_relaxed"))
        return found.join(records, on=parts.IDENTITY, how="left", maintain_order="left").select(
            "cell", "trial", "error", *self.metrics
        )

    def _state(self, cell: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
        return self._states[self._slot[cell]][: self._counts[cell]]

    def _rows(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Returns the rows of the study's trials with their `slot`."""
        known = frame.join(self._slots, on="cell_key", how="inner", maintain_order="left")
        return known.filter(pl.col("trial") < pl.col("limit")).drop("limit")

    def _scan(self) -> None:
        """Reads all parts once; keeps the records of a small run."""
        kept: list[pl.DataFrame] | None = []
        size = 0
        found: list[pl.DataFrame] = []
        for frame in self._frames(_is_measured):
            rows = self._rows(frame)
            metrics = [
                name for name, of in frame.schema.items() if name not in parts.COLUMNS and of.is_numeric()
            ]
            self._metrics |= dict.fromkeys(metrics)
            self._note(rows)
            found.append(_ranges(rows, metrics))
            if len(found) > MERGE:
                found = [_merged(found)]
            size += rows.height * len(metrics) * 8
            kept = None if kept is None or size > CACHE else [*kept, rows.select(*_PLACE, *metrics)]
        self._vary(found)
        self._starts = np.concatenate([[0], np.cumsum([len(states) for states in self._states])]).astype(int)
        if kept:
            whole = pl.concat(kept, how="diagonal_relaxed")
            for name in self.metrics:
                self._columns[name] = self._filled(name, [whole])

    def _note(self, rows: pl.DataFrame) -> None:
        """Notes which trials have a record, and counts the errors of new ones."""
        for (key,), some in rows.select(*_PLACE, "error").group_by("slot"):
            slot = int(str(key))
            numbers = some["trial"].to_numpy()
            self._states[slot] = states = _longer(self._states[slot], int(numbers.max()) + 1)
            failed = some["error"].is_not_null().to_numpy()
            if failed.any():
                fresh = some.filter(pl.Series(failed & (states[numbers] == NONE)))
                self._failures[slot].update(fresh["error"].to_list())
            states[numbers] = np.where(failed, FAILED, MEASURED)

    def _vary(self, found: list[pl.DataFrame]) -> None:
        if not found:
            return
        for row in _merged(found).iter_rows(named=True):
            for name in self.metrics:
                if row["rows"] > (row.get(f"{name} known") or 0):
                    self._missing[row["slot"]].add(name)
                if (row.get(f"{name} high") or 0) > 0:
                    self._positive[row["slot"]].add(name)
                if row.get(f"{name} finite"):
                    some = row["rows"] > row[f"{name} known"] or row[f"{name} low"] != row[f"{name} high"]
                    self._varying[row["slot"]][name] = some

    def _column(self, metric: str) -> Values:
        if metric not in self._columns:
            columns = {*parts.IDENTITY, metric}
            frames = (self._rows(frame) for frame in self._frames(columns.__contains__))
            self._columns[metric] = self._filled(metric, frames)
            while len(self._columns) > 1 and sum(one.nbytes for one in self._columns.values()) > CACHE:
                self._columns.popitem(last=False)
        self._columns.move_to_end(metric)
        return self._columns[metric]

    def _filled(self, metric: str, frames: Any) -> Values:
        """Returns the values of a metric, slot by slot in the order of trials."""
        found = np.full(self._starts[-1], np.nan)
        sizes = np.diff(self._starts)
        for frame in frames:
            if metric not in frame.columns:
                continue
            slots, numbers = frame["slot"].to_numpy(), frame["trial"].to_numpy()
            # Another process may have added trials meanwhile.
            inside = numbers < sizes[slots]
            values = frame[metric].cast(pl.Float64).fill_null(np.nan).to_numpy()
            found[(self._starts[slots] + numbers)[inside]] = values[inside]
        return found


def _with_derived(frames: Frames, derived: Mapping[str, Derived]) -> Frames:
    """Returns a function that reads parts with their derived metrics."""

    def read(wanted: parts.Wanted) -> Iterator[pl.DataFrame]:
        chosen = [one for name, one in derived.items() if wanted(name)]
        inputs = {name for one in chosen for name in one.inputs}
        for frame in frames(lambda name: wanted(name) or name in inputs):
            names = [name for name in frame.columns if wanted(name)]
            whole = frame
            for one in chosen:
                whole = one.added_to(whole)
            yield whole.select(*names, *(one.column for one in chosen))

    return read


def _is_measured(column: str) -> bool:
    return column not in parts.COLUMNS or column in (*parts.IDENTITY, "error")


_PLACE = ("slot", "trial")
MERGE = 16
"""Number of parts after which their ranges are merged."""


def _longer(
    states: np.ndarray[tuple[int], np.dtype[np.uint8]], size: int
) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    if len(states) >= size:
        return states
    return np.concatenate([states, np.zeros(size - len(states), np.uint8)])


def _ranges(rows: pl.DataFrame, metrics: Sequence[str]) -> pl.DataFrame:
    """Returns the ranges of all metrics for each slot, over successful trials."""
    return (
        rows.filter(pl.col("error").is_null())
        .group_by("slot")
        .agg(
            pl.len().alias("rows"),
            *(pl.col(name).is_finite().any().alias(f"{name} finite") for name in metrics),
            *(pl.col(name).count().alias(f"{name} known") for name in metrics),
            *(pl.col(name).min().alias(f"{name} low") for name in metrics),
            *(pl.col(name).max().alias(f"{name} high") for name in metrics),
        )
    )


def _merged(found: Sequence[pl.DataFrame]) -> pl.DataFrame:
    whole = pl.concat(found, how="diagonal_relaxed")
    return whole.group_by("slot").agg(
        pl.col("rows").sum(),
        selectors.ends_with(" finite").any(),
        selectors.ends_with(" known").sum(),
        selectors.ends_with(" low").min(),
        selectors.ends_with(" high").max(),
    )
