"""Statistics of round trips and transactions: quantiles, loss, jitter and the line over sizes.

The rules:

- Every interval has 95 % confidence.
- The interval of a quantile is bounded by two samples and independent of the distribution (Conover, Practical
  Nonparametric Statistics, section 3.2); a bound is unknown (NaN) if there are too few samples.
- Requests without a reply are slower than all others: a quantile that falls among them is unknown (NaN),
  and so is a bound.
- The interval of a share, such as loss, is that of Clopper and Pearson (Biometrika 26, 1934).
- Jitter is the mean absolute difference between consecutive replies to requests of the same size.
- The line over sizes fits the smallest round trips (`longfat.analysis.inference.lines`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from longfat.analysis import binomial
from longfat.analysis.inference import lines
from longfat.results.run import CONFIDENCE, Interval, known

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LINE_FROM = 4
"""Minimum number of sizes for a line."""


def quantile(samples: Sequence[float], share: float, beyond: int = 0) -> Interval:
    """A quantile of `samples` and of `beyond` values that exceed them, with its interval.

    >>> quantile([5.0, 1.0, 4.0, 2.0, 3.0, 6.0], 0.5)
    Interval(value=3.5, low=1.0, high=6.0)
    >>> quantile([5.0, 1.0], 0.5)
    Interval(value=3.0, low=nan, high=nan)
    >>> quantile([5.0, 1.0], 0.5, beyond=2), quantile([5.0, 1.0], 0.5, beyond=1)
    (Interval(value=nan, low=nan, high=nan), Interval(value=5.0, low=nan, high=nan))
    """
    n = len(samples) + beyond
    if not len(samples):
        return Interval(math.nan, math.nan, math.nan)
    ordered = np.sort(np.asarray(samples, dtype=float))
    value = _between(ordered, share * (n - 1)) if beyond else float(np.quantile(ordered, share))
    # The number of samples below the quantile is between `low` and `high`, except for the tails.
    tail = (1 - CONFIDENCE) / 2
    low, high = (binomial.ppf(at, n, share) for at in (tail, 1 - tail))
    if binomial.cdf(low, n, share) > tail:
        low -= 1
    below = float(ordered[low]) if 0 <= low < len(ordered) else math.nan
    above = float(ordered[high]) if high < len(ordered) else math.nan
    return Interval(value, below, above)


def _between(ordered: NDArray[np.float64], place: float) -> float:
    """The value at a place among sorted values, interpolated; NaN beyond the last one."""
    first = math.floor(place)
    last = math.ceil(place)
    if last >= len(ordered):
        return math.nan
    return float(ordered[first] + (place - first) * (ordered[last] - ordered[first]))


def share(count: int, of: int) -> Interval:
    """The share `count` / `of` with its interval.

    >>> found = share(0, 10)
    >>> found.value, found.low, round(found.high, 3)
    (0.0, 0.0, 0.308)
    """
    if of == 0:
        return Interval(math.nan, math.nan, math.nan)
    tail = (1 - CONFIDENCE) / 2
    low = 0.0 if count == 0 else binomial.inverse_beta(count, of - count + 1, tail)
    high = 1.0 if count == of else binomial.inverse_beta(count + 1, of - count, 1 - tail)
    return Interval(count / of, low, high)


def jitter(samples: Sequence[float]) -> float:
    """The mean absolute difference between consecutive round trips; NaN without any.

    >>> jitter([1.0, 3.0, 2.0])
    1.5
    """
    return float(np.abs(np.diff(np.asarray(samples, dtype=float))).mean()) if len(samples) > 1 else math.nan


@dataclass(frozen=True)
class Times:
    """Statistics of the round trips of one size on one clock, in seconds."""

    minimum: float
    median: Interval
    p99: Interval
    jitter: float

    @classmethod
    def of(cls, samples: Sequence[float], beyond: int = 0) -> Times:
        """Computes the statistics of round trips in the order of their requests; `beyond` have no reply."""
        return cls(
            min(samples, default=math.nan),
            quantile(samples, 0.5, beyond),
            quantile(samples, 0.99, beyond),
            jitter(samples),
        )

    def to_json(self) -> dict[str, Any]:
        """Returns the statistics as JSON values."""
        return {
            "min": known(self.minimum),
            "median": self.median.to_json(),
            "p99": self.p99.to_json(),
            "jitter": known(self.jitter),
        }


@dataclass(frozen=True)
class Line:
    """Round trips by size: the latency at size 0, and seconds per byte."""

    latency: Interval
    per_byte: Interval

    def to_json(self) -> dict[str, Any]:
        """Returns the statistics as JSON values."""
        return {"latency_s": self.latency.to_json(), "seconds_per_byte": self.per_byte.to_json()}


def line(least: dict[int, float]) -> Line | None:
    """The line through the smallest round trips by size; None for fewer than four sizes.

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
    return Line(*(Interval(float(found[0]), *lines.bounds(found)) for found in (intercepts, slopes)))
