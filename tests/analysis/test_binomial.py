"""The project's binomial distribution agrees with SciPy's."""

from __future__ import annotations

import pytest
import scipy

from longfat.analysis import binomial


@pytest.mark.parametrize("of", [1, 2, 7, 40, 1000, 100_000])
@pytest.mark.parametrize("share", [0.001, 0.1, 0.5, 0.99])
def test_tails_agree_with_scipy(of: int, share: float) -> None:
    for count in {0, of // 10, of // 2, of - 1, of}:
        assert binomial.cdf(count, of, share) == pytest.approx(
            scipy.stats.binom.cdf(count, of, share), rel=1e-9, abs=1e-12
        )
    for tail in (0.025, 0.5, 0.975):
        assert binomial.ppf(tail, of, share) == scipy.stats.binom.ppf(tail, of, share)


@pytest.mark.parametrize(("a", "b"), [(1, 10), (3, 1), (17, 500), (5000, 5001), (1, 999_999)])
def test_the_inverse_agrees_with_scipy(a: int, b: int) -> None:
    for probability in (0.025, 0.5, 0.975):
        assert binomial.inverse_beta(a, b, probability) == pytest.approx(
            scipy.special.betaincinv(a, b, probability), rel=1e-8
        )
