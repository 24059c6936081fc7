"""The result of a run: cells, intervals and verdicts, as frozen data without logic.

A *cell* is one world, one protocol and one point of the sweep. Its *trials* differ only in their number, from
which (with the study's seed) every random stream is derived. Trial 3 of one cell and trial 3 of another
have the same losses, so differences between cells may be paired by trial.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from longfat.study.cell import Cell as Cell  # noqa: PLC0414 - re-exported

CONFIDENCE = 0.95
"""The confidence level of every interval."""

if TYPE_CHECKING:
    import polars

    from longfat.results.frames import Points
    from longfat.runner.loading import Flows
    from longfat.study import Study
    from longfat.system.remote_path import Location

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


@dataclass(frozen=True)
class Censored:
    """Why the value of a metric is unknown in a cell: times without an end, which exceed all measured ones.

    `trials` of the cell's `of` trials have no value. `beyond` has the number of times without an end by the
    metric that counts them, `measured` the number of the others, if they are counted.
    """

    trials: int
    of: int
    beyond: Mapping[str, int]
    measured: int | None


@dataclass(frozen=True, repr=False)
class CellResult:
    """The result of one cell.

    `n` is the number of successful trials, `failures` counts the others by their error. `samples` has each
    metric's values in trial order, `trials` their numbers, by which two cells can be paired. Samples are read
    whenever they are used, and intervals computed on first use. `deterministic` is true if several trials
    gave exactly the same values. `confidence` is the level of its intervals: above 95 % in a
    run with a precision, which looks at them repeatedly (`longfat.analysis.looks`), so that all looks
    together have 95 %. `censored` has the metrics whose mean is unknown, since unanswered requests or
    incomplete flows exceed all measured times; `metrics` lacks them.
    """

    cell: Cell
    n: int
    failures: dict[str, int]
    metrics: MutableMapping[str, Interval]
    samples: Mapping[str, list[float]]
    trials: Sequence[int] = ()
    deterministic: bool = False
    confidence: float = CONFIDENCE
    censored: Mapping[str, Censored] = field(default_factory=dict)

    @property
    def tried(self) -> int:
        """The number of trials, failed ones included."""
        return self.n + sum(self.failures.values())

    def __repr__(self) -> str:
        about = {"n": self.n, "failures": self.failures} if self.failures else {"n": self.n}
        counts = ", ".join(f"{key}={value!r}" for key, value in about.items())
        place = ", ".join([repr(self.cell.world), repr(self.cell.protocol), repr(self.cell.params)])
        return f"CellResult({place}, {counts}, {len(self.samples)} metrics)"


@dataclass(frozen=True)
class Verdict:
    """The verdict on a claim in one world, with the deciding numbers as text in `detail`.

    `figures` has them as numbers, in the metric's base unit; None if there was nothing to compare. Its keys
    are `metric`, `params` (the point of the sweep), `values` (a list of names and means; for a claim about a
    lead they are ratios), `ratio` (value and bounds: of a trend the last value over the first, else the first
    over the second; or null), `interval` (of the mean that is compared with the claim's value; or null), `n`
    (trials), `comparisons` (the number of cells that the claim covers, or of trends: one for each combination
    of the keys other than `along`), and `agreeing` (those with this verdict: of a claim that fails, the
    failing ones).
    """

    id: str
    text: str
    verdict: VerdictWord
    detail: str
    world: str
    figures: dict[str, Any] | None = None


@dataclass(frozen=True, repr=False)
class RunResult:
    """One run of a study.

    `study` is the study as run, with every `--set` applied. `records` reads one row for each trial, sorted by
    cell and trial: `cell` (index into the planned cells), `world`, `protocol`, one text column for each swept
    key, `trial`, `seed`, `error` (null for a successful trial), and one Float64 column for each metric (null
    for a failed trial), named with its unit as in `goodput_bps`, for a single host as in `goodput_bps@s1`.
    `flows` reads one row for each flow in the same order: columns that identify its trial, then those of the
    flow; None without records of flows.
    """

    study: Study
    folder: Location
    cells: list[CellResult]
    claims: list[Verdict]
    environment: dict[str, Any]
    quick: bool = False
    read_records: Callable[[], polars.DataFrame] | None = field(default=None, repr=False, compare=False)
    flows: Flows | None = field(default=None, repr=False, compare=False)

    @property
    def records(self) -> polars.DataFrame | None:
        """One row for each trial, read from the run's folder; None without one."""
        return None if self.read_records is None else self.read_records()

    def __repr__(self) -> str:
        trials = sum(cell.tried for cell in self.cells)
        counts = f"{len(self.cells)} cells, {trials} trials, {len(self.claims)} claims"
        return f"RunResult({self.study.name!r}, {counts}, folder={str(self.folder)!r})"

    @property
    def swept(self) -> dict[str, list[Any]]:
        """All values of each swept key, as in the study."""
        from longfat.study.sweep import values

        return {key: values(listed) for key, listed in self.study.sweep.items()}

    def to_polars(self) -> polars.DataFrame:
        """Returns one row for each trial: its place in the study, swept keys, `measured`, `error`, metrics.

        Names have underscores (`path_loss`, `goodput_bps_s1`). A swept quantity is a number in s, bit/s, B or
        a share of 1, and `path_loss_label` is the study's text ("1%"); other values are text. `measured` is
        false for a failed trial. With labels of protocols, `protocol_label` has the label, or else the name.
        Every column can be written as CSV.

        Raises ValueError for a result without records.
        """
        from longfat.results.frames import trials_frame

        records = self.records
        if records is None:
            raise ValueError("this result has no records: load the run's folder")
        return trials_frame(self, records)

    def flows_to_polars(self) -> polars.DataFrame:
        """Returns one row for each flow: its trial's place in the study, swept keys, then the flow's columns.

        Names and quantities are as in `to_polars`. `measured` is false for background traffic, and
        `path_bytes_1` has the bytes on the first path.

        Raises ValueError without records of flows.
        """
        from longfat.results.frames import flows_frame

        if self.flows is None:
            raise ValueError("this run has no records of flows")
        return flows_frame(self.flows.read().drop("cell"), self)

    @property
    def verdict(self) -> VerdictWord | None:
        """The verdict on all claims in all worlds; None without claims.

        "fails" if any claim fails, else "undecided" if any is, else "holds".
        """
        words = {claim.verdict for claim in self.claims}
        ordered: tuple[VerdictWord, ...] = ("fails", "undecided", "holds")
        return next((word for word in ordered if word in words), None)

    @property
    def report(self) -> Location:
        """Path or URL of the run's report (`report.html` in its folder)."""
        return self.folder / "report.html"

    def to_json(self) -> dict[str, Any]:
        """Returns the document of `longfat run --json`.

        A cell's `params` are the swept keys and values as in the study, its `values` the same with the names
        and units of `to_polars`. An unknown bound (with a single trial) is null.
        """
        from longfat.results.frames import Points

        points = Points(self.swept)
        document: dict[str, Any] = {
            "study": self.study.name,
            "run": str(self.folder),
            "cells": [_cell_json(result, points) for result in self.cells],
            "claims": [
                {
                    "id": c.id,
                    "text": c.text,
                    "world": c.world,
                    "verdict": c.verdict,
                    "detail": c.detail,
                    "figures": c.figures,
                }
                for c in self.claims
            ],
            "verdict": self.verdict,
        }
        if self.quick:
            document["quick"] = True
            document["cuts"] = self.study.cuts
        return document


def _cell_json(result: CellResult, points: Points) -> dict[str, Any]:
    cell: dict[str, Any] = {
        "world": result.cell.world,
        "protocol": result.cell.protocol,
        **({"label": result.cell.label} if result.cell.label else {}),
        "params": result.cell.params,
        "values": points.plain(result.cell.params),
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
    if result.censored:
        cell["censored"] = {
            name: {"trials": one.trials, "beyond": dict(one.beyond), "measured": one.measured}
            for name, one in result.censored.items()
        }
    return cell


def known(value: float) -> float | None:
    """A number for JSON: None for NaN and infinity."""
    return value if math.isfinite(value) else None
