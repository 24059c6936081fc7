"""Load on modelled paths: delay and limit of the queue, and limits of the load."""

from __future__ import annotations

import random

import pytest

from longfat.measurement.host_window import host_window
from longfat.measurement.load import PACKET, Loaded, Step, measure


class Bottleneck:
    """A drop-tail queue of `limit` packets at `rate`, with random losses; counts the requests."""

    def __init__(self, rate: float, rtt: float, limit: int, loss: float = 0.0) -> None:
        self.rate, self.rtt, self.limit, self.loss = rate, rtt, limit, loss
        self.sent = 0
        self._random = random.Random(1)

    def __call__(self, window: int, _per_second: float, count: int) -> list[float | None]:
        self.sent += count
        each = 8 * PACKET / self.rate
        queued = max(window - self.rtt / each, 0.0)
        dropped = max(queued - self.limit, 0.0) / window
        rtt = self.rtt + each + min(queued, self.limit) * each
        return [None if self._random.random() < dropped + self.loss else rtt for _ in range(count)]


def _measured(path: Bottleneck, *, seconds: float = 60.0, limit: int = 10**9) -> Loaded:
    return measure(path, rate=path.rate, round_trip=path.rtt, loss=path.loss, seconds=seconds, limit=limit)


@pytest.mark.parametrize("loss", [0.0, 0.04])
def test_finds_the_limit_of_a_queue(loss: float) -> None:
    found = _measured(Bottleneck(20e6, 0.04, 300, loss))
    assert found.overflows
    assert found.longest_queueing == pytest.approx(0.18, rel=0.02)
    assert found.queueing == pytest.approx(0.18, rel=0.02)


def test_random_loss_is_no_overflow() -> None:
    found = _measured(Bottleneck(20e6, 0.04, 10**6, loss=0.04), limit=3_000_000)
    assert not found.overflows
    assert found.ended_by == "bytes"


def test_bytes_and_time_bound_the_load() -> None:
    path = Bottleneck(20e6, 0.04, 10**6)
    found = _measured(path, limit=2_000_000)
    assert (found.ended_by, found.overflows) == ("bytes", False)
    assert 1_000_000 < found.sent_bytes <= 2_000_000
    found = _measured(path, seconds=1.0)
    assert found.ended_by == "time"
    assert found.sent_bytes * 8 / path.rate <= 1.0


@pytest.mark.parametrize(("rate", "limit"), [(20e6, 1000), (5e6, 1000)])
def test_a_deep_queue_is_filled_as_far_as_the_budget_permits(rate: float, limit: int) -> None:
    """In 10 s a queue of 1000 packets is filled at 20 Mbit/s, and at least to a third at 5 Mbit/s."""
    found = _measured(Bottleneck(rate, 0.04, limit), seconds=10.0, limit=50_000_000)
    whole = limit * 8 * PACKET / rate
    assert found.longest_queueing is not None
    assert found.overflows is (rate == 20e6)
    assert whole / 3 < found.longest_queueing <= whole * 1.01
    assert sum(step.sent for step in found.steps) * 8 * PACKET / rate <= 10.0


def test_the_last_step_uses_the_rest_of_the_budget() -> None:
    found = _measured(Bottleneck(20e6, 0.04, 10**6), limit=3_200_000)
    *_, before, last = found.steps
    assert before.window < last.window < 2 * before.window
    assert 3_100_000 < found.sent_bytes <= 3_200_000


def test_the_longest_wait_of_any_step_counts_without_an_overflow() -> None:
    """A sender that is too slow for a large window fills the queue less than with a smaller one."""
    steps = tuple(Step(64 << number, 200, 0, (rtt,) * 120) for number, rtt in enumerate((0.05, 0.09, 0.06)))
    assert Loaded(0.04, steps, False, "window").longest_queueing == pytest.approx(0.05)
    assert Loaded(0.04, steps, True, "overflow").longest_queueing == pytest.approx(0.02)


def test_a_host_without_answers_gets_no_load() -> None:
    path = Bottleneck(20e6, 0.04, 10, loss=1.0)
    found = _measured(path)
    assert (found.idle, found.queueing, found.ended_by) == (None, None, "no answers")
    assert path.sent == 20


def test_ctrl_c_keeps_the_finished_steps() -> None:
    path = Bottleneck(20e6, 0.04, 10**6)

    def send(window: int, per_second: float, count: int) -> list[float | None]:
        if window > 300:
            raise KeyboardInterrupt
        return path(window, per_second, count)

    found = measure(send, rate=path.rate, round_trip=path.rtt, loss=0.0, seconds=60.0, limit=10**9)
    assert found.ended_by == "interrupt"
    assert len(found.steps) == 3
    assert found.queueing is not None


def test_the_window_of_this_host_is_plausible() -> None:
    assert 16_384 <= host_window() < 2**32
