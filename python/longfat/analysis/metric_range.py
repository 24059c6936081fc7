"""The range of possible values of a metric, which its intervals cannot leave.

The mean of values within a range is within it, too. So an interval of the mean that is cut at the range
contains the true mean exactly as often as the whole interval. The vocabulary declares the range of each
metric.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from longfat.results.run import Interval
from longfat.study.vocabulary import metrics, whole_metric

ONE_OVER = "one_over"
"""The key of a bound that is the reciprocal of another metric."""


class Range(NamedTuple):
    """The smallest and the largest possible value; infinite without a bound."""

    low: float = -math.inf
    high: float = math.inf

    def cut(self, interval: Interval) -> Interval:
        """Returns the part of an interval within the range; unknown bounds stay unknown.

        >>> Range(0.0, 1.0).cut(Interval(0.98, 0.95, 1.01))
        Interval(value=0.98, low=0.95, high=1.0)
        >>> Range(0.0, 1.0).cut(Interval(0.98, math.nan, math.nan))
        Interval(value=0.98, low=nan, high=nan)
        """
        # A value outside the range (rounding) stays within its interval.
        value, low, high = interval.value, interval.low, interval.high
        return Interval(
            value,
            min(self.low, value) if low < self.low else low,
            max(self.high, value) if high > self.high else high,
        )

    def excludes_half_width(self, interval: Interval) -> bool:
        """Returns whether the mean plus or minus the larger distance to a bound leaves the range.

        >>> Range(0.0).excludes_half_width(Interval(5.5, 0.0, 15.3))
        True
        >>> Range(0.0).excludes_half_width(Interval(5.5, 4.0, 7.0))
        False
        >>> Range().excludes_half_width(Interval(5.5, 0.0, 15.3))
        False
        """
        mean, half = interval.mean, max(interval.mean - interval.low, interval.high - interval.mean)
        slack = 1e-9 * abs(mean)
        return mean - half < self.low - slack or mean + half > self.high + slack

    def minus(self, other: Range, weight: float = 1.0) -> Range:
        """Returns the range of a value minus `weight` times another; the weight is not negative.

        >>> Range(0.0, 1.0).minus(Range(0.0, 1.0), 0.5)
        Range(low=-0.5, high=1.0)
        """
        return Range(self.low - _times(weight, other.high), self.high - _times(weight, other.low))

    def plus(self, amount: float) -> Range:
        """Returns the range of a sum with a constant."""
        return Range(self.low + amount, self.high + amount)

    def times(self, weight: float) -> Range:
        """Returns the range of a multiple; the weight is not negative."""
        return Range(_times(weight, self.low), _times(weight, self.high))

    def over(self, other: Range) -> Range:
        """Returns the range of the ratio to another value; both are not negative.

        >>> Range(0.5, 1.0).over(Range(0.25, 1.0)), Range(0.0, 1.0).over(Range(0.0, 1.0))
        (Range(low=0.5, high=4.0), Range(low=0.0, high=inf))
        """
        low = self.low / other.high if self.low > 0 and other.high > 0 else 0.0
        return Range(low, self.high / other.low if other.low > 0 else math.inf)


def range_of(metric: str, samples: Mapping[str, Sequence[float]]) -> Range:
    """Returns the range of a metric in trials; `samples` are the values of their metrics.

    >>> range_of("share", {}), range_of("jain", {"flows_sharing": [4.0, 2.0]})
    (Range(low=0.0, high=1.0), Range(low=0.25, high=1.0))
    """
    low, high = metrics().get(whole_metric(metric), {}).get("range", (None, None))
    if isinstance(low, dict):
        counts = [count for count in samples.get(low[ONE_OVER], ()) if math.isfinite(count)]
        low = 1 / max(counts) if counts and max(counts) > 0 else 0.0
    return Range(-math.inf if low is None else low, math.inf if high is None else high)


def _times(weight: float, bound: float) -> float:
    return 0.0 if weight == 0 else weight * bound
