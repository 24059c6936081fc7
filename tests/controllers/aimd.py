"""A custom controller: additive increase, multiplicative decrease."""

from __future__ import annotations

import longfat


class Aimd(longfat.CongestionController):
    """Adds `increase` packets per RTT; multiplies the window by `keep` at a loss."""

    def __init__(self, increase: float = 1.0, keep: float = 0.5) -> None:
        self.increase, self.keep = increase, keep
        self.threshold: float = float("inf")
        self.reduced_at = -1.0

    def on_acknowledged(self, ack: longfat.Acknowledgement) -> None:
        """Doubles the window per RTT below the threshold; adds `increase` packets above."""
        if ack.window_limited and not ack.in_recovery:
            slow = self.window < self.threshold
            self.window += ack.bytes * (1 if slow else self.increase * self.segment / self.window)

    def on_lost(self, loss: longfat.Loss) -> None:
        """Shrinks the window once for all packets sent before."""
        if loss.newest_sent_at > self.reduced_at:
            self.window = self.threshold = max(self.keep * self.window, 2 * self.segment)
            self.reduced_at = loss.now

    def on_timeout(self, now: float, in_flight: int) -> None:
        """Restarts from one packet."""
        self.threshold = max(self.keep * self.window, 2 * self.segment)
        self.window, self.reduced_at = self.segment, now
