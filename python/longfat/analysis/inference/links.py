"""Latency and bandwidth of each link of a path, by low round trips to its routers.

Without queues the round trip of a packet of s bytes to router k is a line over s: A + b s + c r, where b is
the sum of 1 / bandwidth of the k links there, c that of the links back, and r the size of the answer (as
pathchar does it: Jacobson 1997; Downey, Using pathchar to estimate Internet link characteristics, SIGCOMM
1999). Queues add to it, so that low round trips of each size count: the least, or one that a part of them is
below, since clocks and schedulers err both ways; whichever makes the straightest lines. Routers
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

from longfat.analysis.inference.lines import RESAMPLES, Array, bounds, line, resampled
from longfat.analysis.inference.samples import Router, Samples

BITS = 8
LEAST_SIZES = 4
"""Sizes below which there is no line."""
SLOW_S = 20e-6
"""A router that is by so much more slower than the next one answers slowly, in s of the round trip."""
PARTS = (0.0, 0.1, 0.25, 0.5)
"""Which part of a size's round trips lies below its low one: that with the straightest lines is taken."""
SURE, OTHER_S = 0.997, 50e-6
"""The way back is another than the way there where that is as sure, and its answers take so much longer."""
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
    """A router's line over sizes whose answers are of `answer` bytes: the figure first, then resampled ones.

    `back` is what smaller answers tell of the way back, if there are any. An echo's answers are as large as
    what was sent, and its slope is there and back together.
    """

    router: Router
    height: Array
    slope: Array
    answer: float
    back: Array | None
    is_echo: bool


@dataclass(frozen=True)
class _Sums:
    """Of all links up to a router: there and back without sending, and seconds a byte each way."""

    fixed: Array
    there: Array
    back: Array


def infer(samples: Samples) -> Path:
    """What is known so far; no links where nobody answered often enough."""
    random = np.random.default_rng(_SEED)
    routers = samples.path()
    part = min(PARTS, key=lambda part: _scatter(routers, part))
    found = [one for router in routers if (one := _line_of(router, part, random)) is not None]
    slow: list[int] = []
    while True:
        sums, before = _Sums(*(np.zeros(RESAMPLES + 1) for _ in range(3))), 0
        links: list[Link] = []
        dropped = None
        for one in found:
            link, sums, is_below = _link(before, sums, one)
            if is_below and before:
                dropped = before
                break
            links.append(link)
            before = one.router.ttl
        if dropped is None:
            return Path(tuple(links), tuple(sorted(slow)))
        slow.append(dropped)
        found = [one for one in found if one.router.ttl != dropped]


def _scatter(routers: Sequence[Router], part: float) -> float:
    """How far the low round trips are from their lines, over all routers."""
    found = 0.0
    for router in routers:
        points = _points(router, part)
        if points is not None:
            height, slope = line(points.sizes[points.level], points.low[None, points.level])
            off = points.low[points.level] - height[0] - slope[0] * points.sizes[points.level]
            found += float(np.median(np.abs(off - np.median(off))))
    return found


@dataclass(frozen=True)
class _Points:
    """Low round trips and bytes of answers by size; `level` are sizes whose answers are of one size."""

    sizes: Array
    low: Array
    answers: Array
    level: np.ndarray
    is_echo: bool


def _points(router: Router, part: float) -> _Points | None:
    trips, address = router.seconds(), router.address
    if address is None or len(trips) < LEAST_SIZES:
        return None
    sizes = np.array(sorted(trips), dtype=float)
    low = np.array([np.quantile(trips[int(size)], part) for size in sizes])
    answers = np.array([router.answers[address, int(size)] for size in sizes], dtype=float)
    level = answers == answers.max()
    # Where every packet comes back in full, there and back cannot be told apart.
    is_echo = bool((router.is_end and np.all(answers == sizes)) or level.sum() < LEAST_SIZES)
    return _Points(sizes, low, answers, np.ones_like(level) if is_echo else level, is_echo)


def _line_of(router: Router, part: float, random: np.random.Generator) -> _Line | None:
    points = _points(router, part)
    if points is None:
        return None
    sizes, least, answers, level = points.sizes, points.low, points.answers, points.level
    whole = float(answers.max())
    if points.is_echo:
        height, slope = resampled(sizes, least, random)
        return _Line(router, height, slope, 0.0, None, is_echo=True)
    height, slope = resampled(sizes[level], least[level], random)
    back = None
    if (~level).any():
        # What smaller answers of smaller packets save on the way back.
        small = least[~level] + _noise(
            least[level] - height[0] - slope[0] * sizes[level], (~level).sum(), random
        )
        saved = height[:, None] + slope[:, None] * sizes[~level] - small
        back = np.median(saved / (whole - answers[~level]), axis=1)
    return _Line(router, height, slope, whole, back, is_echo=False)


def _noise(residuals: Array, count: int, random: np.random.Generator) -> Array:
    """Residuals drawn for so many points: none in the first row, and none on average in the others."""
    drawn = residuals[random.integers(len(residuals), size=(RESAMPLES + 1, count))]
    drawn -= np.median(residuals)
    drawn[0] = 0.0
    return drawn


def _link(before: int, sums: _Sums, line: _Line) -> tuple[Link, _Sums, bool]:
    """The link behind router `before`, the sums with it, and whether it is less than nothing."""
    there = (line.slope - sums.there - sums.back) / 2 if line.is_echo else line.slope - sums.there
    back, is_other = there, False
    if line.back is not None:
        other = line.back - sums.back - there
        low, high = bounds(other[1:], SURE)
        is_other = (low > 0 or high < 0) and abs(other[0]) * line.answer > OTHER_S
        back = np.maximum(line.back - sums.back, 0.0) if is_other else there
    after = _Sums(line.height - (sums.back + back) * line.answer, sums.there + there, sums.back + back)
    one_way, seen = _interval((after.fixed - sums.fixed) / 2), _interval(there)
    back_seen = _interval(back)
    assert line.router.address is not None
    link = Link(
        ttls=tuple(range(before + 1, line.router.ttl + 1)),
        address=line.router.address,
        latency=one_way,
        rate=Interval(BITS / seen.value, BITS / seen.high, BITS / seen.low) if seen.low > 0 else None,
        # A figure below nothing shows how large errors are: no bound is told beyond that.
        rate_at_least=None if seen.low > 0 else BITS / max(seen.high, _half(seen)),
        reverse_rate=BITS / back_seen.value if is_other and back_seen.low > 0 else None,
        slope=seen,
    )
    return link, after, seen.high < 0 or one_way.high < -SLOW_S / 2


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
