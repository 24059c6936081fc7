"""What one trial did over time: windows, round trips, goodput and queues, sampled.

This module reads a trial's samples, cuts out a part and thins it out for drawing; `series_charts` and
`series_text` draw it, and `series_sequence` reads the single packets.
"""

from __future__ import annotations

import bisect
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

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
    "retransmissions",
    "rwnd_limited_s",
    "sndbuf_limited_s",
)
QUEUE_COLUMNS = ("packets", "bytes")
NO_THRESHOLD = 64
"""A slow-start threshold this many times above the largest window is none yet, and is not drawn."""


@dataclass(frozen=True)
class Samples:
    """Quantities of one flow or one queue over time (s); None where there was no value.

    `number` is the flow's number in the trial.
    """

    name: str
    time: tuple[float, ...]
    columns: Mapping[str, Values]
    state: tuple[str, ...] = ()
    number: int = 0

    def known(self, column: str) -> list[float]:
        """The values of a column without the gaps."""
        return [value for value in self.columns.get(column, ()) if value is not None]


@dataclass(frozen=True)
class Series:
    """The samples of a trial: of its flows and of its queues, taken every `interval` seconds."""

    interval: float
    flows: tuple[Samples, ...]
    queues: tuple[Samples, ...]

    @property
    def begin(self) -> float:
        """The first moment with a sample, in s."""
        return min((one.time[0] for one in (*self.flows, *self.queues) if one.time), default=0.0)

    @property
    def end(self) -> float:
        """The last moment with a sample, in s."""
        return max((one.time[-1] for one in (*self.flows, *self.queues) if one.time), default=0.0)


def read(series: Mapping[str, Any]) -> Series:
    """The "series" of a traced trial's record."""
    times_named = Counter(str(flow["name"]) for flow in series["flows"])
    flows = tuple(
        _meaningful(_samples(_flow_name(flow, times_named), flow, FLOW_COLUMNS)) for flow in series["flows"]
    )
    queues = tuple(_samples(str(queue["link"]), queue, QUEUE_COLUMNS) for queue in series["queues"])
    return Series(float(series["interval_s"]), flows, queues)


def _flow_name(flow: Mapping[str, Any], times_named: Mapping[str, int]) -> str:
    """The sending host; with the flow's number where that sends several."""
    name = str(flow["name"])
    return name if times_named[name] == 1 else f"{name} #{flow['flow']}"


def flow_names(flows: polars.DataFrame) -> dict[int, str]:
    """The names of all flows of a trial, by number: those that their samples bear."""
    named = [
        {"flow": flow, "name": sender if traffic is None else f"{traffic} ({sender})"}
        for flow, sender, traffic in flows.select("flow", "from", "traffic").iter_rows()
    ]
    times_named = Counter(str(flow["name"]) for flow in named)
    return {flow["flow"]: _flow_name(flow, times_named) for flow in named}


def named(asked: str, names: Mapping[int, str]) -> int:
    """The number of the flow with a name; ValueError tells what there is."""
    from longfat.study.vocabulary import allowed

    for number, name in names.items():
        if name == asked:
            return number
    raise ValueError(f'--flow: "{asked}" is no flow of this trial; {allowed(asked, list(names.values()))}')


def _samples(name: str, raw: Mapping[str, Any], columns: Iterable[str]) -> Samples:
    found = {column: tuple(raw[column]) for column in columns if raw.get(column)}
    state = tuple(raw.get("state") or ())
    return Samples(name, tuple(raw["time"]), found, state, int(raw.get("flow", 0)))


def _meaningful(flow: Samples) -> Samples:
    """Without thresholds that are none, and what is in flight of a flow that never waits for an answer."""
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
    """The series with the named flows alone (all where none is named); ValueError tells what there is."""
    names = {flow.number: flow.name for flow in series.flows}
    numbers = {named(name, names) for name in flows} or set(names)
    return replace(series, flows=tuple(one for one in series.flows if one.number in numbers))


def labelled(series: Series, label: str) -> Series:
    """The same series, whose flows and queues bear a label behind their names."""

    def renamed(one: Samples) -> Samples:
        return replace(one, name=f"{one.name} ({label})")

    flows, queues = tuple(map(renamed, series.flows)), tuple(map(renamed, series.queues))
    return replace(series, flows=flows, queues=queues)


def overlaid(several: Sequence[Series]) -> Series:
    """Several series as one, to be drawn over each other; the numbers of its flows are not one trial's."""
    return Series(
        min(one.interval for one in several),
        tuple(flow for one in several for flow in one.flows),
        tuple(queue for one in several for queue in one.queues),
    )


def cut(series: Series, first: float | None, last: float | None) -> Series:
    """The samples between two times in s, ends included."""

    def part(one: Samples) -> Samples:
        start = 0 if first is None else bisect.bisect_left(one.time, first)
        stop = len(one.time) if last is None else bisect.bisect_right(one.time, last)
        return _picked(one, range(start, max(start, stop)))

    shown = replace(series, flows=tuple(map(part, series.flows)), queues=tuple(map(part, series.queues)))
    if not any(one.time for one in (*shown.flows, *shown.queues)):
        raise ValueError("nothing happened in that time: choose another --from and --to")
    return shown


def _picked(one: Samples, indices: Sequence[int]) -> Samples:
    columns = {name: tuple(values[i] for i in indices) for name, values in one.columns.items()}
    state = tuple(one.state[i] for i in indices) if one.state else ()
    return replace(one, time=tuple(one.time[i] for i in indices), columns=columns, state=state)


def points(one: Samples, column: str, most: int) -> list[tuple[float, float | None]]:
    """A column for drawing: at most about `most` points, among them the extremes of every stretch.

    A gap between values stays one.
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
    """A column as means of stretches of time, at most `most`: for rates, which single packets make jump."""
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
    """The stretches of time that a flow spent in one state: state, begin and end in s."""
    for state, group in groupby(zip(one.state, range(len(one.time)), strict=False), key=lambda pair: pair[0]):
        indices = [index for _, index in group]
        after = min(indices[-1] + 1, len(one.time) - 1)
        yield state, one.time[indices[0]], one.time[after]


def mean(one: Samples, column: str) -> float:
    """The mean of a column over its known samples, NaN where there is none."""
    known = one.known(column)
    return math.fsum(known) / len(known) if known else math.nan
