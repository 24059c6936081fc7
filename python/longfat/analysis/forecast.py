"""The interval in which one further trial falls, from trials of the same distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from longfat.analysis.statistics import quantile_t
from longfat.results.run import CONFIDENCE, Interval

NORMAL_TAIL = 1.96
"""Half of the width of a normal distribution's 95 % interval, in standard deviations."""


def bounded(interval: Interval, least: float = 0.0, most: float = math.inf) -> Interval:
    """Returns the interval without what no sample can be: below `least` or above `most`.

    >>> bounded(Interval(4.0, 0.9, 5.4), least=1.6)
    Interval(value=4.0, low=1.6, high=5.4)
    """
    low, high = max(interval.low, min(least, interval.value)), min(interval.high, max(most, interval.value))
    return Interval(interval.value, low, high)


def prediction_interval(samples: Sequence[float], model_error: float = 0.0) -> Interval:
    """Returns the mean of `samples`, and the interval that contains one more of them with 95 %.

    `model_error` is the relative standard deviation between reality and the model that gave positive samples.
    Positive samples count as log-normal, others as normal (Hahn and Meeker, Statistical Intervals, 1991,
    section 4.2). Bounds of less than two samples are NaN.

    >>> found = prediction_interval([9.0, 10.0, 11.0])
    >>> round(found.low, 2), round(found.high, 2)
    (6.05, 16.41)
    """
    values = np.asarray(samples, dtype=float)
    if values.size == 0:
        return Interval(math.nan, math.nan, math.nan)
    mean = float(values.mean())
    if values.size < 2:
        return Interval(mean, math.nan, math.nan)
    is_positive = bool(values.min() > 0)
    scale = np.log(values) if is_positive else values
    half = quantile_t(values.size, CONFIDENCE) * float(scale.std(ddof=1)) * math.sqrt(1 + 1 / values.size)
    if is_positive:
        half = math.hypot(half, NORMAL_TAIL * model_error)
    centre = float(scale.mean())
    low, high = centre - half, centre + half
    if is_positive:
        return Interval(mean, min(math.exp(low), mean), max(math.exp(high), mean))
    return Interval(mean, max(low, 0.0) if values.min() >= 0 else low, high)
