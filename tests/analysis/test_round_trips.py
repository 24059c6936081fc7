"""Quantiles, loss shares and regression lines of round trips."""

from __future__ import annotations

import math

import numpy as np
import pytest

from longfat.analysis.ping_summary import summarise
from longfat.analysis.round_trips import line, quantile, share


@pytest.mark.parametrize(("n", "part"), [(10, 0.5), (100, 0.5), (25, 0.9), (400, 0.99)])
def test_quantile_intervals_cover_at_their_confidence(n: int, part: float) -> None:
    random = np.random.default_rng(3)
    truth = -math.log(1 - part)
    covered = 0
    for _ in range(1000):
        result = quantile(random.exponential(size=n).tolist(), part)
        low = -math.inf if math.isnan(result.low) else result.low
        high = math.inf if math.isnan(result.high) else result.high
        covered += low <= truth <= high
    # The confidence of order statistics is at least the requested one.
    assert covered >= 935, covered


def test_order_statistics_match_worked_numbers() -> None:
    # For ten samples, the 2nd and 9th cover the median with 97.9 %, the 3rd and 8th with only 89.1 %.
    result = quantile([float(value) for value in range(1, 11)], 0.5)
    assert (result.value, result.low, result.high) == (5.5, 2.0, 9.0)
    few = quantile([1.0, 2.0, 3.0, 4.0, 5.0], 0.5)
    assert math.isnan(few.low)
    assert math.isnan(few.high)


@pytest.mark.parametrize("rate", [0.0, 0.02, 0.5])
def test_share_intervals_cover_the_share(rate: float) -> None:
    random = np.random.default_rng(4)
    counts = random.binomial(50, rate, size=1000)
    intervals = {count: share(int(count), 50) for count in set(counts)}
    covered = sum(intervals[count].low <= rate <= intervals[count].high for count in counts)
    assert covered >= 940, covered


@pytest.mark.slow
def test_a_line_has_the_latency_and_the_time_of_a_byte_in_its_intervals() -> None:
    random = np.random.default_rng(5)
    covered = 0
    for _ in range(200):
        minima = {
            size: 0.040 + size * 8e-7 + float(random.exponential(2e-5, 10).min())
            for size in range(100, 1500, 100)
        }
        found = line(minima)
        assert found is not None
        assert found.per_byte.value == pytest.approx(8e-7, rel=0.05)
        covered += found.per_byte.low <= 8e-7 <= found.per_byte.high
    assert covered >= 170, covered
    assert line({100: 1.0, 200: 2.0, 300: 3.0}) is None


def test_samples_are_summarised_by_size_with_kernel_timestamps() -> None:
    def sample(size: int, state: str, application: float | None, kernel: float | None) -> dict[str, object]:
        result: dict[str, object] = {"size": size, "state": state, "application_s": application}
        result.update({"kernel_s": kernel, "outbound_s": None, "inbound_s": None, "duplicates": 1})
        result.update({"answer": "reply" if application else None, "error": None})
        return result

    good = [sample(8, "answered", 0.002, 0.001)] * 9
    found = summarise([*good, sample(8, "answered", 0.004, None), sample(100, "lost", None, None)])
    assert found.clock == "kernel"
    first, second = found.sizes
    assert (first.sent, first.answered, first.rtt.median.value, first.duplicates) == (10, 10, 0.001, 10)
    assert first.application.median.value == 0.002
    assert (second.loss.value, second.answered) == (1.0, 0)
    found = summarise([*good[:7], *[sample(8, "answered", 0.004, None)] * 3])
    assert found.clock == "application"
    assert found.sizes[0].rtt.minimum == 0.002
