"""The world `relay`: wall time and UDP sockets on loopback.

The receiver, the relay (the network between the two) and the sender of a trial are separate processes, as on
three hosts.
"""

from __future__ import annotations

import contextlib
from typing import Any

from longfat.results.trial import Record
from longfat.worlds.environment import available_cores
from longfat.worlds.executor import record_of
from longfat.worlds.processes import ProcessExecutor

JOBS_PER_CORE = 16
MOST_JOBS = 64
"""Default number of parallel trials: most of the time they wait for their path."""
PACKETS_PER_CORE = 2_500
"""Total load of parallel trials for each core, in packets/s: above it, they disturb each other."""


class Relay(ProcessExecutor):
    """Runs each trial in three processes."""

    def __init__(self, jobs: int | None = None) -> None:
        super().__init__(jobs or min(MOST_JOBS, JOBS_PER_CORE * available_cores()), PACKETS_PER_CORE)

    def measure(self, spec: dict[str, Any], timeout: float) -> Record:
        """Starts the sender once receiver and relay listen, and returns its record."""
        with contextlib.ExitStack() as stack:
            receiver, relay, sender = (
                stack.enter_context(self.endpoint(role)) for role in ("receive", "relay", "send")
            )
            receiver.start(spec, None)
            relay.start(spec, receiver.listening())
            sender.start(spec, relay.listening())
            return record_of(sender.answer(timeout))
