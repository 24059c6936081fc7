"""A transfer over time in a bounded number of parts: slices with their figures, and bands with a cause."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from longfat.analysis.captures.explained import Direction

Part = TypeVar("Part")
STALL = "receiver-stall"
LEAST = 0.9
"""Idle RTTs below which a slice is joined with its neighbours."""
PAUSE = 2.0
"""Idle RTTs above which a slice stays apart from its neighbours."""


@dataclass(frozen=True)
class Slice:
    """A part of a transfer: times in s since the first packet, the largest flight and window in bytes.

    `rtt` is the smallest RTT in s, and `rate` the mean rate in bit/s. A pause has neither window nor RTT.
    """

    start: float
    end: float
    flight: int
    window: int | None
    rtt: float | None
    rate: float
    retransmissions: int


@dataclass(frozen=True)
class Band:
    """An interval with one main cause; `frames` are the sender's first and last one, 0 without one."""

    start: float
    end: float
    cause: str
    frames: tuple[int, int]


def slices(one: Direction, most: int) -> list[Slice]:
    """Returns at most `most` slices without gaps, each about an idle RTT or more unless between pauses."""
    groups = _of_a_round_trip(_read(one), one.path["base_rtt_s"] or 0.0)
    return [_joined(group) for group in _batches([_joined(group) for group in groups], most)]


def bands(one: Direction, most: int) -> list[Band]:
    """Returns at most `most` bands; if there are more intervals, a band has the cause of most of its time."""
    found = [
        Band(row["start_s"], row["end_s"], row["cause"], (row["frames"][0], row["frames"][1]))
        for row in one.document["intervals"]
    ]
    mixed = [_united(group) for group in _batches(found, most)]
    return [_united(list(group)) for _, group in groupby(mixed, lambda band: band.cause)]


def _read(one: Direction) -> Iterator[Slice]:
    """The slices of the native part. They have no gaps, so that their middles determine their ends."""
    stalls = [(row["start_s"], row["end_s"]) for row in one.document["intervals"] if row["cause"] == STALL]
    start = one.document["start_s"]
    for row in one.document["series"]:
        middle = row["time_s"]
        # Without packets the native part has a window of 0, as in a stall.
        is_known = row["window"] or row["flight"] or any(low <= middle <= high for low, high in stalls)
        window = row["window"] if is_known else None
        end = max(start, 2 * middle - start)
        yield Slice(start, end, row["flight"], window, row["rtt_s"], row["rate_bps"], row["repeated"])
        start = end


def _of_a_round_trip(found: Iterable[Slice], round_trip: float) -> list[list[Slice]]:
    """Groups neighbours up to a duration. A rate over less than a round trip shows the bursts of a window."""
    groups: list[list[Slice]] = []

    def close() -> None:
        if (
            len(groups) > 1
            and _time(groups[-1]) < LEAST * round_trip
            and not _is_pause(groups[-2], round_trip)
        ):
            last = groups.pop()
            groups[-1] += last

    for one in found:
        is_pause = _is_pause([one], round_trip)
        if is_pause:
            close()
        if groups and not is_pause and _time(groups[-1]) < LEAST * round_trip:
            groups[-1].append(one)
        else:
            groups.append([one])
    close()
    return groups


def _is_pause(group: Sequence[Slice], round_trip: float) -> bool:
    return len(group) == 1 and _time(group) > PAUSE * round_trip


def _time(group: Sequence[Slice]) -> float:
    return group[-1].end - group[0].start


def _batches(parts: Sequence[Part], most: int) -> Iterator[list[Part]]:
    size = max(1, math.ceil(len(parts) / most))
    for first in range(0, len(parts), size):
        yield list(parts[first : first + size])


def _joined(group: Sequence[Slice]) -> Slice:
    start, end = group[0].start, group[-1].end
    bits = sum(one.rate * (one.end - one.start) for one in group)
    return Slice(
        start,
        end,
        max(one.flight for one in group),
        max((one.window for one in group if one.window is not None), default=None),
        min((one.rtt for one in group if one.rtt is not None), default=None),
        bits / (end - start) if end > start else 0.0,
        sum(one.retransmissions for one in group),
    )


def _united(group: Sequence[Band]) -> Band:
    times: dict[str, float] = {}
    for one in group:
        times[one.cause] = times.get(one.cause, 0.0) + one.end - one.start
    frames = [frame for one in group for frame in one.frames if frame]
    cause = max(times, key=lambda cause: times[cause])
    return Band(group[0].start, group[-1].end, cause, (min(frames, default=0), max(frames, default=0)))
