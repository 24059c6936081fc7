"""Links inferred from round trips over known paths with queueing noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.analysis.known_path import SIZES, Truth

from longfat.analysis.inference.lines import line
from longfat.analysis.inference.links import Link, Path, infer


def _random_path(seed: int, hops: int = 8, **keys: Any) -> Truth:
    random = np.random.default_rng(seed)
    rates = [float(rate) for rate in 10 ** random.uniform(6.7, 8, hops)]
    return Truth(rates, [float(delay) for delay in random.uniform(1e-3, 1e-2, hops)], **keys)


def _within(link: Link, rate: float, delay: float, share: float) -> None:
    assert link.rate is not None
    assert link.rate.value == pytest.approx(rate, rel=share)
    assert link.latency.value == pytest.approx(delay, abs=50e-6, rel=0.02)


@pytest.mark.parametrize("quote", [576, 56], ids=["quoted in full", "eight bytes quoted"])
@pytest.mark.parametrize("seed", range(5))
def test_a_path_of_eight_hops_is_found(seed: int, quote: int) -> None:
    truth = _random_path(seed, quote=quote)
    path = infer(truth.samples(seed, 32))
    assert [link.ttls for link in path.links] == [(ttl,) for ttl in range(1, 9)]
    for link, rate, delay in zip(path.links, truth.rates, truth.delays, strict=True):
        _within(link, rate, delay, 0.05 if rate <= 20e6 else 0.10)
    assert path.seconds_per_byte == pytest.approx(sum(8 / rate for rate in truth.rates), rel=0.01)


@pytest.mark.slow
def test_intervals_cover_the_truth_at_their_confidence() -> None:
    """95 % of 240 intervals, within the range of chance (fixed seeds)."""
    covered = []
    for seed in range(30):
        truth = _random_path(seed, hops=4)
        for link, rate in zip(infer(truth.samples(seed, 16)).links, truth.rates, strict=True):
            covered.append(link.slope.low <= 8 / rate <= link.slope.high)
        # Without the first link's latency, which includes the hosts' processing time.
        for link, delay in zip(infer(truth.samples(seed, 16)).links[1:], truth.delays[1:], strict=True):
            covered.append(link.latency.low <= delay <= link.latency.high)
    assert 0.90 <= np.mean(covered) <= 1.0
    assert not all(covered)


def test_more_probes_make_intervals_narrower() -> None:
    truth = _random_path(3, hops=4)
    few, many = (infer(truth.samples(1, rounds)) for rounds in (8, 64))
    widths = [[link.slope.high - link.slope.low for link in path.links] for path in (few, many)]
    assert np.median(np.array(widths[1]) / np.array(widths[0])) < 0.7


def test_unmeasurable_rates_are_unknown() -> None:
    """A link of 100 Gbit/s after slow ones has a lower bound instead of a value."""
    truth = Truth([10e6, 100e9, 20e6], [2e-3, 3e-3, 1e-3])
    first, fast, last = infer(truth.samples(2, 16)).links
    _within(first, 10e6, 2e-3, 0.05)
    _within(last, 20e6, 1e-3, 0.05)
    assert fast.rate is None
    assert fast.rate_at_least is not None
    assert 100e6 < fast.rate_at_least <= 100e9
    assert fast.latency.value == pytest.approx(3e-3, abs=50e-6)


def test_a_router_that_answers_slowly_joins_its_links() -> None:
    """The link after it would have a negative latency."""
    truth = Truth([10e6, 20e6, 50e6], [2e-3, 1e-3, 1e-3], slow={2: 5e-3})
    path = infer(truth.samples(4, 16))
    assert path.slow == (2,)
    assert [link.ttls for link in path.links] == [(1,), (2, 3)]
    joined: Path = path
    assert joined.links[1].latency.value == pytest.approx(2e-3, abs=50e-6)
    assert joined.links[1].slope.value == pytest.approx(8 / 20e6 + 8 / 50e6, rel=0.05)


def test_routers_that_do_not_answer_join_their_links() -> None:
    truth = Truth([10e6, 20e6, 50e6], [2e-3, 1e-3, 1e-3])
    samples = truth.samples(4, 16)
    del samples.routers[2]
    path = infer(samples)
    assert [link.ttls for link in path.links] == [(1,), (2, 3)]
    assert path.slow == ()


def test_a_slower_reverse_direction_shows_in_quoted_packets() -> None:
    """Small packets cause small replies; the time saved shows the reverse rate."""
    truth = Truth([50e6, 20e6], [2e-3, 1e-3], reverse=[50e6, 1e6])
    first, second = infer(truth.samples(5, 16)).links
    assert second.reverse_rate == pytest.approx(1e6, rel=0.05)
    _within(second, 20e6, 1e-3, 0.05)
    assert first.reverse_rate is None


def test_an_echo_covers_both_directions() -> None:
    truth = Truth([10e6, 20e6, 50e6], [2e-3, 1e-3, 1e-3])
    path = infer(truth.samples(6, 16, echo=True))
    for link, rate, delay in zip(path.links, truth.rates, truth.delays, strict=True):
        _within(link, rate, delay, 0.05 if rate <= 20e6 else 0.10)


def test_times_of_two_clocks_are_not_mixed() -> None:
    """A few replies without kernel timestamps are ignored; many select the application's clock for all."""
    truth = Truth([10e6], [2e-3])
    samples = truth.samples(1, 4)
    unstamped = truth.sample(np.random.default_rng(1), 1, 100) | {"kernel_s": None, "application_s": 0.5}
    samples.add([unstamped])
    router, count = samples.routers[1], 4 * len(SIZES)
    few = samples.clock.is_kernel
    assert sum(map(len, router.seconds().values())) == count
    samples.add([unstamped] * count)
    assert (few, samples.clock.is_kernel) == (True, False)
    assert sum(map(len, router.seconds().values())) == 2 * count + 1 == router.answered
    assert max(router.seconds()[100]) == 0.5


def test_the_line_is_below_the_noise() -> None:
    x = np.arange(10.0)
    y = 3 + 2 * x
    y[[1, 4, 5, 7]] += [5.0, 80.0, 3.0, 9.0]
    intercept, slope = line(x, y[None, :])
    assert (intercept[0], slope[0]) == (pytest.approx(3), pytest.approx(2))
