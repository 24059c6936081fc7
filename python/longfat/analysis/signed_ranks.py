"""The typical ratio of pairs, with an interval by Wilcoxon's signed ranks, for any symmetric noise."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from longfat.results.run import Interval


def ratio_of_pairs(a: Sequence[float], b: Sequence[float], confidence: float) -> Interval:
    """Returns the pseudomedian of a / b over pairs of positive numbers, with its interval.

    The pseudomedian is the median of the geometric means of all pairs of ratios (Hodges and Lehmann, Annals
    of Mathematical Statistics 34, 1963). The interval inverts Wilcoxon's signed-rank test of the logarithms
    (Hollander, Wolfe and Chicken, Nonparametric Statistical Methods, 3rd edition, section 3.3). Its
    confidence is at least the given one if they are distributed symmetrically, as those of two samples of one
    distribution are, and outliers hardly widen it. With too few pairs for the confidence, it is unbounded.

    >>> found = ratio_of_pairs([5.0, 6.0, 7.0, 9.0, 8.0], [1.0] * 5, 0.90)
    >>> round(found.value, 3), round(found.low, 3), round(found.high, 3)
    (6.928, 5.0, 9.0)
    >>> ratio_of_pairs([5.0, 6.0, 7.0, 9.0, 8.0], [1.0] * 5, 0.95).high
    inf
    """
    logarithms = np.log(np.asarray(a, dtype=float)) - np.log(np.asarray(b, dtype=float))
    first, second = np.triu_indices(logarithms.size)
    means = np.sort(logarithms[first] + logarithms[second]) / 2
    left_out = _left_out(logarithms.size, (1 - confidence) / 2)
    low, high = (-np.inf, np.inf) if left_out == 0 else (means[left_out - 1], means[-left_out])
    value, low, high = (float(number) for number in np.exp((np.median(means), low, high)))
    return Interval(value, low, high)


@lru_cache(maxsize=64)
def _left_out(count: int, error: float) -> int:
    """Returns the rank of the lower bound among the sorted means, from 1; 0 if there is none.

    It is the largest k for which the sum of positive ranks is below k with at most this probability.
    """
    # The number of subsets of 1 ... count with each sum, over that of all subsets.
    chances = np.zeros(count * (count + 1) // 2 + 1)
    chances[0] = 1.0
    for rank in range(1, count + 1):
        chances[rank:] = (chances[rank:] + chances[:-rank]) / 2
        chances[:rank] /= 2
    return int(np.searchsorted(np.cumsum(chances), error, side="right"))
