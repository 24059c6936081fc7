"""Time series of a trial: windows, round trips, goodput and queues.

This module reads a trial's samples, selects a period and reduces the points for drawing.
`longfat.presentation.trace.charts` and `bars` draw them; `series_sequence` reads single packets.
"""

from __future__ import annotations

import bisect
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from longfat.system.parameters import ParameterError

if TYPE_CHECKING:
    import polars

Values = tuple[float | None, ...]

FLOW_COLUMNS = (
    "cwnd_bytes",
    "ssthresh_bytes",
    "in_flight_bytes",
    "rtt_s",
    "srtt_s",
    "rttvar_s",
    "pacing_bps",
    "delivery_bps",
    "goodput_bps",
    "received_bps",
    "retransmissions",
    "rwnd_limited_s",
    "sndbuf_limited_s",
)
QUEUE_COLUMNS = ("packets", "bytes")
CONTROLLER = "controller_"
"""Prefix of the columns of a controller's own state."""
_DRAWN_ELSEWHERE = frozenset({"window_bytes", "ssthresh_bytes", "pacing_rate_bps"})
"""State of controllers that `FLOW_COLUMNS` contain, too."""
_UNITS = {"_bytes": "B", "_bps": "bit/s", "_seconds": "s", "_s": "s"}
"""Units by the ends of names of a controller's state."""
NO_THRESHOLD = 64
"""A slow-start threshold this many times above the largest window is still unset, and is not drawn."""


@dataclass(frozen=True)
class Samples:
    """Samples of one flow or queue over time (s); None for a missing value.

    `number` is the flow's number in the trial, and `is_traffic` whether it is of the study's `traffic`.
    """

    name: str
    time: tuple[float, ...]
    columns: Mapping[str, Values]
    state: tuple[str, ...] = ()
    number: int = 0
    is_traffic: bool = False

    def known(self, column: str) -> list[float]:
        """The values of a column without missing ones."""
        return [value for value in self.columns.get(column, ()) if value is not None]


@dataclass(frozen=True)
class Series:
    """The samples of a trial's flows and queues, every `interval` seconds."""

    interval: float
    flows: tuple[Samples, ...]
    queues: tuple[Samples, ...]

    @property
    def begin(self) -> float:
        """The time of the first sample, in s."""
        return min((one.time[0] for one in (*self.flows, *self.queues) if one.time), default=0.0)

    @property
    def end(self) -> float:
        """The time of the last sample, in s."""
        return max((one.time[-1] for one in (*self.flows, *self.queues) if one.time), default=0.0)


def read(series: Mapping[str, Any]) -> Series:
    """Reads the "series" of a traced trial's record."""
    times_named = Counter(str(flow["name"]) for flow in series["flows"])
    flows = tuple(
        replace(
            _meaningful(_samples(_flow_name(flow, times_named), flow, FLOW_COLUMNS)),
            # "rivals (s1)" instead of "s1".
            is_traffic=" (" in str(flow["name"]),
        )
        for flow in series["flows"]
    )
    queues = tuple(_samples(str(queue["link"]), queue, QUEUE_COLUMNS) for queue in series["queues"])
    return Series(float(series["interval_s"]), flows, queues)


def _flow_name(flow: Mapping[str, Any], times_named: Mapping[str, int]) -> str:
    """The sending host, with the flow's number if the host has several flows."""
    name = str(flow["name"])
    return name if times_named[name] == 1 else f"{name} #{flow['flow']}"


def flow_names(flows: polars.DataFrame) -> dict[int, str]:
    """Returns the names of all flows of a trial by number, as in their samples."""
    named = [
        {"flow": flow, "name": sender if traffic is None else f"{traffic} ({sender})"}
        for flow, sender, traffic in flows.select("flow", "from", "traffic").iter_rows()
    ]
    times_named = Counter(str(flow["name"]) for flow in named)
    return {flow["flow"]: _flow_name(flow, times_named) for flow in named}


def named(name: str, names: Mapping[int, str]) -> int:
    """Returns the number of the flow with this name; raises ParameterError with the allowed names."""
    from longfat.study.vocabulary import allowed

    for number, known in names.items():
        if known == name:
            return number
    raise ParameterError("flow", f'this trial has no flow "{name}"; {allowed(name, list(names.values()))}')


def controller_samples(raw: Mapping[str, Any]) -> dict[str, Sequence[float | None]]:
    """Returns the columns of a controller's own state in the raw series of a flow."""
    return {f"{CONTROLLER}{name}": values for name, values in (raw.get("controller") or {}).items()}


def controller_columns(flows: Iterable[Samples]) -> list[str]:
    """Returns the columns of controllers that have values, without those that `FLOW_COLUMNS` contain."""
    named = dict.fromkeys(column for flow in flows for column in flow.columns if flow.known(column))
    return [
        column
        for column in named
        if column.startswith(CONTROLLER) and column.removeprefix(CONTROLLER) not in _DRAWN_ELSEWHERE
    ]


def controller_kind(flow: Samples) -> tuple[str, ...]:
    """Returns all columns of a flow's controller, also those without values: alike for equal controllers."""
    return tuple(column for column in flow.columns if column.startswith(CONTROLLER))


