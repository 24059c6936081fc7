"""Gymnasium environments for congestion control (`pip install longfat[gym]`).

    import gymnasium
    import longfat.gym

    environment = gymnasium.make("longfat/Congestion-v0")
    networks = longfat.gym.CongestionVectorEnv(64)

Observations are the last ten monitor intervals, oldest first, each as three numbers: slope of the RTT, ratio
of mean to smallest RTT, ratio of bytes sent to acknowledged. An action changes rate or window by up to 2.5 %
per unit. Rewards are those of Aurora, divided by 1000: 10 times the throughput in packets per second, minus
1000 times the RTT in s, minus 2000 times the loss.
"""

from __future__ import annotations

from longfat.gym.environments import CongestionEnv, CongestionVectorEnv
from longfat.gym.networks import PathRange

__all__ = ["CongestionEnv", "CongestionVectorEnv", "PathRange"]
