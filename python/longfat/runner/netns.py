"""The world `netns`: wall time, and hosts that are network namespaces with the real Linux stack.

Each trial is a process of its own that makes namespaces, devices and the emulated links between them. All of
it is held by that process's file descriptors, so nothing outlives it, however it dies.
"""

from __future__ import annotations

import contextlib
import json
from typing import Any

from longfat.kernel.controllers import ControllerUnavailableError, ensure, listed
from longfat.kernel.holder import HolderError
from longfat.runner.environment import available_cores
from longfat.runner.executor import record_from_json
from longfat.runner.processes import EndpointError, ProcessExecutor
from longfat.runner.trial import Record

MOST_JOBS = 4
"""Trials at once, unless said: each has kernels and an emulator that must wake up in time."""
PACKETS_PER_CORE = 6_000
"""Packets a second that trials at once may offer for each core: beyond, they disturb each other's delays."""
# What Linux calls controllers that are there, under another name than a study's.
_OTHER_NAMES = {"bbr1": "bbr"}


class Netns(ProcessExecutor):
    """Runs each trial in a process with namespaces of its own."""

    def __init__(self, jobs: int | None = None) -> None:
        super().__init__(jobs or min(MOST_JOBS, 2 * available_cores()), PACKETS_PER_CORE)
        # Controllers that the kernel was given are held as long as this executor lives.
        self._held = contextlib.ExitStack()
        self._names: dict[str, str] = {}

    def measure(self, spec: dict[str, Any], timeout: float) -> Record:
        """What the trial's process tells; what this machine cannot do is the record's error."""
        try:
            names = {name: self._kernel_name(name) for name in sorted(controllers(spec))}
        except (ControllerUnavailableError, HolderError) as error:
            raise EndpointError(str(error)) from None
        with self.endpoint("emulate") as endpoint:
            endpoint.start(spec, None, names=names)
            return record_from_json(json.dumps(endpoint.answer(timeout)))

    def _kernel_name(self, name: str) -> str:
        """What the kernel calls a controller; Vegas is given to a kernel that has none."""
        with self._guard:
            if name not in self._names:
                own = _OTHER_NAMES.get(name, name)
                if name == "vegas" and own not in listed():
                    own = self._held.enter_context(ensure(name)).kernel_name
                self._names[name] = own
            return self._names[name]

    def close(self) -> None:
        """Waits for the threads to end, and takes back what the kernel was given."""
        super().close()
        self._held.close()


def controllers(spec: dict[str, Any]) -> set[str]:
    """The congestion controllers that a trial names for TCP.

    >>> traffic = [{"name": "rival", "protocol": {"kind": "tcp", "congestion": {"kind": "vegas"}}}]
    >>> sorted(controllers({"protocol": {"kind": "tcp", "congestion": "reno"}, "traffic": traffic}))
    ['reno', 'vegas']
    """
    found = set()
    for protocol in [spec["protocol"], *(one["protocol"] for one in spec.get("traffic", []))]:
        congestion = protocol.get("congestion")
        if protocol.get("kind") == "tcp" and congestion is not None:
            found.add(str(congestion["kind"] if isinstance(congestion, dict) else congestion))
    return found - {"bbr", "fixed"}