def controller_label(column: str) -> tuple[str, str]:
    """Returns the name of a controller's state in words, and its unit.

    >>> controller_label("controller_min_rtt_seconds"), controller_label("controller_reductions")
    (('min rtt', 's'), ('reductions', ''))
    """
    name = column.removeprefix(CONTROLLER)
    end, unit = next(((end, unit) for end, unit in _UNITS.items() if name.endswith(end)), ("", ""))
    return name.removesuffix(end).replace("_", " "), unit


def _samples(name: str, raw: Mapping[str, Any], columns: Iterable[str]) -> Samples:
    found = {column: tuple(raw[column]) for column in columns if raw.get(column)}
    found |= {column: tuple(values) for column, values in controller_samples(raw).items()}
    state = tuple(raw.get("state") or ())
    return Samples(name, tuple(raw["time"]), found, state, int(raw.get("flow", 0)))


def _meaningful(flow: Samples) -> Samples:
    """Removes unset thresholds, and bytes in flight that are always zero."""
    limit = NO_THRESHOLD * max(flow.known("cwnd_bytes"), default=math.inf)
    threshold = flow.columns.get("ssthresh_bytes", ())
    shown = tuple(value if value is not None and value <= limit else None for value in threshold)
    columns = {name: values for name, values in flow.columns.items() if name != "ssthresh_bytes"}
    if not any(flow.columns.get("in_flight_bytes", ())):
        columns.pop("in_flight_bytes", None)
    if any(value is not None for value in shown):
        columns["ssthresh_bytes"] = shown
    return replace(flow, columns=columns)


def choose(series: Series, flows: Sequence[str]) -> Series:
    """Selects flows by name (all by default); raises ParameterError with the allowed names."""
    names = {flow.number: flow.name for flow in series.flows}
    numbers = {named(name, names) for name in flows} or set(names)
    return replace(series, flows=tuple(one for one in series.flows if one.number in numbers))


def labelled(series: Series, label: str) -> Series:
    """Appends a label to the names of all flows and queues; "Go-Back-N (gbn)" as "(Go-Back-N, gbn)"."""
    inner = label.replace(" (", ", ").rstrip(")")

    def renamed(one: Samples) -> Samples:
        return replace(one, name=f"{one.name} ({inner})")

    flows, queues = tuple(map(renamed, series.flows)), tuple(map(renamed, series.queues))
    return replace(series, flows=flows, queues=queues)


def overlaid(several: Sequence[Series]) -> Series:
    """Combines several series in one chart; flow numbers are then ambiguous."""
    return Series(
        min(one.interval for one in several),
        tuple(flow for one in several for flow in one.flows),
        tuple(queue for one in several for queue in one.queues),
    )


def cut(series: Series, first: float | None, last: float | None) -> Series:
    """Returns the samples between two times in s, inclusive."""

    def part(one: Samples) -> Samples:
        start = 0 if first is None else bisect.bisect_left(one.time, first)
        stop = len(one.time) if last is None else bisect.bisect_right(one.time, last)
        return _picked(one, range(start, max(start, stop)))

    shown = replace(series, flows=tuple(map(part, series.flows)), queues=tuple(map(part, series.queues)))
    if not any(one.time for one in (*shown.flows, *shown.queues)):
        raise ValueError("no samples in this period: choose another --from and --to")
    return shown


def _picked(one: Samples, indices: Sequence[int]) -> Samples:
    columns = {name: tuple(values[i] for i in indices) for name, values in one.columns.items()}
    state = tuple(one.state[i] for i in indices) if one.state else ()
    return replace(one, time=tuple(one.time[i] for i in indices), columns=columns, state=state)


def points(one: Samples, column: str, most: int) -> list[tuple[float, float | None]]:
    """Reduces a column to about `most` points, including the extremes of every interval.

    Gaps remain gaps.
    """
    values = one.columns.get(column, ())
    listed = list(zip(one.time, values, strict=True)) if values else []
    if len(listed) <= most:
        return listed
    width = math.ceil(len(listed) / max(1, most // 4))
    kept: list[tuple[float, float | None]] = []
    for start in range(0, len(listed), width):
        kept += _extremes(listed[start : start + width])
    return kept


def averaged(one: Samples, column: str, most: int) -> list[tuple[float, float | None]]:
    """Reduces a column to at most `most` means over time: for rates, which fluctuate with single packets."""
    values = one.columns.get(column, ())
    width = math.ceil(len(values) / most) if values else 1
    drawn: list[tuple[float, float | None]] = []
    for start in range(0, len(values), width):
        known = [value for value in values[start : start + width] if value is not None]
        drawn.append((one.time[start], math.fsum(known) / len(known) if known else None))
    return drawn


def _extremes(stretch: Sequence[tuple[float, float | None]]) -> list[tuple[float, float | None]]:
    known = [(value, i) for i, (_, value) in enumerate(stretch) if value is not None]
    chosen = {0, len(stretch) - 1}
    if known:
        chosen |= {min(known)[1], max(known)[1]}
    return [stretch[i] for i in sorted(chosen)]


def spans(one: Samples) -> Iterator[tuple[str, float, float]]:
    """The periods that a flow spent in a state: state, start and end in s."""
    for state, group in groupby(zip(one.state, range(len(one.time)), strict=False), key=lambda pair: pair[0]):
        indices = [index for _, index in group]
        after = min(indices[-1] + 1, len(one.time) - 1)
        yield state, one.time[indices[0]], one.time[after]


def mean(one: Samples, column: str) -> float:
    """The mean of a column over its known samples; NaN without any."""
    known = one.known(column)
    return math.fsum(known) / len(known) if known else math.nan
