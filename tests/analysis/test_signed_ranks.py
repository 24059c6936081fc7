"""The typical ratio of pairs: critical values of Wilcoxon's test, confidence, outliers."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy

from longfat.analysis.signed_ranks import ratio_of_pairs

# Critical values of the signed-rank test at 2.5 % on one side, from published tables.
CRITICAL = {6: 0, 7: 2, 8: 3, 9: 5, 10: 8, 12: 13, 15: 25, 20: 52, 25: 89}


@pytest.mark.parametrize(("count", "critical"), CRITICAL.items())
def test_bounds_have_the_ranks_of_critical_values(count: int, critical: int) -> None:
    ratios = np.exp(np.random.default_rng(count).normal(size=count))
    logarithms = np.log(ratios)
    means = sorted((a + b) / 2 for i, a in enumerate(logarithms) for b in logarithms[i:])
    found = ratio_of_pairs(list(ratios), [1.0] * count, 0.95)
    assert math.log(found.low) == pytest.approx(means[critical])
    assert math.log(found.high) == pytest.approx(means[-critical - 1])
    assert math.log(found.value) == pytest.approx(np.median(means))


def test_ratios_outside_the_interval_are_those_that_the_test_rejects() -> None:
    a, b = (list(np.random.default_rng(seed).lognormal(size=17)) for seed in (1, 2))
    found = ratio_of_pairs(a, b, 0.95)

    def p_value(ratio: float) -> float:
        shifted = np.log(a) - np.log(b) - math.log(ratio)
        return float(scipy.stats.wilcoxon(shifted, method="exact").pvalue)

    for bound, outwards in ((found.low, 1 / 1.001), (found.high, 1.001)):
        assert p_value(bound * outwards) < 0.05 < p_value(bound / outwards)


@pytest.mark.parametrize("distribution", ["standard_cauchy", "laplace", "normal"])
def test_intervals_include_the_centre_of_any_symmetric_distribution(distribution: str) -> None:
    random = np.random.default_rng(5)
    draw = getattr(random, distribution)
    outside = 0
    for _ in range(1000):
        ratios = np.exp(np.clip(draw(size=20), -300, 300))
        found = ratio_of_pairs(list(ratios), [1.0] * 20, 0.9)
        outside += not found.low <= 1 <= found.high
    # At most 10 % plus three standard deviations; the exact value is just below.
    assert 70 <= outside <= 128


def test_an_outlier_does_not_move_the_ratio() -> None:
    new = [90.0 + number / 10 for number in range(-10, 10)]
    disturbed = [*new[:-1], 1.0]
    plain, found = (ratio_of_pairs(values, [100.0] * 20, 0.99) for values in (new, disturbed))
    assert found.value == pytest.approx(plain.value, rel=0.002)
    assert found.high < 0.92
