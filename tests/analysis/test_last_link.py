"""Forward and reverse rates of the last link, and observed queueing, on a modelled path."""

from __future__ import annotations

import numpy as np
import pytest
from tests.analysis.known_path import Truth

from longfat.analysis.inference.last_link import separated
from longfat.analysis.inference.links import infer
from longfat.analysis.inference.queues import queued_bytes, waits

SIZES = (604, 1500)


def _measured(truth: Truth, *, answers: int = 4) -> tuple[float | None, float | None, bool]:
    """Returns the forward and reverse rates of the last link in Mbit/s, and whether they are decided."""
    samples, last = truth.samples(3, 24, echo=True), len(truth.rates)
    random = np.random.default_rng(9)
    by_udp = {size: [truth.sample(random, last, size)["kernel_s"] for _ in range(answers)] for size in SIZES}
    found = separated(infer(samples), samples.routers[last], by_udp)
    link = found.path.links[-1]
    forward = None if link.rate is None else link.rate.value / 1e6
    reverse = None if link.reverse_rate is None else link.reverse_rate / 1e6
    return forward, reverse, found.is_decided


@pytest.mark.parametrize(("forward", "reverse"), [(16, 1), (1, 16), (10, 5)])
def test_an_asymmetric_last_link_is_found(forward: float, reverse: float) -> None:
    truth = Truth([100e6, forward * 1e6], [1e-3, 5e-3], reverse=[100e6, reverse * 1e6], busy=0.05)
    *rates, is_decided = _measured(truth)
    assert rates == pytest.approx([forward, reverse], rel=0.1)
    assert is_decided


def test_a_symmetric_last_link_has_equal_rates() -> None:
    forward, reverse, is_decided = _measured(Truth([100e6, 10e6], [1e-3, 5e-3], busy=0.05))
    assert forward == pytest.approx(10, rel=0.05)
    assert (reverse, is_decided) == (None, True)


def test_too_few_replies_are_undecided() -> None:
    truth = Truth([100e6, 16e6], [1e-3, 5e-3], reverse=[100e6, 1e6])
    assert _measured(truth, answers=3)[1:] == (None, False)


def test_a_fast_last_link_is_undecided() -> None:
    truth = Truth([10e6, 10e9], [1e-3, 5e-3], reverse=[10e6, 5e9])
    assert _measured(truth)[1:] == (None, False)


def test_queueing_is_found_on_the_busy_link() -> None:
    quiet = Truth([10e6, 10e6, 10e6], [1e-3] * 3, busy=0.0).samples(1, 24)
    busy = Truth([10e6, 10e6, 10e6], [1e-3] * 3, busy=0.0).samples(1, 24)
    random = np.random.default_rng(2)
    for router in list(busy.routers.values())[1:]:
        for trips in router.seconds().values():
            trips[:] = [second + random.uniform(0, 20e-3) for second in trips]
    links = infer(quiet).links
    first, second, third = waits(list(busy.routers.values()), links)
    assert first == pytest.approx(0.0, abs=1e-3)
    assert third == pytest.approx(0.0, abs=2e-3)
    assert 15e-3 < second < 20e-3
    assert queued_bytes(second, 10e6) == pytest.approx(second * 10e6 / 8)
    assert [queued_bytes(wait, 10e6) for wait in waits(list(quiet.routers.values()), links)] == [None] * 3
