"""Intervals that are valid under repeated looks."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from longfat.analysis import looks
from longfat.analysis.statistics import quantile_t


def test_the_errors_of_all_looks_sum_to_at_most_5_percent() -> None:
    errors = [1 - looks.confidence(trials, 3) for trials in islice(looks.looks(3), 40)]
    assert sum(errors) < 0.05
    assert sum(errors) == pytest.approx(0.05, rel=0.03)


@pytest.mark.slow
def test_a_run_that_stops_at_the_first_favourable_look_is_rarely_wrong() -> None:
    random = np.random.default_rng(5)
    runs, first = 4000, 5
    numbers = list(islice(looks.looks(first), 9))
    wrong = {"looks": 0, "95 %": 0}
    for _ in range(runs):
        values = random.normal(size=numbers[-1])
        scaled = [abs(values[:n].mean()) / (values[:n].std(ddof=1) / np.sqrt(n)) for n in numbers]
        levels = {"looks": [looks.confidence(n, first) for n in numbers], "95 %": [0.95] * len(numbers)}
        for name, confidences in levels.items():
            limits = [_quantile(n, c) for n, c in zip(numbers, confidences, strict=True)]
            wrong[name] += any(value > limit for value, limit in zip(scaled, limits, strict=True))
    # The mean is 0: an interval that excludes it is wrong.
    assert wrong["looks"] / runs < 0.05
    assert wrong["95 %"] / runs > 0.12


def _quantile(n: int, confidence: float) -> float:
    return _KNOWN.setdefault((n, confidence), quantile_t(n, confidence))


_KNOWN: dict[tuple[int, float], float] = {}
