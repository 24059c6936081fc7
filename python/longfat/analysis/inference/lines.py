"""A line through the lower edge of points with positive noise: smallest round trips by size.

Queues only add to a round trip, so points are on the line or above it, some of them far above. The line is
the regression of a low quantile (Koenker and Bassett, Regression quantiles, Econometrica 46, 1978), which
outliers above do not affect. It passes through two of the points, so all pairs are tried.
"""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

QUANTILE = 0.2
"""The share of points below the line: low since noise is positive, above zero since clocks err."""

MOST_AT_ONCE = 4_000_000
"""Maximum number of residuals in memory."""

RESAMPLES = 400
"""Number of resamples of the residuals, for intervals."""


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
    """Intercepts and slopes of lines through points with resampled residuals; the first is the line itself.

    Residuals of few points are too small: they are scaled by n / (n - 2), and by the quantiles of Student's t
    for the tails of an interval.
    """
    intercept, slope = (float(found[0]) for found in line(x, y[None, :]))
    points = len(x)
    residuals = y - intercept - slope * x
    grown = residuals * np.sqrt(points / max(points - 2, 1)) * _tails(max(points - 2, 1))
    drawn = grown[random.integers(points, size=(RESAMPLES, points))]
    others = line(x, intercept + slope * x + drawn)
    # The mean shift of the line by residuals that are not centred is not an uncertainty.
    moved = [found - np.median(found) + own for found, own in zip(others, (intercept, slope), strict=True)]
    return np.concatenate(([intercept], moved[0])), np.concatenate(([slope], moved[1]))


@functools.lru_cache(maxsize=64)
def _tails(freedom: int) -> float:
    from scipy import special

    return float(special.stdtrit(freedom, 0.975) / special.ndtri(0.975))


def bounds(values: Array, confidence: float = 0.95) -> tuple[float, float]:
    """The interval that contains a share `confidence` of the resampled values."""
    tail = (1 - confidence) / 2
    low, high = np.quantile(values, [tail, 1 - tail])
    return float(low), float(high)
