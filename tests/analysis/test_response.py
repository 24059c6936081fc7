"""The response to random loss: a continuous function, with the constants of its sources."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longfat.analysis.theory import tcp
from longfat.analysis.theory.response import Rules, response

LOSSES = st.floats(1e-6, 0.4)
TRIPS = st.floats(0.001, 1.0)
STEP = 1.001
"""A factor of the loss so small that the rate of a continuous form changes by less than 1 %."""


@pytest.mark.parametrize("controller", ["reno", "cubic"])
@pytest.mark.parametrize("rules", ["linux", "rfc"])
@given(LOSSES, TRIPS, st.floats(0.0, 0.4))
def test_the_rate_falls_continuously_with_loss(
    controller: str, rules: Rules, loss: float, trip: float, acks: float
) -> None:
    def rate(probability: float) -> float:
        found = response(
            controller, trip, probability, trip + 0.2, window=math.inf, loss_of_acks=acks, rules=rules
        )
        return found.rate

    assert 0.99 < rate(loss * STEP) / rate(loss) < 1


@pytest.mark.parametrize("controller", ["reno", "cubic"])
@given(LOSSES, TRIPS)
def test_lost_acks_never_make_it_faster(controller: str, loss: float, trip: float) -> None:
    without, less, more = (
        response(controller, trip, loss, trip + 0.2, window=math.inf, loss_of_acks=acks).rate
        for acks in (0.0, 0.1, 0.2)
    )
    assert without > less > more


def test_one_percent_is_not_a_boundary() -> None:
    """The forms of Mathis and PFTK differ by 19 % at 1 %, an RTT of 40 ms and a timeout of 240 ms."""
    at, above = (response("reno", 0.04, loss, 0.24, window=math.inf).rate for loss in (0.01, 0.0101))
    assert above / at == pytest.approx(1, abs=0.01)
    forms = response("reno", 0.04, 0.01, 0.24, window=math.inf).forms
    assert forms["pftk"] < at < forms["mathis"]


def test_rare_losses_leave_the_form_of_mathis() -> None:
    found = response("reno", 0.1, 1e-6, 0.3, window=math.inf)
    assert found.rate == pytest.approx(found.forms["mathis"], rel=0.002)


def _mean_window(growth: float, factor: float, losses: int = 200_000) -> float:
    """The packets per round trip of additive increase with exponential gaps of mean 1 between losses."""
    drawn = random.Random(1)
    window, rounds = 1.0, 0.0
    for _ in range(losses):
        least = window * factor
        window = math.sqrt(least * least + 2 * growth * drawn.expovariate(1.0))
        rounds += (window - least) / growth
    return losses / rounds


@pytest.mark.parametrize(("growth", "factor"), [(1.0, 0.5), (3 * 0.3 / 1.7, 0.7), (0.2, 0.9)])
def test_the_constant_of_additive_increase_is_its_mean_window(growth: float, factor: float) -> None:
    assert tcp.random_aimd(growth, factor) == pytest.approx(_mean_window(growth, factor), rel=0.01)


def _mean_curve(losses: int = 40_000) -> float:
    """The same for CUBIC's curve with C = 1, fast convergence and beta = 0.7, in packets per unit of time."""
    drawn, beta = random.Random(1), tcp.CUBIC_BETA
    window, plateau, seconds = 1.0, 1.0, 0.0
    for _ in range(losses):
        plateau = window * (1 + beta) / 2 if window < plateau else window
        origin = max(plateau, beta * window)
        start = -math.cbrt(origin - beta * window)
        gap, low, high = drawn.expovariate(1.0), 0.0, 8.0
        for _ in range(40):
            middle = (low + high) / 2
            sent = origin * middle + ((start + middle) ** 4 - start**4) / 4
            low, high = (middle, high) if sent < gap else (low, middle)
        window, seconds = origin + (start + low) ** 3, seconds + low
    return losses / seconds


def test_the_constant_of_cubic_is_its_mean_window() -> None:
    periodic = tcp.cubic(1.0, 1.0, c=1.0)
    assert _mean_curve() / periodic == pytest.approx(tcp.CUBIC_RANDOM, rel=0.01)
