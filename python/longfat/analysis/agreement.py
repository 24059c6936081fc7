"""Do the worlds agree? The same cell in two worlds, and where they differ, what in the data tells why."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from longfat.analysis import formatting
from longfat.analysis.prediction import Setting, numbers
from longfat.analysis.statistics import paired, ratio
from longfat.study.vocabulary import canonical

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longfat.results import Cell, CellResult, Interval

LIMIT = 0.10
"""Worlds whose goodput differs by this much, relative to the first, are said to differ."""

SHORT_TRIP = 0.002
"""Round trips below this, in s, are of the order of a computer's own scheduling."""

FAST_PACKETS = 20_000
"""Packets per second beyond which a relay of three processes on one computer is itself the bottleneck."""

METRIC = "goodput_bps"


@dataclass(frozen=True)
class Agreement:
    """One cell in two worlds: `ratio` is the goodput of the other over that of the first."""

    cell: Cell
    other_world: str
    ratio: Interval
    differs: bool
    causes: tuple[str, ...]


def agreements(results: Sequence[CellResult]) -> list[Agreement]:
    """Every cell that two worlds share, the study's first world against each other one, in order."""
    by_cell: dict[str, dict[str, CellResult]] = {}
    for result in results:
        key = canonical([result.cell.protocol, result.cell.params])
        by_cell.setdefault(key, {})[result.cell.world] = result
    found = []
    for in_worlds in by_cell.values():
        first, *others = in_worlds.values()
        found += [agreement for other in others if (agreement := _compare(first, other)) is not None]
    return found


def _compare(first: CellResult, other: CellResult) -> Agreement | None:
    b, a = paired(first, other, METRIC)
    of = ratio(a, b)
    if not math.isfinite(of.mean):
        return None
    differs = abs(of.mean - 1) >= LIMIT
    causes = tuple(_causes(first, other, of)) if differs else ()
    return Agreement(first.cell, other.cell.world, of, differs, causes)


def _causes(first: CellResult, other: CellResult, of: Interval) -> list[str]:
    """What the data says of a difference; each is a fact of this cell, the likeliest first."""
    causes = []
    if math.isfinite(of.low) and of.low <= 1 <= of.high:
        causes.append(f"the interval {formatting.bounds(of)} still holds 1: more repeats may settle it")
    setting = numbers(first.cell.spec)
    if setting is not None and setting.round_trip < SHORT_TRIP:
        trip = formatting.quantity(setting.round_trip, "s") if setting.round_trip > 0 else "no time"
        causes.append(
            f"the path's round trip takes {trip}: on wall time the computer's own scheduling takes longer"
        )
    causes += _timeout_cause(first, other, setting)
    causes += _delay_cause(first, other)
    packets = _packets_per_second(first)
    if packets > FAST_PACKETS:
        causes.append(f"{packets:,.0f} packets/s are more than processes on one computer keep up with")
    failed = sum(other.failures.values())
    if failed:
        causes.append(f"{failed} trials failed in the world {other.cell.world}")
    return causes or ["round trips, timeouts and failures are alike: nothing in the records tells why"]


def _timeout_cause(first: CellResult, other: CellResult, setting: Setting | None) -> list[str]:
    a, b = _mean(first, "timeouts"), _mean(other, "timeouts")
    if not (math.isfinite(a) and math.isfinite(b)) or abs(b - a) < max(1.0, 0.1 * max(a, b)):
        return []
    text = f"timeouts differ: {formatting.digits(a)} and {formatting.digits(b)} a trial"
    if setting is not None and b > a:
        text += f", each of which costs about {formatting.quantity(setting.timeout, 's')}"
    return [text]


def _delay_cause(first: CellResult, other: CellResult) -> list[str]:
    a, b = _mean(first, "rtt_p50_s"), _mean(other, "rtt_p50_s")
    if not (math.isfinite(a) and math.isfinite(b)) or a <= 0 or abs(b / a - 1) < LIMIT / 2:
        return []
    alone = f"{formatting.TIMES}{formatting.digits(a / b, 2)} alone where a window limits"
    return [
        f"the median round trip was {formatting.quantity(a, 's')} and {formatting.quantity(b, 's')} ({alone})"
    ]


def _packets_per_second(result: CellResult) -> float:
    packets, seconds = _mean(result, "packets_sent"), _mean(result, "completion_s")
    return packets / seconds if seconds > 0 else 0.0


def _mean(result: CellResult, metric: str) -> float:
    interval = result.metrics.get(metric)
    return interval.mean if interval is not None else math.nan


def summary(found: Sequence[Agreement]) -> str:
    """One line: how many cells agree, and the one that differs most; empty where there is one world.

    >>> summary([])
    ''
    """
    if not found:
        return ""
    worst = max(found, key=lambda agreement: _distance(agreement.ratio.mean))
    worlds = f"{worst.cell.world} and {worst.other_world}"
    close = sum(not agreement.differs for agreement in found)
    place = formatting.place(worst.cell.params)
    at = f"{worst.cell.protocol}{f' at {place}' if place else ''}"
    furthest = f"furthest apart: {at}, {formatting.TIMES}{formatting.digits(worst.ratio.mean)}"
    return f"{worlds} agree within {LIMIT:.0%} in {close} of {len(found)} cells; {furthest}"


def _distance(of: float) -> float:
    return abs(math.log(of)) if of > 0 else math.inf
