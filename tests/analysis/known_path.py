"""Paths with known links, and the replies of their routers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from longfat.analysis.inference.samples import Samples
from longfat.measurement.path import default_sizes

SIZES = default_sizes(36, 1500)
OWN_S = 30e-6
"""Processing time of the hosts in s."""


@dataclass
class Truth:
    """A path: rates in bit/s, one-way delays in s, and `busy`, the share of time in which a link is busy."""

    rates: list[float]
    delays: list[float]
    reverse: list[float] | None = None
    busy: float = 0.2
    queue: float = 1e-3
    """Mean queueing delay at a busy link of 10 Mbit/s in s; inversely proportional to the rate."""
    jitter: float = 5e-6
    quote: int = 576
    slow: dict[int, float] | None = None

    def sample(
        self, random: np.random.Generator, ttl: int, size: int, *, echo: bool = False
    ) -> dict[str, Any]:
        """Returns a reply in the prober's format."""
        answer = size if echo else min(self.quote, size + 28) if self.quote > 56 else 56
        reverse = self.reverse or self.rates
        seconds = OWN_S + random.gamma(2, self.jitter) + (self.slow or {}).get(ttl, 0.0)
        for rate, reverse_rate, delay in zip(self.rates[:ttl], reverse[:ttl], self.delays[:ttl], strict=True):
            seconds += 2 * delay + size * 8 / rate + answer * 8 / reverse_rate
            if random.random() < self.busy:
                seconds += random.exponential(self.queue * 1e7 / rate)
        last = ttl == len(self.rates)
        reply = {
            "kind": "reached" if last else "time-exceeded",
            "from": f"10.0.0.{ttl}",
            "size": answer,
            "mtu": None,
        }
        return {"ttl": ttl, "size": size, "answer": reply, "kernel_s": seconds, "application_s": seconds}

    def samples(self, seed: int, rounds: int, *, echo: bool = False) -> Samples:
        random = np.random.default_rng(seed)
        samples, last = Samples(), len(self.rates)
        for ttl in range(1, last + 1):
            samples.add(
                self.sample(random, ttl, size, echo=echo and ttl == last)
                for _ in range(rounds)
                for size in SIZES
            )
        return samples
