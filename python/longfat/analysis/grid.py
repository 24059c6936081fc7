"""The cells of a run, laid out as a reader sees them: worlds, points of the sweep, protocols.

Tables and charts share this layout, so that both show the same things in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from longfat.analysis.prediction import Prediction, predict
from longfat.presentation import formatting
from longfat.results import Cell, CellResult, RunResult
from longfat.study import sweep, units
from longfat.study.vocabulary import AT_HOST, canonical, check, metrics

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from longfat.study import Study

AT_MOST = "\N{LESS-THAN OR EQUAL TO}"

METRIC_ORDER = ("goodput_bps", "completion_s", "efficiency", "retransmissions", "timeouts", "packets_sent")
"""What a reader asks first comes first; other metrics follow in the order of the vocabulary."""

SHOWN_BY_WORKLOAD = {
    "file": ("goodput_bps", "retransmissions"),
    "bulk": ("goodput_bps", "rtt_p50_s", "queue_mean_packets", "retransmissions"),
    "on-off": ("goodput_bps", "queueing_delay_p99_s", "drops"),
    "request-response": ("fct_p50_s", "fct_p99_s", "wire_p50_s", "stack_p50_s"),
    "arrivals": ("fct_mean_s", "fct_p99_s", "goodput_bps"),
}
"""What a reader of each workload asks for, the main metric first, where a study does not say."""
FAIRNESS = "jain"
"""Shown beside the others where several flows share the network."""


@dataclass(frozen=True)
class Point:
    """One point of the sweep in one world: the swept values that all protocols share, and their results."""

    world: str
    params: dict[str, Any]
    results: dict[str, list[CellResult]]

    @property
    def label(self) -> str:
        """The values alone, as a table's first column shows them."""
        return ", ".join(formatting.label(value) for value in self.params.values()) or "all"


@dataclass(frozen=True)
class Figure:
    """A figure of the study's source: in the unit of `metric`, at a point of the sweep."""

    protocol: str
    params: dict[str, Any]
    metric: str
    value: float


def shared_keys(study: Study) -> list[str]:
    """The swept keys that every protocol has, in the order of the study."""
    return [key for key in study.sweep if not key.startswith("protocols.")]


def own_keys(study: Study) -> list[str]:
    """The swept keys of one protocol alone."""
    return [key for key in study.sweep if key.startswith("protocols.")]


def points(study: Study, results: Iterable[CellResult]) -> list[Point]:
    """The run's cells, world by world and point by point, in the order of the study."""
    shared = shared_keys(study)
    found: dict[str, Point] = {}
    for result in results:
        params = {key: result.cell.params[key] for key in shared if key in result.cell.params}
        key = canonical([result.cell.world, params])
        point = found.setdefault(key, Point(result.cell.world, params, {}))
        point.results.setdefault(result.cell.protocol, []).append(result)
    return list(found.values())


def shown(study: Study, results: Sequence[CellResult]) -> list[str]:
    """The metrics to show of a run, the main one first: the study's own choice, else by its workload.

    Only what was measured; a run whose trials all failed has the main one alone.
    """
    kind = str(study.workload.get("kind"))
    chosen = list(study.show or SHOWN_BY_WORKLOAD.get(kind, SHOWN_BY_WORKLOAD["file"]))
    present = set(measured(results))
    if not study.show and len(hosts(results, chosen[0])) > 1:
        chosen.append(FAIRNESS)
    return [name for name in chosen if name in present] or chosen[:1]


def hosts(results: Iterable[CellResult], metric: str) -> list[str]:
    """The hosts that a metric was measured of, in the order of the records; classes of flows in their own."""
    start = metric + AT_HOST
    found = list(
        dict.fromkeys(
            name.removeprefix(start) for r in results for name in r.metrics if name.startswith(start)
        )
    )
    # A record lacks a class of which its trial had no flow.
    return sorted(found) if part_word(found) == "class" else found


def part_word(names: Sequence[str]) -> str:
    """What the parts of a metric are: hosts, or classes of flows by their size.

    >>> part_word(["s1", "s2"]), part_word(["G0", "G1"])
    ('host', 'class')
    """
    return "class" if names and all(map(formatting.is_class_of_flows, names)) else "host"


def class_bounds(study: Study, metric: str) -> str:
    """What the classes of flows hold, in a line; empty where the workload has none, or they are not shown."""
    classes = study.workload.get("classes")
    shown_in_parts = AT_HOST in metric or any(AT_HOST in name for name in study.show or ())
    if not isinstance(classes, list) or not shown_in_parts:
        return ""
    return ", ".join(formatting.class_bounds(classes))


