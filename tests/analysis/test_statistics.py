from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest
import scipy

from longfat.analysis import bootstrap, statistics
from longfat.analysis.metric_range import Range
from longfat.analysis.statistics import (
    BOOTSTRAP_FROM,
    EXPANSION_FROM,
    RESAMPLES,
    interval,
    mean_difference,
    method,
    paired,
    quantile_t,
    ratio,
)
from longfat.results.run import Cell, CellResult, Interval
from longfat.study import sweep


def cell_of(values: list[float], trials: list[int] | None = None) -> CellResult:
    cell = Cell("sim", "sr", {}, {})
    return CellResult(cell, len(values), {}, {}, {"m": values}, trials or list(range(len(values))))


def test_student_agrees_with_scipy() -> None:
    values = [4.1, 3.9, 5.2, 4.4, 4.0, 4.8, 4.3]
    expected = scipy.stats.ttest_1samp(values, 0).confidence_interval(0.95)
    found = interval(values)
    assert found.mean == pytest.approx(np.mean(values))
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_quantiles_of_student_match_tables() -> None:
    # Student's t, two-sided 95 %: published values for 1, 4, 19 and 29 degrees of freedom.
    assert [round(quantile_t(n), 3) for n in (2, 5, 20, 30)] == [12.706, 2.776, 2.093, 2.045]


def test_one_trial_has_no_interval_and_none_has_no_mean() -> None:
    one, none = interval([3.0]), interval([])
    assert one.mean == 3.0
    assert math.isnan(one.low)
    assert math.isnan(one.high)
    assert math.isnan(none.mean)


@pytest.mark.parametrize("n", [2, 20, BOOTSTRAP_FROM])
def test_equal_trials_have_an_interval_without_width(n: int) -> None:
    found = interval([0.1] * n)
    assert (found.mean, found.low, found.high) == (0.1, 0.1, 0.1)


def test_bounds_are_not_below_zero() -> None:
    assert interval([0.0, 0.0, 1.0]).low == 0.0
    # A difference may be negative.
    assert mean_difference([0.0, 0.0, 1.0], [0.0, 0.0, 0.0]).low < 0


def test_nan_is_ignored() -> None:
    assert interval([1.0, math.nan, 3.0]) == interval([1.0, 3.0])


def test_bootstrap_is_deterministic_and_follows_skew() -> None:
    values = np.random.default_rng(3).lognormal(0, 1, size=40).tolist()
    first = interval(values)
    assert first == interval(values)
    assert first.high - first.mean > first.mean - first.low
    assert method(40).startswith("BCa")


@pytest.mark.parametrize("n", [5, 20, 40])
def test_intervals_cover_the_truth_at_their_confidence(n: int) -> None:
    random = np.random.default_rng(7)
    rounds = 1000 if n < BOOTSTRAP_FROM else 150
    covered = 0
    for _ in range(rounds):
        found = interval((10 + random.normal(size=n)).tolist())
        covered += found.low <= 10 <= found.high
    # 95 % ± four standard errors.
    assert covered / rounds == pytest.approx(0.95, abs=4 * math.sqrt(0.95 * 0.05 / rounds) + 0.01)


def test_fieller_covers_the_true_ratio() -> None:
    random = np.random.default_rng(11)
    rounds, covered = 1000, 0
    for _ in range(rounds):
        shared = random.normal(size=15)
        a, b = 12 + shared + random.normal(size=15), 8 + shared
        found = ratio(a.tolist(), b.tolist())
        covered += found.low <= 1.5 <= found.high
    assert covered / rounds == pytest.approx(0.95, abs=0.03)


def test_ratio_and_difference_decide_alike() -> None:
    random = np.random.default_rng(13)
    for _ in range(200):
        a, b = (10 + random.normal(size=8)).tolist(), (10.5 + random.normal(size=8)).tolist()
        assert (ratio(a, b).high < 1) == (mean_difference(a, b).high < 0)


def test_pairing_removes_common_variation() -> None:
    random = np.random.default_rng(5)
    shared = random.normal(0, 5, size=20)
    a, b = 100 + shared + random.normal(size=20) * 0.1, 99 + shared + random.normal(size=20) * 0.1
    # The separate intervals overlap; the paired difference is significant.
    assert interval(a.tolist()).low < interval(b.tolist()).high
    assert mean_difference(a.tolist(), b.tolist()).low > 0.8


def test_pairs_are_matched_by_trial_where_some_failed() -> None:
    a = cell_of([1.0, 2.0, 4.0], [0, 1, 3])
    b = cell_of([20.0, math.nan, 40.0], [1, 2, 3])
    assert paired(a, b, "m") == ([2.0, 4.0], [20.0, 40.0])
    assert paired(a, b, "unknown") == ([], [])


def test_ratio_to_zero_is_unknown() -> None:
    assert math.isnan(ratio([], []).mean)
    assert math.isnan(ratio([1.0, 2.0], [0.0, 0.0]).mean)


