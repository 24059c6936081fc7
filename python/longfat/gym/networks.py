"""Simulated networks whose senders a learner controls: observations and rewards as in Aurora.

An agent sets the rate or the window of one TCP sender once per monitor interval. It observes the last
`HISTORY` intervals, each by three numbers (Jay et al., "A Deep Reinforcement Learning Perspective on Internet
Congestion Control", ICML 2019): the slope of the RTT over time, the ratio of mean RTT to the smallest RTT so
far, and the ratio of bytes sent to bytes acknowledged.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from longfat import _native
from longfat.study import units
from longfat.study.tables import Path, refuse, table_of
from longfat.study.vocabulary import canonical
from longfat.system.parameters import ParameterError

HISTORY, FEATURES = 10, 3
"""Intervals in an observation, and numbers of each."""
STEP = 0.025
"""Relative change of rate or window for an action of 1."""
PACKET_BITS = 8 * 1500
SEGMENT = 1448
"""Payload bytes of a full packet of 1500 bytes with timestamps."""
MOST = 10.0
"""Bound of each observed number."""
_FIELDS = 10
_LEAST_RATE, _MOST_RATE = 64e3, 10e9
_UNLIMITED = float(1 << 40)

Numbers = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class PathRange:
    """Ranges from which each episode draws its path, uniformly: bit/s, s, a share of 1, and packets."""

    rate: tuple[float, float] = (1.2e6, 6e6)
    delay: tuple[float, float] = (0.05, 0.5)
    loss: tuple[float, float] = (0.0, 0.05)
    queue: tuple[int, int] = (2, 3000)

    def draw(self, random: np.random.Generator) -> dict[str, str]:
        """Returns a path as a study writes it."""
        return {
            "rate": f"{round(random.uniform(*self.rate))}bit/s",
            "delay": f"{round(random.uniform(*self.delay) * 1e9)}ns",
            "loss": f"{random.uniform(*self.loss) * 100:.6f}%",
            "queue": f"{random.integers(self.queue[0], self.queue[1] + 1)}pkt",
        }


class Networks:
    """Networks with the same number of agents each, which advance together on all cores without the GIL.

    Arrays have one row for each agent, network by network.
    """

    def __init__(
        self,
        count: int = 1,
        *,
        agents: int = 1,
        interval: float = 0.01,
        steps: int = 400,
        control: Literal["rate", "window"] = "rate",
        path: PathRange | Path | Mapping[str, Any] | None = None,
        threads: int | None = None,
        seed: int | None = None,
    ) -> None:
        if control not in ("rate", "window"):
            raise ParameterError("control", f'"{control}" is unknown; allowed: rate, window')
        for name, given in (("count", count), ("agents", agents), ("steps", steps), ("interval", interval)):
            if not given > 0:
                raise ParameterError(name, f"{given} is out of range: above 0")
        if threads is not None and threads < 1:
            raise ParameterError("threads", f"{threads} is out of range: at least 1")
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self.count, self.agents, self.steps, self.control = count, agents, steps, control
        self.lanes = count * agents
        self._interval = interval
        self._range = path if isinstance(path, PathRange) else PathRange() if path is None else None
        self._path = {} if self._range is not None else _checked(path)
        self._random = np.random.default_rng(seed)
        self._native = _native.Environments(count, agents, interval, threads or cores)
        self._done = np.zeros(count, dtype=np.int64)
        self._value = np.zeros(self.lanes)
        self._least_rtt = np.full(self.lanes, np.inf)
        self._mean_rtt = np.zeros(self.lanes)
        self.observations = np.zeros((self.lanes, HISTORY, FEATURES))
        self._rate = self._bottleneck() if self._range is None and control == "rate" else 0.0

    def seed(self, seed: int) -> None:
        """Restarts the random paths."""
        self._random = np.random.default_rng(seed)

    def reset(self, network: int) -> None:
        """Starts a new episode of a network on a new path.

        Raises:
            ValueError: with the key, the value and what is allowed.
        """
        path = self._path if self._range is None else self._range.draw(self._random)
        self._native.reset(network, canonical(self._spec(path, int(self._random.integers(2**31)))))
        rate = self._rate if self._range is None else float(units.parse(path["rate"]).value)
        own = slice(network * self.agents, (network + 1) * self.agents)
        share = self._random.uniform(0.3, 1.5, self.agents) * rate / self.agents
        self._value[own] = share if self.control == "rate" else 10 * SEGMENT
        self._least_rtt[own] = np.inf
        self._mean_rtt[own] = 0.0
        self._done[network] = 0
        self.observations[own] = (0.0, 1.0, 1.0)

    def _spec(self, path: dict[str, Any], seed: int) -> dict[str, Any]:
        return {
            "path": path,
            "protocol": {"kind": "tcp", "congestion": "reno"},
            "workload": {
                "kind": "bulk",
                "duration": f"{round(self._interval * 1e6) * (self.steps + 1) + 60_000_000}us",
                "flows": self.agents,
            },
            "seed": seed,
            "trial": 0,
        }

    def _bottleneck(self) -> float:
        """Returns the smallest rate of the path in bit/s, the mean of a recorded one.

        Raises:
            ValueError: for a path without a rate: agents start with a share of it.
        """
        layout = json.loads(_native.layout(canonical(self._spec(self._path, 0))))
        forward = [layout["links"][link]["mean_rate_bps"] for link in layout["flows"][0]["links"]]
        rates = [float(rate) for rate in forward if rate is not None]
        if not rates:
            raise ParameterError(
                "path", 'has no rate, of which agents get a share: set rate, or control="window"'
            )
        return min(rates)

    def step(self, actions: Numbers) -> tuple[Numbers, Numbers, dict[str, Numbers]]:
        """Runs one interval.

        Args:
            actions: One number for each agent: the relative change of rate or window in units of `STEP`.

        Returns:
            Rewards, whether the episode of each network has ended (1 or 0), and for each agent `throughput`
            (bit/s), `rtt` (s), `loss` (a share of 1), and `rate` (bit/s) or `window` (B).
        """
        change = STEP * np.asarray(actions, dtype=float).reshape(self.lanes)
        self._value = np.where(change >= 0, self._value * (1 + change), self._value / (1 - change))
        is_rate = self.control == "rate"
        least, most = (_LEAST_RATE, _MOST_RATE) if is_rate else (SEGMENT, _UNLIMITED)
        self._value = np.clip(self._value, least, most)
        given = np.empty((self.lanes, 2))
        given[:, 0] = _UNLIMITED if is_rate else self._value
        given[:, 1] = self._value if is_rate else 0.0
        raw = np.frombuffer(self._native.step(given.astype("<f8").tobytes()), "<f8").reshape(-1, _FIELDS)
        sent, acknowledged, lost = raw[:, 1], raw[:, 2], raw[:, 3]
        has_rtt = raw[:, 4] > 0
        self._mean_rtt = np.where(has_rtt, raw[:, 5], self._mean_rtt)
        self._least_rtt = np.where(has_rtt, np.fmin(self._least_rtt, raw[:, 6]), self._least_rtt)
        features = np.stack(
            [
                np.where(has_rtt, raw[:, 7], 0.0),
                np.where(np.isfinite(self._least_rtt), self._mean_rtt / self._least_rtt, 1.0),
                np.where(
                    acknowledged > 0, sent / np.maximum(acknowledged, 1.0), np.where(sent > 0, MOST, 1.0)
                ),
            ],
            axis=1,
        )
        self.observations[:, :-1] = self.observations[:, 1:]
        self.observations[:, -1] = np.clip(features, -MOST, MOST)
        throughput = acknowledged * 8 / self._interval
        loss = lost / np.maximum(sent, np.maximum(lost, 1.0))
        # Aurora's reward, in thousands.
        rewards = 0.001 * (10 * throughput / PACKET_BITS - 1e3 * self._mean_rtt - 2e3 * loss)
        self._done += 1
        ended = (self._done >= self.steps) | (raw[:: self.agents, 9] > 0)
        about = {
            "throughput": throughput,
            "rtt": self._mean_rtt.copy(),
            "loss": loss,
            self.control: self._value.copy(),
        }
        return rewards, ended.astype(float), about


def _checked(path: Any) -> dict[str, Any]:
    """Returns the keys of a path. Raises ValueError with the key and what is allowed."""
    table = table_of(path, "path")
    refuse("path", table)
    return table
