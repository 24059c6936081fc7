"""What a run gives back: cells, intervals, verdicts. Plain frozen data, with no logic of its own.

A *cell* is one world, one protocol and one point of the sweep; its *trials* differ in nothing but their
number, from which (with the study's seed) every random stream is derived. Trial 3 of one cell and trial 3
of another therefore met the same losses: differences between cells may be taken trial by trial (paired).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from longfat.keys import lookup

if TYPE_CHECKING:
    import polars

    from longfat.runner.loading import Flows
    from longfat.study import Study

VerdictWord = Literal["holds", "fails", "undecided"]


@dataclass(frozen=True)
class Interval:
    """A mean and its confidence interval, in the metric's own unit (bit/s, s, packets).

    `low` and `high` are NaN where one trial alone leaves the interval unknown.

    >>> Interval(10.0, 9.0, 11.0).relative_half_width
    0.1
    """

    mean: float
    low: float
    high: float

    @property
    def relative_half_width(self) -> float:
        """Half the interval's width over the mean; NaN where it is unknown or the mean is 0."""
        if self.mean == 0:
            return math.nan
        return (self.high - self.low) / 2 / abs(self.mean)


@dataclass(frozen=True)
class Cell:
    """One world, one protocol, one point of the sweep.

    `params` holds the swept keys alone, as written in the study (`{"path.loss": "2%"}`); a sweep of
    `protocols.NAME.KEY` touches that protocol alone and is no param of the others. `spec` is the
    whole trial specification (`path` or `topology`, `protocol`, `workload`, and `traffic` where there is
    any) without seed and trial number.
    """

    world: str
    protocol: str
    params: dict[str, Any]
    spec: dict[str, Any]

    def value(self, key: str) -> Any:
        """The value of a dotted key in this cell, swept or not; None where the study does not set it.

        `protocol.KEY` means this cell's protocol; `protocols.NAME.KEY` is None in cells of another one.

        >>> spec = {"path": {"delay": "5ms"}, "protocol": {"window": 4}}
        >>> cell = Cell("sim", "gbn", {"path.loss": "2%"}, spec)
        >>> cell.value("path.loss"), cell.value("path.delay"), cell.value("protocol.window")
        ('2%', '5ms', 4)
        """
        if key in self.params:
            return self.params[key]
        parts = key.split(".")
        if parts[0] == "protocols":
            if len(parts) < 3 or parts[1] != self.protocol:
                return None
            parts = ["protocol", *parts[2:]]
        return lookup(self.spec, parts)


@dataclass(frozen=True)
class CellResult:
    """What the trials of one cell measured.

    `n` counts the trials that succeeded, `failures` the others by their error. `samples` holds each
    metric's values of the successful trials in trial order, `trials` their numbers: pair two cells on these.
    """

    cell: Cell
    n: int
    failures: dict[str, int]
    metrics: dict[str, Interval]
    samples: dict[str, list[float]]
    trials: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Verdict:
    """A claim held against the measurement in one world, with the numbers in `detail`."""

    id: str
    text: str
    verdict: VerdictWord
    detail: str
    world: str


@dataclass(frozen=True)
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

    def to_polars(self) -> polars.DataFrame:
        """One row a trial: `world`, `protocol`, the swept keys, `trial`, `seed`, `error`, the metrics."""
        if self.records is None:
            raise ValueError("this result was built without its records: load the run's folder")
        return self.records.drop("cell")

    def flows_to_polars(self) -> polars.DataFrame:
        """One row a flow of a trial: `world`, `protocol`, the swept keys, `trial`, and the flow's figures.

        Raises ValueError where no trial told of its flows.
        """
        if self.flows is None:
            raise ValueError("no trial of this run told of its flows")
        return self.flows.read().drop("cell")

    @property
    def report(self) -> Path:
        """Where the run's report lies (`report.html` in the run's folder)."""
        return self.folder / "report.html"

    def to_json(self) -> dict[str, Any]:
        """The document that `longfat run --json` prints.

        A bound that is unknown (one trial has no interval) is null, since JSON knows no NaN.
        """
        document: dict[str, Any] = {
            "study": self.study.name,
            "run": str(self.folder),
            "cells": [_cell_json(result) for result in self.cells],
            "claims": [
                {"id": c.id, "text": c.text, "world": c.world, "verdict": c.verdict, "detail": c.detail}
                for c in self.claims
            ],
        }
        if self.quick:
            document["quick"] = True
        return document


def _cell_json(result: CellResult) -> dict[str, Any]:
    cell: dict[str, Any] = {
        "world": result.cell.world,
        "protocol": result.cell.protocol,
        "params": result.cell.params,
        "n": result.n,
        "metrics": {
            name: {bound: _finite(getattr(interval, bound)) for bound in ("mean", "low", "high")}
            for name, interval in result.metrics.items()
        },
    }
    if result.failures:
        cell["failures"] = result.failures
    return cell


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
