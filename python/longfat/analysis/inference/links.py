"""Latency and bandwidth of each link of a path, from low round trips to its routers.

Without queues, the round trip of a packet of s bytes to router k is a line over s: A + b s + c r, where b is
the sum of 1 / bandwidth of the k links there, c that of the links back, and r the size of the reply (the
method of pathchar: Jacobson 1997; Downey, Using pathchar to estimate Internet link characteristics, SIGCOMM
1999). Queues add to it, so only low round trips of each size count: the smallest or a low quantile, since
clocks and schedulers err both ways; the choice with the straightest lines is used. Routers quote the packet
in their reply, in full or up to 576 bytes (RFC 1812, section 4.3.2.3) or only its first bytes. So r is
constant for large packets, whose slope is b; small packets with smaller replies determine c. Without these,
the reverse direction is assumed to equal the forward direction. An echo has the slope b + c.

A link is the difference of two routers. A router that replies slowly, in software instead of the forwarding
hardware, makes the link to it too long and the next one too short. If the next one would be negative, both
are merged.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from longfat.analysis.inference.lines import RESAMPLES, Array, bounds, line, resampled
from longfat.analysis.inference.samples import Router, Samples
from longfat.results.run import Interval

BITS = 8
LEAST_SIZES = 4
"""Minimum number of sizes for a line."""
SLOW_S = 20e-6
"""A router replies slowly if its round trip exceeds that of the next router by this, in s."""
PARTS = (0.0, 0.1, 0.25, 0.5)
"""Candidate quantiles for the low round trip of a size; the one with the straightest lines is used."""
SURE, OTHER_S = 0.997, 50e-6
"""The directions differ if that is certain at this level and the replies take this much longer, in s."""
_SEED = 0x1F47


@dataclass(frozen=True)
class Link:
    """One link, or several that cannot be separated.

    `latency` is one-way, in s: half of both directions. `rate` is in bit/s; None if the transmission time is
    too short to measure, and `rate_at_least` is a lower bound if one is known. `reverse_rate` is set if it
    measurably differs from `rate`.
    """

    ttls: tuple[int, ...]
    address: str
    latency: Interval
    rate: Interval | None
    rate_at_least: float | None
    reverse_rate: float | None
    slope: Interval
    """Seconds per byte."""


@dataclass(frozen=True)
class Path:
    """All links from this host to the last router with a line."""

    links: tuple[Link, ...]
    slow: tuple[int, ...]
    """Routers that reply too slowly to separate the links on both sides."""

    @property
    def seconds_per_byte(self) -> float:
        """The forward transmission time per byte: the sum of 1 / bandwidth."""
        return math.fsum(link.slope.value for link in self.links)


@dataclass(frozen=True)
class _Line:
    """A router's line over sizes with replies of `answer` bytes: the estimate first, then resampled values.

    `back` is the reverse direction from smaller replies, if there are any. Echo replies are as large as the
    probes, so the slope of an echo covers both directions.
    """

    router: Router
    height: Array
    slope: Array
    answer: float
    back: Array | None
    is_echo: bool


@dataclass(frozen=True)
class _Sums:
    """Sums over all links up to a router: fixed delay of both directions, and seconds per byte of each."""

    fixed: Array
    there: Array
    back: Array


def infer(samples: Samples) -> Path:
    """Infers the links of a path from all samples; returns no links without enough replies."""
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
    """The distance of low round trips from their lines, over all routers."""
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
    """Low round trips and reply bytes by size; `level` marks the sizes whose replies have the same length."""

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
    # If every packet returns in full, the directions cannot be separated.
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
        # The time that smaller replies save in the reverse direction.
        small = least[~level] + _noise(
            least[level] - height[0] - slope[0] * sizes[level], (~level).sum(), random
        )
        saved = height[:, None] + slope[:, None] * sizes[~level] - small
        back = np.median(saved / (whole - answers[~level]), axis=1)
    return _Line(router, height, slope, whole, back, is_echo=False)


def _noise(residuals: Array, count: int, random: np.random.Generator) -> Array:
    """Resampled residuals for `count` points: zero in the first row, centred in the others."""
    drawn = residuals[random.integers(len(residuals), size=(RESAMPLES + 1, count))]
    drawn -= np.median(residuals)
    drawn[0] = 0.0
    return drawn


def _link(before: int, sums: _Sums, line: _Line) -> tuple[Link, _Sums, bool]:
    """The link behind router `before`, the sums including it, and whether it is negative."""
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
        # A negative estimate shows the size of the errors, which limits the bound.
        rate_at_least=None if seen.low > 0 else BITS / max(seen.high, seen.half_width),
        reverse_rate=BITS / back_seen.value if is_other and back_seen.low > 0 else None,
        slope=seen,
    )
    return link, after, seen.high < 0 or one_way.high < -SLOW_S / 2


def _interval(values: Array) -> Interval:
    low, high = bounds(values[1:])
    value = float(values[0])
    return Interval(value, min(low, value), max(high, value))


def converged(links: Sequence[Link], rate: float, latency: float, least_latency: float) -> list[bool]:
    """Whether each link's half-widths are within a share of the estimate, or within `least_latency`."""
    return [
        link.latency.half_width <= max(latency * abs(link.latency.value), least_latency)
        and link.rate is not None
        and link.slope.half_width <= rate * link.slope.value
        for link in links
    ]
