"""Environments for learning."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import longfat.gym
from longfat.gym import CongestionVectorEnv, PathRange
from longfat.learning import Networks

PATH = {"rate": "8Mbit/s", "delay": "10ms", "queue": "100pkt"}


def test_the_single_environment_passes_gymnasiums_checks() -> None:
    environment = gymnasium.make("longfat/Congestion-v0", steps=20)
    check_env(environment.unwrapped, skip_render_check=True)
    assert environment.observation_space.shape == (30,)
    assert longfat.gym.__doc__


def test_episodes_end_and_restart() -> None:
    networks = CongestionVectorEnv(3, agents=2, steps=5, path=PathRange(rate=(1e6, 2e6), delay=(0.01, 0.02)))
    first, _ = networks.reset(seed=4)
    assert first.shape == (6, 30)
    ended: list[Any] = [networks.step(networks.action_space.sample())[3] for _ in range(5)]
    assert [bool(one.all()) for one in ended] == [False] * 4 + [True]
    assert not networks.step(np.zeros((6, 1)))[3].any()


def test_the_number_of_threads_does_not_affect_results() -> None:
    def run(threads: int) -> tuple[Any, Any]:
        networks = Networks(5, agents=2, threads=threads, seed=3)
        for network in range(5):
            networks.reset(network)
        rewards = [networks.step(np.linspace(-1, 1, 10))[0] for _ in range(50)]
        return np.array(rewards), networks.observations

    for one, several in zip(run(1), run(4), strict=True):
        np.testing.assert_array_equal(one, several)


def test_a_rate_below_the_bottleneck_is_delivered_without_queue() -> None:
    networks = Networks(1, path=PATH, seed=1)
    networks.reset(0)
    networks._value[:] = 4e6
    found = [networks.step(np.zeros(1))[2] for _ in range(100)]
    throughput = np.mean([one["throughput"][0] for one in found[20:]])
    assert throughput == pytest.approx(4e6, rel=0.05)
    # 20 ms and the transmission of one packet.
    assert found[-1]["rtt"][0] == pytest.approx(0.0215, abs=0.001)


def test_a_rate_above_the_bottleneck_fills_the_queue_and_loses() -> None:
    networks = Networks(1, path=PATH, seed=1)
    networks.reset(0)
    networks._value[:] = 16e6
    found = [networks.step(np.zeros(1)) for _ in range(150)]
    assert found[-1][2]["rtt"][0] > 0.1
    assert np.mean([one[2]["loss"][0] for one in found[50:]]) > 0.2
    assert found[-1][0][0] < 0.001 * 10 * 8e6 / 12000


@pytest.mark.parametrize("wrong", [{"count": 0}, {"control": "both"}, {"interval": 0.0}])
def test_mistakes_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"above 0|allowed"):
        Networks(**wrong)
