"""Intervals that contain one further trial."""

from __future__ import annotations

import math

import numpy as np
import pytest

from longfat.analysis.forecast import prediction_interval


@pytest.mark.parametrize("logarithmic", [False, True])
def test_intervals_contain_a_further_trial(logarithmic: bool) -> None:
    random = np.random.default_rng(1)
    inside = []
    for _ in range(2000):
        drawn = random.normal(0.0, 1.0, 11)
        values = np.exp(drawn) if logarithmic else drawn
        found = prediction_interval(list(values[:10]))
        inside.append(found.low <= values[10] <= found.high)
    assert np.mean(inside) == pytest.approx(0.95, abs=0.015)


def test_few_trials_have_no_interval() -> None:
    found = prediction_interval([4.0])
    assert (found.value, math.isnan(found.low)) == (4.0, True)
    assert math.isnan(prediction_interval([]).value)
    assert prediction_interval([0.0, 0.0, 9.0]).low == 0.0


def test_the_error_of_the_model_widens_the_interval() -> None:
    equal = prediction_interval([8.0] * 10, model_error=0.05)
    assert (equal.low, equal.high) == pytest.approx((8 * math.exp(-0.098), 8 * math.exp(0.098)))
    assert prediction_interval([8.0, 9.0], 0.05).high > prediction_interval([8.0, 9.0]).high
