"""The binomial distribution and the inverse of its tails, without SciPy, which takes seconds to import.

The regularised incomplete beta function is evaluated as a continued fraction (Abramowitz and Stegun, 26.5.8).
"""

from __future__ import annotations

import math

_TINY = 1e-300
_PRECISION = 1e-15
_MOST_TERMS = 100_000
_HALVINGS = 200


def cdf(count: int, of: int, share: float) -> float:
    """Returns the probability of at most `count` successes in `of` trials.

    >>> round(cdf(1, 2, 0.5), 12), cdf(-1, 2, 0.5), cdf(2, 2, 0.5)
    (0.75, 0.0, 1.0)
    """
    if count < 0:
        return 0.0
    if count >= of:
        return 1.0
    return incomplete_beta(of - count, count + 1, 1 - share)


def ppf(tail: float, of: int, share: float) -> int:
    """Returns the smallest number of successes whose `cdf` is at least `tail`.

    >>> ppf(0.5, 10, 0.5), ppf(0.025, 10, 0.5), ppf(0.01, 3, 0.1)
    (5, 2, 0)
    """
    low, high = 0, of
    while low < high:
        middle = (low + high) // 2
        # Rounding must not skip a value at which the cdf is exactly the tail.
        low, high = (low, middle) if cdf(middle, of, share) >= tail * (1 - 1e-12) else (middle + 1, high)
    return low


def incomplete_beta(a: float, b: float, x: float) -> float:
    """Returns the regularised incomplete beta function I_x(a, b).

    >>> round(incomplete_beta(2, 3, 0.4), 10)
    0.5248
    """
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    if x > (a + 1) / (a + b + 2):
        return 1.0 - incomplete_beta(b, a, 1 - x)
    scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(scale) / (a * _fraction(a, b, x))


def inverse_beta(a: float, b: float, probability: float) -> float:
    """Returns x with I_x(a, b) equal to a probability.

    >>> round(inverse_beta(2, 3, 0.5248), 10)
    0.4
    """
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if incomplete_beta(a, b, middle) < probability else (low, middle)
    return (low + high) / 2


def _fraction(a: float, b: float, x: float) -> float:
    """Returns the continued fraction 1 + d1/(1 + d2/(1 + ...)) by the modified method of Lentz."""
    value, c, d = 1.0, 1.0, 0.0
    for term in range(1, _MOST_TERMS):
        m = term // 2
        if term % 2:
            factor = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            factor = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1 / _not_zero(1 + factor * d)
        c = _not_zero(1 + factor / c)
        value *= c * d
        if abs(c * d - 1) < _PRECISION:
            break
    return value


def _not_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
