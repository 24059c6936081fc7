"""A policer and a sender with a pacing rate, which the built-in parts do not have."""

from __future__ import annotations

from collections import deque

import longfat as lf
from longfat.extensions.queue import Arrival, Packet


class Policer(lf.QueueDiscipline):
    """Drops packets without tokens, of which a bucket of `burst` bytes gets `rate_mbps` Mbit/s."""

    def __init__(self, rate_mbps: float = 5.0, burst: int = 50_000) -> None:
        self.fill = rate_mbps * 1e6 / 8
        self.tokens = self.burst = float(burst)
        self.last = 0.0
        self.waiting: deque[Packet] = deque()

    def enqueue(self, arrival: Arrival) -> None:
        self.tokens = min(self.burst, self.tokens + self.fill * (arrival.now - self.last))
        self.last = arrival.now
        if arrival.fits and self.tokens >= arrival.packet.size:
            self.tokens -= arrival.packet.size
            self.waiting.append(arrival.packet)
        else:
            self.drop(arrival.packet)

    def dequeue(self, now: float) -> Packet | None:
        return self.waiting.popleft() if self.waiting else None


class Constant(lf.CongestionController):
    """Sends at `rate_mbps` in Mbit/s, with a window that does not limit."""

    def __init__(self, rate_mbps: float = 5.0) -> None:
        self.window = 1e9
        self.pacing_rate = rate_mbps * 1e6

    def on_acknowledged(self, ack: lf.Acknowledgement) -> None:
        """Changes nothing."""

    def on_lost(self, loss: lf.Loss) -> None:
        """Changes nothing."""

    def on_timeout(self, now: float, in_flight: int) -> None:
        """Changes nothing."""
