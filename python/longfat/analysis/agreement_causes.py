"""Why two worlds differ in a cell, as far as its records tell: facts of the cell, the likeliest first."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from longfat.analysis.prediction import Setting, numbers
from longfat.presentation import formatting

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from longfat.results import CellResult

APART = 0.10
"""Counts and times that differ by this part of the larger may have made others differ."""

SHORT_TRIP = 0.002
"""Round trips below this, in s, are of the order of a computer's own scheduling."""

FAST_PACKETS = 20_000
"""Packets per second beyond which processes on one computer are themselves the bottleneck."""

LATE = 0.5
"""An emulator that was late by this part of a difference, each relative to its whole, may have made it."""

LEAST_TIMEOUT = 0.2
"""The least retransmission timeout of Linux's TCP, in s (`TCP_RTO_MIN`)."""

_WORDS = (
    ("timeouts", 1.0, "timeouts"),
    ("retransmissions", 3.0, "packets sent again"),
    ("queue_mean_packets", 1.0, "packets in the queue on average"),
)
"""Counters that tell two courses of a connection apart, and the least difference that is worth a word."""


def causes(first: CellResult, other: CellResult, missed: Sequence[str], *, unsure: bool) -> list[str]:
    """What the records say of a cell whose worlds differ in the metrics `missed`."""
    setting = numbers(first.cell.spec)
    found = []
    if unsure:
        found.append("its interval reaches across the limit: more repeats may settle it")
    if setting is not None and setting.round_trip < SHORT_TRIP:
        trip = formatting.quantity(setting.round_trip, "s") if setting.round_trip > 0 else "no time"
        found.append(
            f"the path's round trip takes {trip}: on wall time the computer's own scheduling may take longer"
        )
    found += _lateness(first, other, missed, setting)
    found += _counters(first, other, setting)
    found += _least_trips(first, other)
    if "rtt_mean_s" not in missed:
        found += _trips(first, other)
    packets = _packets_per_second(first)
    if packets > FAST_PACKETS:
        found.append(f"{packets:,.0f} packets/s may be more than processes on one computer keep up with")
    failed = sum(other.failures.values())
    if failed:
        found.append(f"{failed} trials failed in the world {other.cell.world}")
    return found or ["round trips, losses and queues are alike: nothing in the records tells why"]


def _lateness(
    first: CellResult, other: CellResult, missed: Sequence[str], setting: Setting | None
) -> Iterator[str]:
    """An emulator that was late, where that is large beside the difference: it adds to delays itself."""
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
        yield (
            f"the machine was late: 1 in 100 times by {formatting.quantity(late, 's')} or more, "
            f"{late / trip * 100:.0f} % of a round trip, where worlds are {apart * 100:.0f} % apart"
        )
    timeout = setting.timeout if setting is not None else LEAST_TIMEOUT
    seconds = _mean(other, "completion_s")
    stood = f"the emulator stood still for up to {formatting.quantity(most, 's')}"
    if most >= timeout and _mean(other, "timeouts") > _mean(first, "timeouts"):
        yield f"{stood}, which may cost timeouts"
    elif most / seconds >= LATE * apart:
        yield f"{stood} of the {formatting.quantity(seconds, 's')} that a trial took"


def _apart(first: CellResult, other: CellResult, metric: str) -> float:
    """The difference of two means as a part of the larger; 0 where one is unknown."""
    a, b = _mean(first, metric), _mean(other, metric)
    if not (math.isfinite(a) and math.isfinite(b)) or a == b:
        return 0.0
    return abs(b - a) / max(abs(a), abs(b))


def _counters(first: CellResult, other: CellResult, setting: Setting | None) -> Iterator[str]:
    for metric, least, words in _WORDS:
        a, b = _mean(first, metric), _mean(other, metric)
        if not (math.isfinite(a) and math.isfinite(b)) or abs(b - a) < max(least, APART * max(a, b)):
            continue
        text = f"{words}: {formatting.digits(a)} and {formatting.digits(b)}"
        if metric == "timeouts" and setting is not None and b > a:
            text += f" a trial, each of which costs about {formatting.quantity(setting.timeout, 's')}"
        yield text


def _least_trips(first: CellResult, other: CellResult) -> Iterator[str]:
    """A queue that drains in one world alone: a delay-based controller takes its least for the path's."""
    a, b = _mean(first, "rtt_min_s"), _mean(other, "rtt_min_s")
    if not (math.isfinite(a) and math.isfinite(b)) or abs(b - a) < APART / 2 * max(a, b):
        return
    trips = f"{formatting.quantity(a, 's')} and {formatting.quantity(b, 's')}"
    emptier = first.cell.world if a < b else other.cell.world
    yield f"the least round trip was {trips}: the queue came closer to empty in {emptier}"


def _trips(first: CellResult, other: CellResult) -> Iterator[str]:
    a, b = _mean(first, "rtt_p50_s"), _mean(other, "rtt_p50_s")
    if not (math.isfinite(a) and math.isfinite(b)) or a <= 0 or abs(b / a - 1) < APART / 2:
        return
    alone = f"{formatting.TIMES}{formatting.digits(a / b, 2)} alone where a window limits"
    trips = f"{formatting.quantity(a, 's')} and {formatting.quantity(b, 's')}"
    yield f"the median round trip was {trips} ({alone})"


def _packets_per_second(result: CellResult) -> float:
    packets, seconds = _mean(result, "packets_sent"), _mean(result, "completion_s")
    return packets / seconds if seconds > 0 else 0.0


def _mean(result: CellResult, metric: str) -> float:
    interval = result.metrics.get(metric)
    return interval.mean if interval is not None else math.nan
