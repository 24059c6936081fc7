"""The layout of a run's cells: worlds, points of the sweep, protocols, and the metrics to show.

Tables and charts share this layout and show everything in the same order.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from longfat.analysis.prediction import Prediction, predict
from longfat.study import sweep, units
from longfat.study.conditions import Condition
from longfat.study.labels import is_class_of_flows, label
from longfat.study.vocabulary import AT_HOST, canonical, metrics, whole_metric

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from longfat.results.run import Cell, CellResult
    from longfat.study import Study

METRIC_ORDER = ("goodput_bps", "completion_s", "efficiency", "retransmissions", "timeouts", "packets_sent")
"""The most important metrics first; others follow in the order of the vocabulary."""

SHOWN_BY_WORKLOAD = {
    "file": ("goodput_bps", "completion_s", "retransmissions"),
    "bulk": ("goodput_bps", "rtt_p50_s", "queue_mean_packets", "retransmissions"),
    "on-off": ("goodput_bps", "queueing_delay_p99_s", "drops"),
    "request-response": ("fct_p50_s", "fct_p99_s", "wire_p50_s", "stack_p50_s"),
    "arrivals": ("fct_mean_s", "fct_p99_s", "goodput_bps"),
    "web-page": ("fct_p50_s", "object_mean_s", "retransmissions"),
    "frames": ("frame_in_time_share", "frame_delay_p50_s", "frame_delay_p99_s", "frames_missing"),
    "all-reduce": ("round_p50_s", "round_p99_s", "goodput_bps", "retransmissions"),
}
"""The metrics to show for each workload, the main one first, unless a study chooses."""

FAIRNESS = "jain"
"""Added if several hosts have flows."""


@dataclass(frozen=True)
class Point:
    """One point of the sweep in one world: the swept values that all protocols share, and their results."""

    world: str
    params: dict[str, Any]
    results: dict[str, list[CellResult]]

    @property
    def cells(self) -> list[CellResult]:
        """The results of all protocols, one protocol after the other."""
        return [cell for group in self.results.values() for cell in group]


@dataclass(frozen=True)
class Figure:
    """A figure that the study's source reports, in the unit of `metric`, at a point of the sweep."""

    protocol: str
    params: dict[str, Any]
    metric: str
    value: float


def shared_keys(study: Study) -> list[str]:
    """The swept keys that apply to every protocol, in the order of the study."""
    return [key for key in study.sweep if not key.startswith("protocols.")]


def own_keys(study: Study) -> list[str]:
    """The swept keys that apply to a single protocol."""
    return [key for key in study.sweep if key.startswith("protocols.")]


def points(study: Study, results: Iterable[CellResult]) -> list[Point]:
    """The run's cells, world by world and point by point, in the order of the study."""
    found: dict[str, Point] = {}
    for result in results:
        params = point_params(study, result.cell)
        key = canonical([result.cell.world, params])
        point = found.setdefault(key, Point(result.cell.world, params, {}))
        point.results.setdefault(result.cell.protocol, []).append(result)
    return list(found.values())


def shown(study: Study, results: Sequence[CellResult]) -> list[str]:
    """The metrics to show of a run, the main one first: the study's choice, else by its workload.

    Metrics without measurements are left out, except the main one. The numbers of unanswered requests and of
    incomplete flows follow the metrics that they make unknown.
    """
    kind = str(study.workload.get("kind"))
    usual = SHOWN_BY_WORKLOAD.get(kind, SHOWN_BY_WORKLOAD["file"])
    chosen = list(study.show or (*usual, *(one.column for one in study.derived_metrics.values())))
    present = set(listed(results))
    if not study.show and len(hosts(results, chosen[0])) > 1:
        chosen.append(FAIRNESS)
    unknown = [result.censored[name] for name in chosen for result in results if name in result.censored]
    counts = [whole_metric(name) for one in unknown for name in one.beyond]
    chosen += [name for name in dict.fromkeys(counts) if name not in chosen]
    return [name for name in chosen if name in present] or chosen[:1]


