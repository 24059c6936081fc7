"""The values of trials, flows or rounds whose cumulative distributions are drawn."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from longfat.presentation import names
from longfat.presentation.run.charts.warm_up import after_warm_up
from longfat.study.labels import is_class_of_flows
from longfat.study.vocabulary import AT_HOST, allowed, short_metric
from longfat.system.parameters import ParameterError

if TYPE_CHECKING:
    from longfat.presentation.run.charts.options import Cdf
    from longfat.results.run import CellResult, RunResult
    from longfat.runner.loading import Flows

FLOW_METRICS = {
    "fct_s": "Flow completion time",
    "goodput_bps": "Goodput per flow",
    "slowdown": "Slowdown per flow",
    "size_bytes": "Flow size",
    "packets_sent": "Packets sent per flow",
    "retransmissions": "Retransmissions per flow",
    "timeouts": "Timeouts per flow",
}
"""The columns of flows whose distributions can be drawn, with their titles."""
_UNITS = {"_bps": "bit/s", "_bytes": "B", "_s": "s", "": ""}
"""Units by the ends of columns."""
ROUND = "round_s"
"""The times of rounds."""
_NANOS = 1e9


@dataclass(frozen=True)
class Sample:
    """The values of a cell in rising order. Of `count` trials, flows or rounds, some may have no value."""

    cell: CellResult
    values: Sequence[float]
    count: int


@dataclass(frozen=True)
class Distributions:
    """The values of a metric in each cell, in its base unit; `of` is "trials", "flows" or "rounds".

    `metric` is the column, and `name` the metric without its unit.
    """

    metric: str
    name: str
    title: str
    unit: str
    of: Cdf
    samples: Sequence[Sample]


def of_trials(run: RunResult, metric: str) -> Distributions:
    """Returns the values of a metric in the trials of each cell."""
    samples = [_trials(cell, metric) for cell in run.cells]
    return _known(
        Distributions(
            metric,
            short_metric(metric),
            names.metric_title(metric),
            names.unit_of(metric),
            "trials",
            samples,
        )
    )


def of_flows(run: RunResult, metric: str | None) -> Distributions:
    """Returns the values of a metric of the measured flows of each cell, after the warm-up.

    By default the metric is the completion time, or the goodput of flows without an end. A metric can be of
    one host ("goodput@s1") or of one class of sizes ("fct@G0").
    """
    if run.flows is None:
        raise ParameterError("cdf", "this run has no records of flows (the world relay records none)")
    numbers = numbered(run.flows, run.cells)
    flows = run.flows.read((*FLOW_METRICS, "traffic", "class", "from", "opened_s"), list(numbers))
    name, _, part = (metric or _usual(flows)).partition(AT_HOST)
    column = next((one for one in FLOW_METRICS if name in (one, short_name(one))), None)
    if column is None:
        raise ParameterError(
            "metric", f'"{name}" is not a metric of flows; {allowed(name, map(short_name, FLOW_METRICS))}'
        )
    if column not in flows.columns:
        raise ValueError(f"this run measured no {column} of flows")
    if "traffic" in flows.columns:
        flows = flows.filter(pl.col("traffic").is_null())
    short = short_name(column) + (f"{AT_HOST}{part}" if part else "")
    if part:
        is_of_class = is_class_of_flows(part)
        flows = flows.filter(pl.col("class") == int(part[1:]) if is_of_class else pl.col("from") == part)
        part = f"class {part}" if is_of_class else part
    of_cell = flows.partition_by("cell", as_dict=True)
    samples = [
        _flows(cell, of_cell.get((number,), flows.clear()), column) for number, cell in numbers.items()
    ]
    unit = _UNITS[_end(column)]
    title = f"{FLOW_METRICS[column]}, {part}" if part else FLOW_METRICS[column]
    if flows.height and not any(sample.count for sample in samples):
        raise ParameterError(
            "cdf", "no flow of the workload opened after the warm-up; --cdf trials shows the values of trials"
        )
    return _known(Distributions(column, short, title, unit, "flows", samples))


def of_rounds(run: RunResult, metric: str | None) -> Distributions:
    """Returns the times of the rounds of each cell: requests with a barrier, or all-reduces."""
    if metric is not None and metric not in (ROUND, short_name(ROUND)):
        raise ParameterError("metric", f'"{metric}" is not a metric of rounds; allowed: {short_name(ROUND)}')
    if run.flows is None:
        raise ParameterError("cdf", "this run has no records of flows (the world relay records none)")
    numbers = numbered(run.flows, run.cells)
    flows = run.flows.read(("round_ns",), list(numbers))
    if "round_ns" not in flows.columns:
        raise ValueError("the records of this run have no rounds; run the study again")
    rounds = flows.select("cell", "round_ns").explode("round_ns").drop_nulls()
    if rounds.is_empty():
        raise ParameterError(
            "cdf", 'this run has no rounds; they require barrier = true, or a workload of kind "all-reduce"'
        )
    of_cell = rounds.partition_by("cell", as_dict=True)
    samples = []
    for number, cell in numbers.items():
        times = [nanos / _NANOS for nanos in of_cell.get((number,), rounds.clear())["round_ns"].sort()]
        samples.append(Sample(cell, times, len(times)))
    return Distributions(ROUND, short_name(ROUND), "Time of a round", "s", "rounds", samples)


def _trials(cell: CellResult, metric: str) -> Sample:
    """The successful trials; those whose value is unknown count, since it exceeds all others."""
    values = sorted(value for value in cell.samples.get(metric, ()) if math.isfinite(value))
    return Sample(cell, values, cell.n if metric in cell.censored else len(values))


def _flows(cell: CellResult, flows: pl.DataFrame, column: str) -> Sample:
    """The flows of the measured time; those without an end count."""
    flows = after_warm_up(flows, cell)
    return Sample(cell, flows[column].drop_nulls().sort().to_list(), flows.height)


def short_name(column: str) -> str:
    """Returns a metric of flows without its unit.

    >>> short_name("fct_s"), short_name("size_bytes"), short_name("timeouts")
    ('fct', 'size', 'timeouts')
    """
    return column.removesuffix(_end(column))


def _end(column: str) -> str:
    return next(end for end in _UNITS if column.endswith(end))


def _usual(flows: pl.DataFrame) -> str:
    ends = "fct_s" in flows.columns and flows["fct_s"].null_count() < flows.height
    return "fct_s" if ends else "goodput_bps"


def numbered(flows: Flows, cells: Iterable[CellResult]) -> dict[int, CellResult]:
    """Returns cells by their numbers in the records of flows, which count the cells without trials, too."""
    planned = {cell.identity: number for number, cell in enumerate(flows.planned)}
    return {planned[cell.cell.identity]: cell for cell in cells}


def _known(found: Distributions) -> Distributions:
    if not any(one.values for one in found.samples):
        raise ValueError(f"this run measured no {found.metric} of {found.of}")
    return found