def test_ratio_to_a_value_near_zero_has_no_upper_bound() -> None:
    rare = ratio([1.0, 2.0, 3.0], [0.0, 9.0, 0.1])
    assert (rare.low, rare.high) == (0.0, math.inf)
    # The divisor of half of the trials is near 0, yet the ratio is clearly above 1.
    larger = ratio([90.0, 100.0, 110.0, 95.0], [0.1, 40.0, 0.2, 45.0])
    assert 1 < larger.low < larger.mean
    assert larger.high == math.inf


def test_ratio_is_never_negative() -> None:
    small = ratio([0.0, 0.0, 3.0, 0.1], [2.0, 3.0, 2.5, 2.0])
    assert small.low == 0.0 < small.mean < small.high


def test_ratio_interval_matches_the_difference_test() -> None:
    random = np.random.default_rng(17)
    for _ in range(300):
        size = int(random.integers(3, 9))
        a, b = random.exponential(size=size).tolist(), random.exponential(size=size).tolist()
        found = ratio(a, b)
        for r in random.exponential(2, size=20):
            difference = mean_difference(a, b, r)
            if not (found.low <= r <= found.high):
                assert not difference.low <= 0 <= difference.high
            elif found.high < math.inf:
                assert difference.low <= 0 <= difference.high


def test_records_are_summarised_by_cell(factory: Any) -> None:
    study = factory.study()
    cells = sweep.cells(study)
    results = factory.results(factory.records(study, failures=3), cells)
    assert [result.cell for result in results] == list(cells)
    complete = next(r for r in results if r.cell.world == "sim" and r.cell.protocol == "gbn")
    lossy = next(r for r in results if r.cell.world == "relay" and r.cell.protocol == "gbn")
    assert (complete.n, complete.failures, list(complete.trials)) == (20, {}, list(range(20)))
    assert (lossy.n, lossy.failures) == (17, {"peer silent for 30 s": 3})
    assert list(lossy.trials) == list(range(3, 20))
    assert set(lossy.metrics) == set(lossy.samples)
    assert "seed" not in lossy.metrics
    assert all(i.low <= i.mean <= i.high for i in lossy.metrics.values())


@pytest.mark.parametrize("n", [BOOTSTRAP_FROM, 60])
def test_bootstrap_agrees_with_scipy(n: int) -> None:
    for values in _skewed(n):
        expected = scipy.stats.bootstrap(
            (values,), np.mean, method="BCa", n_resamples=RESAMPLES, rng=np.random.default_rng(0x1F47)
        ).confidence_interval
        found = interval(values.tolist())
        assert (found.low, found.high) == pytest.approx((expected.low, expected.high), rel=1e-9)


@pytest.mark.parametrize("n", [EXPANSION_FROM, 400])
def test_expansion_is_within_the_noise_of_resampling(n: int) -> None:
    for values in _skewed(n):
        drawn, expanded = bootstrap.resampled(values, 0.95), bootstrap.expanded(values, 0.95)
        half = 1.96 * values.std() / math.sqrt(n)
        assert expanded == pytest.approx(drawn, abs=0.12 * half)


def _skewed(n: int) -> list[np.ndarray]:
    random = np.random.default_rng(19)
    return [10 + random.normal(size=n), random.exponential(size=n), random.lognormal(0, 1, size=n)]


def test_intervals_are_computed_on_first_use(factory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[int] = []
    once = statistics.interval

    def counted(samples: Sequence[float], confidence: float, within: Range) -> Interval:
        computed.append(len(samples))
        return once(samples, confidence, within)

    monkeypatch.setattr(statistics, "interval", counted)
    study = factory.study({"repeats": 40})
    results = factory.results(factory.records(study), sweep.cells(study))
    assert all(i.mean > 0 for i in (result.metrics["goodput_bps"] for result in results))
    assert computed == []
    first = results[0].metrics["goodput_bps"]
    assert first.low < first.mean < first.high
    assert first == once(results[0].samples["goodput_bps"])
    assert len(computed) == 1


def test_samples_of_one_size_share_their_resamples() -> None:
    bootstrap.counts.cache_clear()
    random = np.random.default_rng(23)
    for _ in range(20):
        interval(random.normal(10, 1, size=50).tolist())
        interval(random.normal(10, 1, size=5000).tolist())
    assert bootstrap.counts.cache_info().misses == 1


def test_cells_with_equal_trials_are_deterministic(factory: Any) -> None:
    study = factory.study({"repeats": 3})
    records = factory.records(study)
    names = [name for name in records.columns if records[name].dtype == pl.Float64]
    same = records.with_columns(pl.col(name).first().over("cell") for name in names)
    cells = sweep.cells(study)
    assert not any(result.deterministic for result in factory.results(records, cells))
    assert all(result.deterministic for result in factory.results(same, cells))
    alone = same.filter(pl.col("trial") == 0)
    assert not any(result.deterministic for result in factory.results(alone, cells))


def test_a_cell_with_failed_trials_only_has_no_means(factory: Any) -> None:
    study = factory.study({"repeats": 2})
    results = factory.results(factory.records(study, failures=2), sweep.cells(study))
    dead = [result for result in results if result.n == 0]
    assert len(dead) == 6
    assert not any(len(result.metrics) or len(result.samples) for result in dead)
