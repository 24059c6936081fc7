"""Latency and bandwidth of each link of a path, by the least round trips to its routers.

The least round trip of a packet of s bytes to router k is a line over s: A + b s + c r, where b is the sum of
1 / bandwidth of the k links there, c that of the links back, and r the size of the answer (as pathchar does
it: Jacobson 1997; Downey, Using pathchar to estimate Internet link characteristics, SIGCOMM 1999). Routers
quote the packet in their answer, in full or up to 576 bytes (RFC 1812, section 4.3.2.3) or only its first
bytes. So r is constant for large packets, and their slope is b alone; small ones whose answers are smaller
tell c. Where they do not, the way back is taken to be like the way there. An echo has the slope b + c.

A link is the difference of two routers. A router that answers slowly (its answers are not sent on by the same
hardware) makes the link to it too long and the next one too short: where the next one would be below nothing,
both are told as one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from longfat.analysis.inference.lines import Array, bounds, resampled
from longfat.analysis.inference.samples import Router, Samples

BITS = 8
LEAST_SIZES = 4
"""Sizes below which there is no line."""
SLOW_S = 20e-6
"""A router that is by so much more slower than the next one answers slowly, in s of the round trip."""
_SEED = 0x1F47


@dataclass(frozen=True)
class Interval:
    """A figure and the interval of 95 % confidence around it."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Link:
    """One link, or several that cannot be told apart.

    `latency` is one way, in s: half of what there and back take together. `rate` is in bit/s, None where
    sending takes too little time to be seen; then it is at least `rate_at_least`, where that is known.
    `reverse_rate` is told where it was seen to be another than `rate`.
    """

    ttls: tuple[int, ...]
    address: str
    latency: Interval
    rate: Interval | None
    rate_at_least: float | None
    reverse_rate: float | None
    slope: Interval
    """Seconds a byte."""


@dataclass(frozen=True)
class Path:
    """All links from here to the last router that has a line."""

    links: tuple[Link, ...]
    slow: tuple[int, ...]
    """Routers that answer too slowly to tell the links on both sides apart."""

    @property
    def seconds_per_byte(self) -> float:
        """What each byte adds to the way there: the sum of 1 / bandwidth."""
        return math.fsum(link.slope.value for link in self.links)


@dataclass(frozen=True)
class _Line:
    """A router's line: the figure first, then what was resampled."""

    router: Router
    fixed: Array
    there: Array
    back: Array
    is_echo: bool
    is_back_seen: bool


def infer(samples: Samples) -> Path:
    """What is known so far; no links where nobody answered often enough."""
    random = np.random.default_rng(_SEED)
    found = [line for router in samples.path() if (line := _line_of(router, random)) is not None]
    slow: list[int] = []
    while True:
        before: _Line | None = None
        links: list[Link] = []
        dropped = None
        for after in found:
            link, line, is_below = _link(before, after)
            if is_below and before is not None:
                dropped = before
                break
            links.append(link)
            before = line
        if dropped is None:
            return Path(tuple(links), tuple(sorted(slow)))
        slow.append(dropped.router.ttl)
        found = [line for line in found if line.router is not dropped.router]


def _line_of(router: Router, random: np.random.Generator) -> _Line | None:
    trips = router.seconds()
    address = router.address
    if address is None or len(trips) < LEAST_SIZES:
        return None
    sizes = np.array(sorted(trips), dtype=float)
    least = np.array([min(trips[int(size)]) for size in sizes])
    answers = np.array([router.answers[address, int(size)] for size in sizes], dtype=float)
    is_echo = bool(np.all(answers == sizes)) and router.is_end
    whole = answers.max()
    level = np.full(len(sizes), fill_value=True) if is_echo else answers == whole
    if level.sum() < LEAST_SIZES:
        # Every packet is quoted in full, so that there and back cannot be told apart.
        level, is_echo = np.full(len(sizes), fill_value=True), True
    fixed, there = resampled(sizes[level], least[level], random)
    if is_echo:
        return _Line(router, fixed, there, there, is_echo=True, is_back_seen=False)
    back, is_seen = there, False
    if (~level).any():
        # What smaller answers of smaller packets save on the way back.
        saved = (
            fixed[:, None]
            + there[:, None] * sizes[~level]
            - _shaken(least, fixed, there, sizes, level, random)
        )
        seen = np.median(saved / (whole - answers[~level]), axis=1)
        low, high = bounds((seen - there)[1:], 0.997)
        if low > 0 or high < 0:
            back, is_seen = np.maximum(seen, 0.0), True
    return _Line(router, fixed - back * whole, there, back, is_echo=False, is_back_seen=is_seen)


def _shaken(
    least: Array, fixed: Array, there: Array, sizes: Array, level: np.ndarray, random: np.random.Generator
) -> Array:
    """Round trips of small packets with the residuals of large ones; those that were seen first."""
    residuals = least[level] - fixed[0] - there[0] * sizes[level]
    drawn = residuals[random.integers(len(residuals), size=(len(fixed), int((~level).sum())))]
    drawn[0] = 0.0
    return np.asarray(
        least[~level] + drawn - np.where(np.arange(len(fixed)) > 0, np.median(drawn), 0.0)[:, None]
    )


def _link(before: _Line | None, line: _Line) -> tuple[Link, _Line, bool]:
    """The link between two routers, the second one's line, and whether the link is less than nothing."""
    fixed, there, back = (0.0, 0.0, 0.0) if before is None else (before.fixed, before.there, before.back)
    if line.is_echo:
        # There and back are alike behind the router before.
        half = (line.there - there - back) / 2
        line = _Line(line.router, line.fixed, there + half, back + half, is_echo=False, is_back_seen=False)
    latency = (line.fixed - fixed) / 2
    slope = line.there - there
    behind = line.back - back
    seen, one_way = _interval(slope), _interval(latency)
    is_below = seen.high < 0 or one_way.high < -SLOW_S / 2
    rate = Interval(BITS / seen.value, BITS / seen.high, BITS / seen.low) if seen.low > 0 else None
    other = None
    if line.is_back_seen:
        there_back = _interval(behind)
        other = BITS / there_back.value if there_back.low > 0 else None
    first = 1 if before is None else before.router.ttl + 1
    assert line.router.address is not None
    link = Link(
        ttls=tuple(range(first, line.router.ttl + 1)),
        address=line.router.address,
        latency=one_way,
        rate=rate,
        # A figure below nothing shows how large errors are: no bound is told beyond that.
        rate_at_least=BITS / max(seen.high, _half(seen)) if rate is None else None,
        reverse_rate=other,
        slope=seen,
    )
    return link, line, is_below


def _interval(values: Array) -> Interval:
    low, high = bounds(values[1:])
    value = float(values[0])
    return Interval(value, min(low, value), max(high, value))


def converged(links: Sequence[Link], rate: float, latency: float, least_latency: float) -> list[bool]:
    """Of each link, whether half of each interval is within a share of the figure, or of `least_latency`."""
    return [
        _half(link.latency) <= max(latency * abs(link.latency.value), least_latency)
        and link.rate is not None
        and _half(link.slope) <= rate * link.slope.value
        for link in links
    ]


def _half(interval: Interval) -> float:
    return (interval.high - interval.low) / 2
