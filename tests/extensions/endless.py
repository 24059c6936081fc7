"""Congestion controllers whose methods do not return."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import longfat

STARTED = "LONGFAT_TEST_STARTED"
"""The environment variable with a file that appears at the first call."""


def started() -> None:
    """Creates the file of `STARTED`, if it is set."""
    if file := os.environ.get(STARTED):
        Path(file).touch()


class Started(longfat.PathPolicy):
    """Reports the start of a connection, and then leaves it to native code."""

    def open(
        self, size: int | None, host: longfat.extensions.policy.Host
    ) -> Sequence[longfat.extensions.policy.HostPath]:
        """Returns the first path."""
        del size
        started()
        return host.paths[:1]


class Endless(longfat.CongestionController):
    """Loops at the first ACK."""

    def on_acknowledged(self, _ack: longfat.extensions.controller.Acknowledgement) -> None:
        started()
        while True:
            pass

    def on_lost(self, loss: longfat.extensions.controller.Loss) -> None:
        """Does nothing."""

    def on_timeout(self, now: float, in_flight: int) -> None:
        """Does nothing."""


class Brief(Endless):
    """Has a short limit."""

    call_limit_s: ClassVar = 0.2


class Stubborn(Endless):
    """Catches each exception once."""

    call_limit_s: ClassVar = 0.2

    def on_acknowledged(self, ack: longfat.extensions.controller.Acknowledgement) -> None:
        try:
            super().on_acknowledged(ack)
        except BaseException:  # noqa: BLE001 - on purpose
            super().on_acknowledged(ack)


class Asleep(Endless):
    """Sleeps in a system call."""

    def on_acknowledged(self, _ack: longfat.extensions.controller.Acknowledgement) -> None:
        started()
        time.sleep(3600)


class LongQueue(longfat.QueueDiscipline):
    """A queue that loops at the first packet."""

    def enqueue(self, _arrival: longfat.extensions.queue.Arrival) -> None:
        started()
        while True:
            pass

    def dequeue(self, now: float) -> None:
        """Returns no packet."""


class Queue(LongQueue):
    """Has a short limit."""

    call_limit_s: ClassVar = 0.2


class WrongLimit(Endless):
    """Has a limit that is no time."""

    call_limit_s: ClassVar = -1.0
