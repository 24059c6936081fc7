"""What a run gives back: cells, intervals, verdicts. Plain frozen data, with no logic of its own.

A *cell* is one world, one protocol and one point of the sweep; its *trials* differ in nothing but their
number, from which (with the study's seed) every random stream is derived. Trial 3 of one cell and trial 3
of another therefore met the same losses: differences between cells may be taken trial by trial (paired).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from longfat.study.cell import Cell as Cell  # noqa: PLC0414 - offered here too

if TYPE_CHECKING:
    import polars

    from longfat.runner.loading import Flows
    from longfat.study import Study

VerdictWord = Literal["holds", "fails", "undecided"]


@dataclass(frozen=True)
class Interval:
    """An estimate and its 95 % confidence interval, in the metric's base unit (bit/s, s, packets).

    An unknown bound is NaN: a single trial has no interval.

    >>> Interval(10.0, 9.0, 11.0).relative_half_width
    0.1
    """

    value: float
    low: float
    high: float

    @property
    def mean(self) -> float:
        """The value; the estimate for the trials of a cell is their mean."""
        return self.value

    @property
    def relative_half_width(self) -> float:
        """Half the interval's width over the value; NaN if it is unknown or the value is 0."""
        return self.half_width / abs(self.value) if self.value != 0 else math.nan

    @property
    def half_width(self) -> float:
        """Half the interval's width; NaN if it is unknown."""
        return (self.high - self.low) / 2

    def to_json(self) -> dict[str, float | None]:
        """Value and bounds; null for an unknown bound."""
        return {key: known(getattr(self, key)) for key in ("value", "low", "high")}


@dataclass(frozen=True, repr=False)
class CellResult:
    """What the trials of one cell measured.

    `n` counts the trials that succeeded, `failures` the others by their error. `samples` holds each
    metric's values of the successful trials in trial order, `trials` their numbers: pair two cells on these.
    Samples are read, and intervals computed, when they are first used. `deterministic` tells whether several
    trials gave exactly the same values: nothing that they did was random.
    """

    cell: Cell
    n: int
    failures: dict[str, int]
    metrics: MutableMapping[str, Interval]
    samples: MutableMapping[str, list[float]]
    trials: list[int] = field(default_factory=list)
    deterministic: bool = False

    def __repr__(self) -> str:
        about = {"n": self.n, "failures": self.failures} if self.failures else {"n": self.n}
        told = ", ".join(f"{key}={value!r}" for key, value in about.items())
        place = ", ".join([repr(self.cell.world), repr(self.cell.protocol), repr(self.cell.params)])
        return f"CellResult({place}, {told}, {len(self.samples)} metrics)"


@dataclass(frozen=True)
class Verdict:
    """A claim held against the measurement in one world, with the numbers in `detail`."""

    id: str
    text: str
    verdict: VerdictWord
    detail: str
    world: str


@dataclass(frozen=True, repr=False)
class RunResult:
    """One run of a study.

    `study` is the study as run, with every `--set` applied. `records` has one row a trial and cell, sorted by
    cell, then trial: `cell` (index into the cells as planned), `world`, `protocol`, one text column a swept
    key, `trial`, `seed`, `error` (null where the trial succeeded), and one Float64 column a metric (null
    where it did not), named with its unit as in `goodput_bps`; one of a single host as in `goodput_bps@s1`.
    `flows` reads one row a flow of a trial, in the same order: the columns that say which trial it is,
    then what the trial says of the flow; None where no trial told of its flows.
    """

    study: Study
    folder: Path
    cells: list[CellResult]
    claims: list[Verdict]
    environment: dict[str, Any]
    quick: bool = False
    records: polars.DataFrame | None = field(default=None, repr=False, compare=False)
    flows: Flows | None = field(default=None, repr=False, compare=False)

    def __repr__(self) -> str:
        trials = sum(cell.n + sum(cell.failures.values()) for cell in self.cells)
        counts = f"{len(self.cells)} cells, {trials} trials, {len(self.claims)} claims"
        return f"RunResult({self.study.name!r}, {counts}, folder={str(self.folder)!r})"

    @property
    def swept(self) -> dict[str, list[Any]]:
        """All values of each swept key, as the study writes them."""
        from longfat.study.sweep import values

        return {key: values(listed) for key, listed in self.study.sweep.items()}

    def to_polars(self) -> polars.DataFrame:
        """Returns one row a trial: its place in the study, the swept keys, `measured`, `error`, the metrics.

        Names have underscores (`path_loss`, `goodput_bps_s1`). A swept quantity is a number in s, bit/s, B or
        a share of 1, and `path_loss_label` holds the study's own text ("1%"); what is no quantity is text.
        `measured` is false for a trial that failed. CSV holds every column.

        Raises ValueError for a result that was built without records.
        """
        from longfat.frames import trials_frame

        if self.records is None:
            raise ValueError("this result was built without its records: load the run's folder")
        return trials_frame(self, self.records)

    def flows_to_polars(self) -> polars.DataFrame:
        """Returns one row a flow: its trial's place in the study, the swept keys, then the flow itself.

        Names and quantities are those of `to_polars`; `measured` is false for flows of the traffic, and
        `path_bytes_1` is what the first path carried.

        Raises ValueError where no trial has records of its flows.
        """
        from longfat.frames import flows_frame

        if self.flows is None:
            raise ValueError("no trial of this run told of its flows")
        return flows_frame(self.flows.read().drop("cell"), self)

    @property
    def report(self) -> Path:
        """Where the run's report lies (`report.html` in the run's folder)."""
        return self.folder / "report.html"

    def to_json(self) -> dict[str, Any]:
        """The document that `longfat run --json` prints.

        A cell's `params` are the swept keys and values as the study writes them, its `values` the same under
        the names and in the units of `to_polars`. An unknown bound (one trial has no interval) is null.
        """
        swept = self.swept
        document: dict[str, Any] = {
            "study": self.study.name,
            "run": str(self.folder),
            "cells": [_cell_json(result, swept) for result in self.cells],
            "claims": [
                {"id": c.id, "text": c.text, "world": c.world, "verdict": c.verdict, "detail": c.detail}
                for c in self.claims
            ],
        }
        if self.quick:
            document["quick"] = True
            document["cuts"] = self.study.cuts
        return document


def _cell_json(result: CellResult, swept: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    from longfat.frames import point

    cell: dict[str, Any] = {
        "world": result.cell.world,
        "protocol": result.cell.protocol,
        "params": result.cell.params,
        "values": point(result.cell.params, swept),
        "n": result.n,
        "metrics": {
            name: {bound: known(getattr(interval, bound)) for bound in ("mean", "low", "high")}
            for name, interval in result.metrics.items()
        },
    }
    if result.deterministic:
        cell["deterministic"] = True
    if result.failures:
        cell["failures"] = result.failures
    return cell


def known(value: float) -> float | None:
    """A number for JSON: None for NaN and infinity."""
    return value if math.isfinite(value) else None
