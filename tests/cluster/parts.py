"""Congestion controllers in Python for tests of a cluster, which imports this file as users' files."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import longfat as lf


class Aimd(lf.CongestionController):
    """Additive increase, multiplicative decrease."""

    def on_acknowledged(self, ack: lf.Acknowledgement) -> None:
        """Adds a packet for each window."""
        self.window += self.segment * ack.bytes / self.window

    def on_lost(self, loss: lf.Loss) -> None:
        """Halves the window."""
        self.window = max(self.window / 2, 2 * self.segment)

    def on_timeout(self, now: float, in_flight: int) -> None:
        """Restarts with one packet."""
        self.window = self.segment


class Poison(Aimd):
    """Kills its process after a timeout."""

    def on_timeout(self, now: float, in_flight: int) -> None:
        """Kills the process."""
        os.kill(os.getpid(), signal.SIGKILL)


class Glutton(Aimd):
    """Allocates memory after a timeout until its process is killed."""

    def on_timeout(self, now: float, in_flight: int) -> None:
        """Allocates memory."""
        taken = [os.urandom(1 << 16) * 160 for _ in range(100)]
        assert len(taken) == 100


class Failing(Aimd):
    """Fails after a loss."""

    def on_lost(self, loss: lf.Loss) -> None:
        """Fails."""
        raise RuntimeError(Path(__file__).name)
