"""The schedule of probes, tested on a model of a network."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from tests.analysis.known_path import Truth

from longfat.measurement.path import Budget, PathMeasurement, Progress, default_sizes

NO_LIMIT = Budget(seconds=1e9, probes=10**6)


class Model:
    """A path that replies to probes. `silent` routers never reply; `mtu` is that of the last link."""

    echo = False
    """Whether the end replies with packets of the same size."""

    def __init__(
        self, truth: Truth, *, silent: tuple[int, ...] = (), mtu: int = 1500, reports_mtu: bool = True
    ) -> None:
        self.truth, self.silent, self.mtu, self.reports_mtu = truth, silent, mtu, reports_mtu
        self.random = np.random.default_rng(1)
        self.probed: Counter[int] = Counter()
        self.sizes: Counter[int] = Counter()

    def run(self, probes: Sequence[tuple[int, int]], report: Callable[[int], bool | None]) -> str:
        reported: list[dict[str, Any]] = []
        last = len(self.truth.rates)
        for ttl, size in probes:
            self.probed[ttl] += 1
            self.sizes[size] += 1
            if min(ttl, last) in self.silent:
                one: dict[str, Any] = {
                    "ttl": ttl,
                    "size": size,
                    "answer": None,
                    "kernel_s": None,
                    "application_s": None,
                }
            elif ttl >= last and size > self.mtu:
                mtu = self.mtu if self.reports_mtu else None
                answer: Any = {"kind": "too-big", "from": "10.0.0.1", "size": 576, "mtu": mtu}
                one = {"ttl": ttl, "size": size, "answer": answer, "kernel_s": 1e-3, "application_s": 1e-3}
            else:
                sample = self.truth.sample(self.random, min(ttl, last), size, echo=self.echo and ttl >= last)
                one = sample | {"ttl": ttl}
            reported.append(one)
        report(len(reported))
        return json.dumps(reported)


def _measure(model: Model, budget: Budget = NO_LIMIT, sizes: Sequence[int] | None = None) -> Progress:
    return PathMeasurement(model, budget, sizes).run(lambda _: None)


TRUTH = Truth([10e6, 20e6, 50e6], [2e-3, 1e-3, 1e-3])


def test_stops_at_the_requested_precision() -> None:
    model = Model(TRUTH)
    progress = _measure(model)
    assert progress.is_converged
    assert progress.ended_by == "precision"
    assert 8 <= progress.rounds < NO_LIMIT.rounds
    assert [link.ttls for link in progress.path.links] == [(1,), (2,), (3,)]
    for link, rate in zip(progress.path.links, TRUTH.rates, strict=True):
        assert link.rate is not None
        assert link.rate.value == pytest.approx(rate, rel=0.1)
    assert set(model.probed) == {1, 2, 3}


def test_an_unmeasurable_link_stops_with_the_budget() -> None:
    truth = Truth([10e6, 100e9, 10e6, 10e6, 10e6], [2e-3] * 5)
    model = Model(truth)
    progress = _measure(model, Budget(rounds=24, seconds=1e9))
    assert progress.ended_by == "rounds"
    # Only the routers next to the unmeasurable link are probed until the end.
    assert model.probed[1] == model.probed[2]
    assert model.probed[5] < model.probed[1]
    assert _measure(Model(truth), Budget(probes=300, seconds=1e9)).ended_by == "probes"
    assert _measure(Model(truth), Budget(seconds=0.0)).ended_by == "time"


@pytest.mark.parametrize("reports_mtu", [True, False], ids=["the MTU is reported", "it is not"])
def test_sizes_fit_the_path(reports_mtu: bool) -> None:
    model = Model(TRUTH, mtu=1400, reports_mtu=reports_mtu)
    progress = _measure(model, Budget(rounds=8, seconds=1e9))
    last = progress.samples.routers[3].seconds()
    assert max(last) <= 1400
    assert max(last) >= (1400 if reports_mtu else 1300)
    assert len(last) >= 10


def test_requested_sizes_are_sent() -> None:
    model = Model(TRUTH)
    _measure(model, Budget(rounds=8, seconds=1e9), sizes=(100, 700, 1000, 1200, 1400))
    assert set(model.sizes) <= {36, 100, 700, 1000, 1200, 1400}


class Limited(Model):
    """A path with a router that limits its replies to one per second. Probes and pauses advance the clock."""

    def __init__(self, truth: Truth, limited: int) -> None:
        super().__init__(truth)
        self.limited, self.time, self.tokens, self.filled = limited, 0.0, 6.0, 0.0

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds

    def run(self, probes: Sequence[tuple[int, int]], report: Callable[[int], bool | None]) -> str:
        reported = []
        for ttl, size in probes:
            self.time += 0.02
            self.tokens = min(6.0, self.tokens + self.time - self.filled)
            self.filled = self.time
            self.silent = ()
            if ttl == self.limited and self.tokens < 1:
                self.silent = (ttl,)
            elif ttl == self.limited:
                self.tokens -= 1
            reported += json.loads(super().run([(ttl, size)], report))
        return json.dumps(reported)


@pytest.mark.slow
def test_a_rate_limited_router_is_probed_less_often() -> None:
    model = Limited(TRUTH, 2)
    budget = Budget(seconds=400.0)
    progress = PathMeasurement(model, budget, now=model.now, sleep=model.sleep).run(lambda _: None)
    assert model.probed[2] <= 1.2 * model.time + 60
    assert progress.samples.routers[2].loss < 0.4
    assert [link.ttls for link in progress.path.links] == [(1,), (2,), (3,)]
    for link, rate in zip(progress.path.links, TRUTH.rates, strict=True):
        assert link.rate is not None
        assert link.rate.value == pytest.approx(rate, rel=0.1)


class Slow(Model):
    """Each probe takes 0.1 s, or 1 s without a reply; sending stops when `report` returns False."""

    time = 0.0
    echo = True

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds

    def run(self, probes: Sequence[tuple[int, int]], report: Callable[[int], bool | None]) -> str:
        reported: list[Any] = []
        for probe in probes:
            reported += json.loads(super().run([probe], lambda _: None))
            self.time += 0.1 if reported[-1]["answer"] else 1.0
            if report(1) is False:
                break
        return json.dumps(reported)


@pytest.mark.parametrize("silent", [(), (3,), (1, 2, 3)])
@pytest.mark.parametrize("seconds", [0.1, 0.5, 2.0, 5.0, 30.0])
def test_the_time_limit_holds(silent: tuple[int, ...], seconds: float) -> None:
    model = Slow(TRUTH, silent=silent)
    udp = Slow(TRUTH, silent=(3,))
    measurement = PathMeasurement(
        model, Budget(seconds=seconds), now=lambda: model.time + udp.time, sleep=model.sleep
    )
    progress = measurement.run(lambda _: None)
    measurement.separate_last_link(udp, lambda _: None)
    assert progress.ended_by == "time" or (len(silent) == 3 and model.time < seconds)
    assert model.time + udp.time <= seconds + 1.01


def test_echoes_leave_time_for_the_last_link() -> None:
    model = Slow(TRUTH)
    measurement = PathMeasurement(model, Budget(seconds=20.0), now=model.now, sleep=model.sleep)
    measurement.run(lambda _: None)
    assert 15.0 <= model.time <= 18.0


def test_a_path_without_replies_has_no_links() -> None:
    model = Model(TRUTH, silent=(1, 2, 3))
    progress = _measure(model)
    assert progress.path.links == ()
    assert model.probed.total() < 50


def test_a_silent_router_joins_its_links() -> None:
    progress = _measure(Model(TRUTH, silent=(2,)))
    assert [link.ttls for link in progress.path.links] == [(1,), (2, 3)]


@pytest.mark.parametrize(("smallest", "largest"), [(36, 1500), (36, 9000), (56, 1280), (36, 576), (36, 100)])
def test_default_sizes_are_of_all_kinds(smallest: int, largest: int) -> None:
    sizes = default_sizes(smallest, largest)
    assert sizes[0] == smallest
    assert sizes[-1] == largest
    assert len(set(sizes)) == len(sizes) >= 10
    if largest > 900:
        assert sum(size >= 576 for size in sizes) >= 8
        assert sum(size < 548 for size in sizes) >= 4
