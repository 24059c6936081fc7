"""A line under points whose noise is never negative: least round trips by size.

Queues only add to a round trip, so that points lie on the line or above it, some of them far. The line is the
one of a low quantile (Koenker and Bassett, Regression quantiles, Econometrica 46, 1978), which points far
above it do not move. For a line it goes through two of the points: all pairs are tried.
"""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Array = NDArray[np.float64]

QUANTILE = 0.2
"""Which part of the points lies below the line: low, as noise is above, but not the least, as clocks err."""

MOST_AT_ONCE = 4_000_000
"""Residuals that are held in memory."""

RESAMPLES = 400
"""Of the residuals, for intervals."""


def line(x: Array, y: Array, quantile: float = QUANTILE) -> tuple[Array, Array]:
    """Intercepts and slopes of the lines through the rows of `y` over the same `x`.

    >>> intercept, slope = line(np.array([1.0, 2, 3, 4]), np.array([[5.0, 7, 90, 11]]))
    >>> intercept.tolist(), slope.tolist()
    ([3.0], [2.0])
    """
    first, second, span = _pairs(tuple(x))
    slopes = (y[:, second] - y[:, first]) / span
    intercepts = y[:, first] - slopes * x[first]
    best = np.empty(len(y), dtype=np.intp)
    step = max(1, MOST_AT_ONCE // (len(first) * len(x)))
    for begin in range(0, len(y), step):
        rows = slice(begin, begin + step)
        # rows, pairs, points
        residuals = y[rows, None, :] - intercepts[rows, :, None] - slopes[rows, :, None] * x
        cost = np.where(residuals >= 0, quantile * residuals, (quantile - 1) * residuals).sum(axis=2)
        best[rows] = cost.argmin(axis=1)
    every = np.arange(len(y))
    return intercepts[every, best], slopes[every, best]


@functools.lru_cache(maxsize=64)
def _pairs(x: tuple[float, ...]) -> tuple[NDArray[np.intp], NDArray[np.intp], Array]:
    first, second = np.triu_indices(len(x), 1)
    values = np.asarray(x)
    span = values[second] - values[first]
    apart = span != 0
    return first[apart], second[apart], span[apart]


def resampled(x: Array, y: Array, random: np.random.Generator) -> tuple[Array, Array]:
    """Intercepts and slopes of lines through points with each other's residuals; first of the line itself.

    Residuals of so few points are too small, which is made up for as usual (n / (n - 2)), and so are the
    tails of an interval of them (Student's t).
    """
    intercept, slope = (float(found[0]) for found in line(x, y[None, :]))
    points = len(x)
    residuals = y - intercept - slope * x
    grown = residuals * np.sqrt(points / max(points - 2, 1)) * _tails(max(points - 2, 1))
    drawn = grown[random.integers(points, size=(RESAMPLES, points))]
    others = line(x, intercept + slope * x + drawn)
    # What residuals do to the line on average (they are not centred) is no uncertainty.
    moved = [found - np.median(found) + own for found, own in zip(others, (intercept, slope), strict=True)]
    return np.concatenate(([intercept], moved[0])), np.concatenate(([slope], moved[1]))


@functools.lru_cache(maxsize=64)
def _tails(freedom: int) -> float:
    return float(stats.t.ppf(0.975, freedom) / stats.norm.ppf(0.975))


def bounds(values: Array, confidence: float = 0.95) -> tuple[float, float]:
    """The interval that holds such a part of what was resampled."""
    tail = (1 - confidence) / 2
    low, high = np.quantile(values, [tail, 1 - tail])
    return float(low), float(high)
