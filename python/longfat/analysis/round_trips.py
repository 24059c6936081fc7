"""What samples of round trips and transactions say: quantiles, loss, jitter and the line over sizes.

The rules, which the report repeats:

- Every interval has 95 % confidence.
- The interval of a quantile is between two of the samples, by their order alone, whatever the distribution
  (Conover, Practical Nonparametric Statistics, section 3.2); a side with too few samples for it is open.
- The interval of a share, such as loss, is Clopper's and Pearson's (Biometrika 26, 1934).
- Jitter is the mean difference between the round trips of two requests of one size that follow each other.
- The line over sizes is that of the least round trips, as in `longfat.analysis.inference.lines`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special, stats

from longfat.analysis.inference import lines
from longfat.analysis.statistics import CONFIDENCE

_LINE_FROM = 4
"""Sizes from which on there is a line."""


@dataclass(frozen=True)
class Bounded:
    """A figure and its interval; a side that is not known is NaN."""

    value: float
    low: float
    high: float

    def to_json(self) -> dict[str, float | None]:
        """With null for what is not known."""
        return {key: known(getattr(self, key)) for key in ("value", "low", "high")}


def known(value: float) -> float | None:
    """A number for JSON: null where there is none."""
    return value if math.isfinite(value) else None


def quantile(samples: Sequence[float], share: float) -> Bounded:
    """A quantile and the interval between two samples that holds it.

    >>> quantile([5.0, 1.0, 4.0, 2.0, 3.0, 6.0], 0.5)
    Bounded(value=3.5, low=1.0, high=6.0)
    >>> quantile([5.0, 1.0], 0.5)
    Bounded(value=3.0, low=nan, high=nan)
    """
    n = len(samples)
    if n == 0:
        return Bounded(math.nan, math.nan, math.nan)
    ordered = np.sort(np.asarray(samples, dtype=float))
    value = float(np.quantile(ordered, share))
    # As many samples as `low` lie below the quantile at least, as `high` at the most, each but for a tail.
    tail = (1 - CONFIDENCE) / 2
    low, high = (int(stats.binom.ppf(at, n, share)) for at in (tail, 1 - tail))
    if stats.binom.cdf(low, n, share) > tail:
        low -= 1
    below = float(ordered[low]) if low >= 0 else math.nan
    above = float(ordered[high]) if high < n else math.nan
    return Bounded(value, below, above)


def share(count: int, of: int) -> Bounded:
    """A part of all, such as what was lost, and its interval.

    >>> told = share(0, 10)
    >>> told.value, told.low, round(told.high, 3)
    (0.0, 0.0, 0.308)
    """
    if of == 0:
        return Bounded(math.nan, math.nan, math.nan)
    tail = (1 - CONFIDENCE) / 2
    low = 0.0 if count == 0 else float(special.betaincinv(count, of - count + 1, tail))
    high = 1.0 if count == of else float(special.betaincinv(count + 1, of - count, 1 - tail))
    return Bounded(count / of, low, high)


def jitter(samples: Sequence[float]) -> float:
    """The mean difference between round trips that follow each other; NaN where there are none.

    >>> jitter([1.0, 3.0, 2.0])
    1.5
    """
    return float(np.abs(np.diff(np.asarray(samples, dtype=float))).mean()) if len(samples) > 1 else math.nan


@dataclass(frozen=True)
class Times:
    """Round trips of one size on one clock, in seconds."""

    least: float
    median: Bounded
    p99: Bounded
    jitter: float

    @classmethod
    def of(cls, samples: Sequence[float]) -> Times:
        """Of the round trips in the order of their requests."""
        least = min(samples, default=math.nan)
        return cls(least, quantile(samples, 0.5), quantile(samples, 0.99), jitter(samples))

    def to_json(self) -> dict[str, Any]:
        """For a document."""
        return {
            "min": known(self.least),
            "median": self.median.to_json(),
            "p99": self.p99.to_json(),
            "jitter": known(self.jitter),
        }


@dataclass(frozen=True)
class Line:
    """Round trips by size: a latency at size 0, and seconds for each byte."""

    latency: Bounded
    per_byte: Bounded

    def to_json(self) -> dict[str, Any]:
        """For a document."""
        return {"latency_s": self.latency.to_json(), "seconds_per_byte": self.per_byte.to_json()}


def line(least: dict[int, float]) -> Line | None:
    """The line under the least round trips by size; None for fewer than four sizes.

    >>> found = line({size: 0.001 + size * 1e-6 for size in (100, 200, 300, 400)})
    >>> round(found.latency.value, 9), round(found.per_byte.value, 12)
    (0.001, 1e-06)
    """
    sizes = sorted(size for size, value in least.items() if math.isfinite(value))
    if len(sizes) < _LINE_FROM:
        return None
    x = np.asarray(sizes, dtype=float)
    y = np.asarray([least[size] for size in sizes])
    intercepts, slopes = lines.resampled(x, y, np.random.default_rng(1))
    told = [Bounded(float(found[0]), *lines.bounds(found)) for found in (intercepts, slopes)]
    return Line(*told)
