"""Possible causes of a difference between two worlds, from a cell's records, the likeliest first."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from longfat.analysis.prediction import Setting, numbers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from longfat.results.run import CellResult

APART = 0.10
"""Counts and times that differ by this share of the larger may cause other differences."""

SHORT_TRIP = 0.002
"""Round trips below this, in s, are as short as the delays of a computer's scheduler."""

FAST_PACKETS = 20_000
"""Packets per second beyond which processes on one computer are the bottleneck."""

LATE = 0.5
"""An emulator whose delay is this share of a difference, both relative, may have caused it."""

LEAST_TIMEOUT = 0.2
"""The smallest retransmission timeout of Linux's TCP, in s (`TCP_RTO_MIN`)."""

_COUNTERS = (("timeouts", 1.0), ("retransmissions", 3.0), ("queue_mean_packets", 1.0))
"""Counters that can explain a difference, and the smallest difference that is reported."""

Kind = Literal[
    "uncertain",
    "short-path",
    "late",
    "stalled-timeouts",
    "stalled",
    "counter",
    "smallest-rtt",
    "median-rtt",
    "fast",
    "failures",
    "unknown",
]


@dataclass(frozen=True)
class Cause:
    """One possible cause; `figures` are its numbers by name, in s, packets or as shares."""

    kind: Kind
    figures: Mapping[str, float] = field(default_factory=dict)
    name: str = ""
    """The metric of a counter, or the world that a cause is about."""


def causes(first: CellResult, other: CellResult, missed: Sequence[str], *, unsure: bool) -> list[Cause]:
    """Returns possible causes of a cell's differences in the metrics `missed`."""
    setting = numbers(first.cell.spec)
    found = []
    if unsure:
        found.append(Cause("uncertain"))
    if setting is not None and setting.round_trip < SHORT_TRIP:
        found.append(Cause("short-path", {"rtt": setting.round_trip}))
    found += _lateness(first, other, missed, setting)
    found += _counters(first, other, setting)
    found += _smallest_rtt(first, other)
    if "rtt_mean_s" not in missed:
        found += _median_rtt(first, other)
    rate = _packets_per_second(first)
    if rate > FAST_PACKETS:
        found.append(Cause("fast", {"rate": rate}))
    failed = sum(other.failures.values())
    if failed:
        found.append(Cause("failures", {"count": failed}, other.cell.world))
    return found or [Cause("unknown")]


def _lateness(
    first: CellResult, other: CellResult, missed: Sequence[str], setting: Setting | None
) -> Iterator[Cause]:
    """An emulator that was late compared with the difference: lateness adds to delays."""
    apart = max((_apart(first, other, metric) for metric in missed), default=0.0)
    if apart <= 0:
        return
    late, most = (
        max((value for cell in (first, other) if math.isfinite(value := _mean(cell, metric))), default=0.0)
        for metric in ("emulator_late_p99_s", "emulator_late_max_s")
    )
    trips = (_mean(first, "rtt_p50_s"), setting.round_trip if setting is not None else math.nan)
    trip = next((trip for trip in trips if trip > 0), math.inf)
    if late / trip >= LATE * apart:
        yield Cause("late", {"late": late, "share": late / trip, "apart": apart})
    timeout = setting.timeout if setting is not None else LEAST_TIMEOUT
    seconds = _mean(other, "completion_s")
    if most >= timeout and _mean(other, "timeouts") > _mean(first, "timeouts"):
        yield Cause("stalled-timeouts", {"most": most})
    elif seconds > 0 and most / seconds >= LATE * apart:
        yield Cause("stalled", {"most": most, "trial": seconds})


def _apart(first: CellResult, other: CellResult, metric: str) -> float:
    """The difference of two means as a share of the larger; 0 if one is unknown."""
    a, b = _mean(first, metric), _mean(other, metric)
    if not (math.isfinite(a) and math.isfinite(b)) or a == b:
        return 0.0
    return abs(b - a) / max(abs(a), abs(b))


def _counters(first: CellResult, other: CellResult, setting: Setting | None) -> Iterator[Cause]:
    for metric, smallest in _COUNTERS:
        a, b = _mean(first, metric), _mean(other, metric)
        if not (math.isfinite(a) and math.isfinite(b)) or abs(b - a) < max(smallest, APART * max(a, b)):
            continue
        figures = {"first": a, "other": b}
        if metric == "timeouts" and setting is not None and b > a:
            figures["each"] = setting.timeout
        yield Cause("counter", figures, metric)


def _smallest_rtt(first: CellResult, other: CellResult) -> Iterator[Cause]:
    """A queue that drains in one world only: delay-based controllers estimate the path from this minimum."""
    a, b = _mean(first, "rtt_min_s"), _mean(other, "rtt_min_s")
    if math.isfinite(a) and math.isfinite(b) and abs(b - a) >= APART / 2 * max(a, b):
        emptier = first.cell.world if a < b else other.cell.world
        yield Cause("smallest-rtt", {"first": a, "other": b}, emptier)


def _median_rtt(first: CellResult, other: CellResult) -> Iterator[Cause]:
    a, b = _mean(first, "rtt_p50_s"), _mean(other, "rtt_p50_s")
    if math.isfinite(a) and math.isfinite(b) and min(a, b) > 0 and abs(b / a - 1) >= APART / 2:
        yield Cause("median-rtt", {"first": a, "other": b})


def _packets_per_second(result: CellResult) -> float:
    packets, seconds = _mean(result, "packets_sent"), _mean(result, "completion_s")
    return packets / seconds if seconds > 0 else 0.0


def _mean(result: CellResult, metric: str) -> float:
    interval = result.metrics.get(metric)
    return interval.mean if interval is not None else math.nan
