"""The world `relay`: wall time, real UDP sockets on loopback, and three real processes a trial.

The receiver, the relay (the network between the two) and the sender are separate processes, as they would be
on three hosts.
"""

from __future__ import annotations

import contextlib
from typing import Any

from longfat.runner.environment import available_cores
from longfat.runner.executor import record_of
from longfat.runner.processes import ProcessExecutor
from longfat.runner.trial import Record

JOBS_PER_CORE = 16
MOST_JOBS = 64
"""Trials at once, unless said: they mostly wait for their path to deliver."""
PACKETS_PER_CORE = 2_500
"""Packets a second that trials at once may offer for each core: beyond, they disturb each other."""


class Relay(ProcessExecutor):
    """Runs each trial in three processes."""

    def __init__(self, jobs: int | None = None) -> None:
        super().__init__(jobs or min(MOST_JOBS, JOBS_PER_CORE * available_cores()), PACKETS_PER_CORE)

    def measure(self, spec: dict[str, Any], timeout: float) -> Record:
        """What the sender tells, once receiver and relay listen."""
        with contextlib.ExitStack() as stack:
            receiver, relay, sender = (
                stack.enter_context(self.endpoint(role)) for role in ("receive", "relay", "send")
            )
            receiver.start(spec, None)
            relay.start(spec, receiver.listening())
            sender.start(spec, relay.listening())
            return record_of(sender.answer(timeout))