def worlds(results: Iterable[CellResult]) -> list[str]:
    """The worlds that were run, in order."""
    return list(dict.fromkeys(result.cell.world for result in results))


def protocols(study: Study, results: Iterable[CellResult]) -> list[str]:
    """The names of the protocols that were run, in the order of the study."""
    present = {result.cell.protocol for result in results}
    return [entry.name for entry in study.protocols if entry.name in present]


def measured(results: Iterable[CellResult]) -> list[str]:
    """The metrics that any cell has, the most asked for first."""
    present = {name for result in results for name in result.metrics}
    known = [*METRIC_ORDER, *metrics(), *sorted(present)]
    return [name for name in dict.fromkeys(known) if name in present]


def quick_note(study: Study) -> str:
    """What `--quick` cut of a study, in a line."""
    cuts = "; ".join(study.cuts) or "nothing was cut"
    return f"Quick look: {cuts}. Without --quick the study runs as written."


def determinism(study: Study, results: Sequence[CellResult]) -> str:
    """That trials agree exactly, and what makes competing flows differ; empty where every cell is random."""
    fixed = [result for result in results if result.deterministic]
    if not fixed:
        return ""
    where = "" if len(fixed) == len(results) else f" in {len(fixed)} of {len(results)} cells"
    told = f"deterministic{where}: nothing in these trials is random, so they agree exactly"
    jitter = {**study.workload, "start_jitter": "100ms"}
    compete = study.workload.get("flows", 1) != 1 or study.traffic or len(hosts(fixed, "goodput_bps")) > 1
    if compete and "start_jitter" not in study.workload and not check("workload", jitter):
        told += '; flows that start together stay in step: set workload.start_jitter, e.g. "100ms"'
    return told


def series_name(study: Study, cell: Cell) -> str:
    """A protocol's name, with the values of what is swept of it alone."""
    own = [
        f"{key.split('.', 2)[2]} {formatting.label(cell.params[key])}"
        for key in own_keys(study)
        if key in cell.params
    ]
    return f"{cell.protocol} ({', '.join(own)})" if own else cell.protocol


def ordered_values(study: Study, key: str) -> list[Any]:
    """The values of a swept key, in order of size where they are quantities."""
    found = sweep.values(study.sweep[key])
    numbers = [units.number(value) for value in found]
    if None in numbers:
        return found
    return [value for _, value in sorted(zip(numbers, found, strict=True), key=lambda pair: pair[0] or 0.0)]


def theory_of(result: CellResult, metric: str) -> Prediction:
    """What theory expects of a metric of this cell."""
    return predict(result.cell.spec, metric)


def theory_text(result: CellResult, metric: str, scale: float) -> str:
    """What theory expects, for a table: ~ before an approximation, ≤ before a bound; empty for nothing."""
    expected = theory_of(result, metric)
    value = expected.bound if expected.value is None else expected.value
    if value is None:
        return ""
    sign = AT_MOST if expected.value is None else "" if expected.exact else "~"
    return f"{sign}{formatting.digits(value / scale)}"


def reported(study: Study, results: Sequence[CellResult]) -> list[Figure]:
    """The source's own figures, each placed at the points of the sweep that it speaks of."""
    found: list[Figure] = []
    for entry in study.reported:
        conditions = {key: _condition(value) for key, value in entry.where.items()}
        placed: dict[str, Mapping[str, Any]] = {}
        for result in results:
            cell = result.cell
            if cell.protocol == entry.protocol and all(
                c.matches(cell.value(k)) for k, c in conditions.items()
            ):
                placed.setdefault(canonical(cell.params), cell.params)
        for metric, text in (("goodput_bps", entry.goodput), ("completion_s", entry.completion)):
            value = units.number(text) if text is not None else None
            if value is not None:
                found += [Figure(entry.protocol, dict(params), metric, value) for params in placed.values()]
    return found


def _condition(value: str | int) -> Any:
    from longfat.study.conditions import Condition

    return Condition.parse(value)


def trials_text(run: RunResult | Sequence[CellResult]) -> str:
    """How many trials the cells have: one number, or from the least to the most.

    >>> trials_text([])
    'no trials'
    """
    results = run.cells if isinstance(run, RunResult) else run
    counts = sorted({result.n for result in results})
    if not counts:
        return "no trials"
    return f"n = {counts[0]}" if len(counts) == 1 else f"n = {counts[0]} to {counts[-1]}"
