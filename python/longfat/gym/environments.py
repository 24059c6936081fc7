"""The environments: one network, and many at the same time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from longfat.gym.networks import FEATURES, HISTORY, MOST, Networks, PathRange
from longfat.study.tables import Path
from longfat.system.parameters import ParameterError

_OBSERVATION = gymnasium.spaces.Box(-MOST, MOST, (HISTORY * FEATURES,), np.float32)
_ACTION = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)


class CongestionEnv(gymnasium.Env[Any, Any]):
    """One sender on a random path.

    Args:
        interval: Monitor interval in s.
        steps: Intervals of an episode.
        control: What an action changes: "rate" or "window".
        path: Ranges of the random paths, or one path: `Path(rate="50Mbit/s", delay="10ms")` or its keys.

    Raises:
        ValueError: with the parameter or key and what is allowed.
    """

    def __init__(
        self,
        interval: float = 0.01,
        steps: int = 400,
        control: Literal["rate", "window"] = "rate",
        path: PathRange | Path | Mapping[str, Any] | None = None,
    ) -> None:
        self._networks = Networks(1, interval=interval, steps=steps, control=control, path=path, threads=1)
        self.observation_space = _OBSERVATION
        self.action_space = _ACTION

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode on a new path; `seed` restarts the random paths."""
        super().reset(seed=seed)
        del options
        if seed is not None:
            self._networks.seed(seed)
        self._networks.reset(0)
        return self._observation(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Runs one interval; the episode is truncated after `steps` of them."""
        rewards, ended, about = self._networks.step(np.asarray(action, dtype=float))
        numbers = {name: float(values[0]) for name, values in about.items()}
        return self._observation(), float(rewards[0]), False, bool(ended[0]), numbers

    def _observation(self) -> Any:
        return self._networks.observations[0].astype(np.float32).ravel()


class CongestionVectorEnv(VectorEnv[Any, Any, Any]):
    """Senders on many random networks, which advance on all cores without the GIL.

    With several agents in each network, they share a bottleneck, and each agent is a separate environment:
    `num_envs` is `networks` times `agents`. Episodes restart in the step in which they end.

    Args:
        networks: Number of networks.
        agents: Senders in each network.
        interval: Monitor interval in s.
        steps: Intervals of an episode.
        control: What an action changes: "rate" or "window".
        path: Ranges of the random paths, or one path: an object or its keys.
        threads: Number of threads; by default one for each core.

    Raises:
        ValueError: with the parameter or key and what is allowed.
    """

    metadata: dict[str, Any] = {"autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012 - as in the base class

    def __init__(
        self,
        networks: int = 64,
        *,
        agents: int = 1,
        interval: float = 0.01,
        steps: int = 400,
        control: Literal["rate", "window"] = "rate",
        path: PathRange | Path | Mapping[str, Any] | None = None,
        threads: int | None = None,
    ) -> None:
        if networks < 1:
            raise ParameterError("networks", f"{networks} is out of range: at least 1")
        self._networks = Networks(
            networks,
            agents=agents,
            interval=interval,
            steps=steps,
            control=control,
            path=path,
            threads=threads,
        )
        self.num_envs = self._networks.lanes
        self.single_observation_space = _OBSERVATION
        self.single_action_space = _ACTION
        self.observation_space = batch_space(_OBSERVATION, self.num_envs)
        self.action_space = batch_space(_ACTION, self.num_envs)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Starts an episode of every network; `seed` restarts the random paths."""
        del options
        if seed is not None:
            self._networks.seed(int(np.atleast_1d(seed)[0]))
        for network in range(self._networks.count):
            self._networks.reset(network)
        return self._observations(), {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Runs one interval of every network."""
        rewards, ended, about = self._networks.step(np.asarray(actions, dtype=float))
        truncated = np.repeat(ended > 0, self._networks.agents)
        infos: dict[str, Any] = dict(about)
        if truncated.any():
            infos["final_obs"] = self._observations()
            infos["_final_obs"] = truncated
            for network in np.flatnonzero(ended):
                self._networks.reset(int(network))
        return self._observations(), rewards, np.zeros(self.num_envs, dtype=bool), truncated, infos

    def _observations(self) -> Any:
        return self._networks.observations.astype(np.float32).reshape(self.num_envs, -1)


if "longfat/Congestion-v0" not in gymnasium.registry:
    gymnasium.register("longfat/Congestion-v0", entry_point="longfat.gym:CongestionEnv")
