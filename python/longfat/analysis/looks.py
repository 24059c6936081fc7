"""The looks of an adaptive run: the numbers of trials at which it decides whether to go on.

A run that adds trials until an interval is narrow enough, or a claim is decided, looks at its intervals
repeatedly, and 95 % intervals would be wrong more often than in 5 % of all runs. Looks are therefore at fixed
numbers of trials, each half as large again as the one before, and the intervals of look k = 1, 2, ... have an
error of 5 % / (k (k + 1)). These errors sum to at most 5 %, so that the intervals of all looks together have
95 % confidence, however many there are and whenever the run stops (the union bound; as the spending functions
of Lan and DeMets, Biometrika 70, 1983).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from longfat.results.run import CONFIDENCE

GROWTH = 1.5
"""Trials at a look over those at the look before."""


def _after(trials: int) -> int:
    return math.ceil(GROWTH * trials)


def looks(first: int) -> Iterator[int]:
    """Yields the numbers of trials of all looks.

    >>> from itertools import islice
    >>> list(islice(looks(20), 6))
    [20, 30, 45, 68, 102, 153]
    """
    trials = first
    while True:
        yield trials
        trials = max(trials + 1, _after(trials))


def next_look(trials: int, first: int) -> int:
    """Returns the number of trials at the first look after this number.

    >>> next_look(30, first=20)
    45
    """
    return next(look for look in looks(first) if look > trials)


def confidence(trials: int, first: int, together: float = CONFIDENCE) -> float:
    """Returns the confidence of intervals from this number of trials; between two looks, that of the later.

    `together` is the confidence of all looks together.

    >>> [round(confidence(n, first=20), 4) for n in (5, 20, 30, 45, 50)]
    [0.975, 0.975, 0.9917, 0.9958, 0.9975]
    """
    number = next(k for k, look in enumerate(looks(first), start=1) if look >= trials)
    return 1 - (1 - together) / (number * (number + 1))