def hosts(results: Iterable[CellResult], metric: str) -> list[str]:
    """The hosts, or the classes of flows by size, for which a metric was measured."""
    start = metric + AT_HOST
    found = list(
        dict.fromkeys(
            name.removeprefix(start) for r in results for name in r.metrics if name.startswith(start)
        )
    )
    # A record omits a class without flows, so records may list classes in different orders.
    return sorted(found) if part(found) == "class" else found


def part(names: Sequence[str]) -> Literal["host", "class"]:
    """Whether a metric is split by host or by class of flows.

    >>> part(["s1", "s2"]), part(["G0", "G1"])
    ('host', 'class')
    """
    return "class" if names and all(map(is_class_of_flows, names)) else "host"


def worlds(results: Iterable[CellResult]) -> list[str]:
    """The worlds that were run, in order."""
    return list(dict.fromkeys(result.cell.world for result in results))


def protocols(study: Study, results: Iterable[CellResult]) -> list[str]:
    """The names of the protocols that were run, in the order of the study."""
    present = {result.cell.protocol for result in results}
    return [entry.name for entry in study.protocols if entry.name in present]


def measured(results: Iterable[CellResult]) -> list[str]:
    """The metrics that any cell has, the most important first."""
    return _ordered({name for result in results for name in result.metrics})


def listed(results: Iterable[CellResult]) -> list[str]:
    """The metrics that any cell has or whose value is unknown in one, the most important first."""
    return _ordered({name for result in results for name in (*result.metrics, *result.censored)})


def _ordered(present: set[str]) -> list[str]:
    known = [*METRIC_ORDER, *metrics(), *sorted(present)]
    return [name for name in dict.fromkeys(known) if name in present]


def series_name(study: Study, cell: Cell) -> str:
    """A protocol's label or name, with the values of the keys that are swept for it alone."""
    own = [
        f"{key.split('.', 2)[2]} {label(cell.params[key])}" for key in own_keys(study) if key in cell.params
    ]
    return f"{cell.display_name} ({', '.join(own)})" if own else cell.display_name


def series(study: Study, cells: Iterable[Cell]) -> list[str]:
    """The names of all series, in the order of the cells."""
    return list(dict.fromkeys(series_name(study, cell) for cell in cells))


def point_params(study: Study, cell: Cell) -> dict[str, Any]:
    """The values of the shared swept keys in a cell."""
    return {key: cell.params[key] for key in shared_keys(study) if key in cell.params}


def ordered_values(study: Study, key: str) -> list[Any]:
    """The values of a swept key, sorted if they are quantities."""
    found = sweep.values(study.sweep[key])
    numbers = [units.number(value) for value in found]
    if None in numbers:
        return found
    return [value for _, value in sorted(zip(numbers, found, strict=True), key=lambda pair: pair[0] or 0.0)]


def theory_of(result: CellResult, metric: str) -> Prediction:
    """The theoretical prediction of a metric in this cell."""
    return _prediction(canonical(result.cell.spec), metric)


@functools.lru_cache(maxsize=4096)
def _prediction(spec: str, metric: str) -> Prediction:
    """The prediction for a specification in JSON. Each layout of a table asks for it again."""
    return predict(json.loads(spec), metric)


def reported(study: Study, results: Sequence[CellResult]) -> list[Figure]:
    """The figures that the study's source reports, at the points of the sweep to which they apply."""
    found: list[Figure] = []
    for entry in study.reported:
        conditions = {key: Condition.parse(value) for key, value in entry.where.items()}
        placed: dict[str, Mapping[str, Any]] = {}
        for result in results:
            cell = result.cell
            if cell.protocol == entry.protocol and all(cell.meets(k, c) for k, c in conditions.items()):
                placed.setdefault(canonical(cell.params), cell.params)
        for metric, text in (("goodput_bps", entry.goodput), ("completion_s", entry.completion)):
            value = units.number(text) if text is not None else None
            if value is not None:
                found += [Figure(entry.protocol, dict(params), metric, value) for params in placed.values()]
    return found
