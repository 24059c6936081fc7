"""Environments for reinforcement learning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import longfat.gym
from longfat.gym import CongestionVectorEnv, PathRange
from longfat.gym.networks import Networks

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
    # 20 ms plus the transmission time of one packet.
    assert found[-1]["rtt"][0] == pytest.approx(0.0215, abs=0.001)


def test_a_rate_above_the_bottleneck_fills_the_queue_and_loses() -> None:
    networks = Networks(1, path=PATH, seed=1)
    networks.reset(0)
    networks._value[:] = 16e6
    found = [networks.step(np.zeros(1)) for _ in range(150)]
    assert found[-1][2]["rtt"][0] > 0.1
    assert np.mean([one[2]["loss"][0] for one in found[50:]]) > 0.2
    assert found[-1][0][0] < 0.001 * 10 * 8e6 / 12000


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        ({"count": 0}, "count: 0 is out of range: above 0"),
        ({"agents": 0}, "agents: 0 is out of range"),
        ({"steps": -1}, "steps: -1 is out of range"),
        ({"interval": 0.0}, r"interval: 0\.0 is out of range"),
        ({"threads": 0}, "threads: 0 is out of range: at least 1"),
        ({"control": "both"}, 'control: "both" is unknown; allowed: rate, window'),
        ({"path": {"dealy": "5ms"}}, 'dealy: unknown key.*did you mean "delay"'),
        ({"path": {"delay": "5ms"}}, "path: has no rate"),
    ],
)
def test_mistakes_are_refused_with_their_key(wrong: dict[str, Any], line: str) -> None:
    with pytest.raises(ValueError, match=line):
        Networks(**wrong)
    with pytest.raises(ValueError, match="networks: 0 is out of range"):
        CongestionVectorEnv(0)


@pytest.mark.parametrize(
    ("path", "rate"),
    [
        (longfat.Path(rate="8Mbit/s", delay="10ms"), 8e6),
        (longfat.Path(preset="lte"), 13e6),
        (longfat.Path(hops=[{"rate": "5Mbit/s"}, {"rate": "2Mbit/s"}]), 2e6),
    ],
)
def test_agents_start_with_a_share_of_the_bottleneck_of_any_path(path: longfat.Path, rate: float) -> None:
    networks = Networks(4, agents=2, path=path, seed=1)
    for network in range(4):
        networks.reset(network)
    assert (networks._value >= 0.3 * rate / 2).all()
    assert (networks._value <= 1.5 * rate / 2).all()
    CongestionVectorEnv(2, path=path).reset(seed=1)


def test_agents_start_with_a_share_of_the_mean_rate_of_a_trace(tmp_path: Path) -> None:
    trace = tmp_path / "link.trace"
    trace.write_text("".join(f"{time}\n" for time in range(1, 101)))  # 1500 B/ms
    networks = Networks(1, path={"trace": str(trace), "delay": "5ms"}, seed=1)
    networks.reset(0)
    assert 0.3 * 12e6 <= networks._value[0] <= 1.5 * 12e6


def test_windows_need_no_rate() -> None:
    networks = Networks(1, control="window", path={"delay": "5ms"}, seed=1)
    networks.reset(0)
    assert networks.step(np.zeros(1))[2]["throughput"][0] > 0
