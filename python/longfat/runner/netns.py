"""The world `netns`: wall time, and hosts that are network namespaces with the real Linux stack.

Each trial is a process of its own that makes namespaces, devices and the emulated links between them. All of
it is held by that process's file descriptors, so nothing outlives it, however it dies.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from longfat import _native
from longfat.kernel.controllers import ControllerUnavailableError, ensure, listed
from longfat.kernel.holder import HolderError
from longfat.runner.environment import available_cores
from longfat.runner.executor import CancelledTrialError, ThreadedExecutor, record_from_json
from longfat.runner.relay import Endpoint, EndpointError, LoadBudget
from longfat.runner.trial import Record, Trial
from longfat.study import units
from longfat.study.vocabulary import canonical

MOST_JOBS = 4
"""Trials at once, unless said: each has kernels and an emulator that must wake up in time."""
PACKETS_PER_CORE = 6_000
"""Packets a second that trials at once may offer for each core: beyond, they disturb each other's delays."""
PATIENCE_FACTOR = 4.0
PATIENCE_S = 60.0
UNKNOWN_PATIENCE_S = 600.0

# What Linux calls controllers that are there, under another name than a study's.
_OTHER_NAMES = {"bbr1": "bbr"}


class Netns(ThreadedExecutor):
    """Runs each trial in a process with namespaces of its own, as many at once as the load allows."""

    def __init__(self, jobs: int | None = None) -> None:
        super().__init__(jobs or min(MOST_JOBS, 2 * available_cores()))
        self._budget = LoadBudget(PACKETS_PER_CORE * available_cores())
        self._expected: dict[str, tuple[float, float]] = {}
        self._cancel = _native.Cancel()
        self._running: set[Endpoint] = set()
        self._guard = threading.Lock()
        # Controllers that the kernel was given are held as long as this executor lives.
        self._held = contextlib.ExitStack()
        self._names: dict[str, str] = {}

    def forecast(self, trials: Sequence[Trial]) -> float | None:
        """From what the simulator expects of each: shared among the jobs, or as the load allows."""
        expected = [self._expect(trial) for trial in trials]
        packets = sum(seconds * rate for seconds, rate in expected)
        longest = max((seconds for seconds, _ in expected), default=0.0)
        shared = sum(seconds for seconds, _ in expected) / self.jobs
        return max(longest, shared, packets / self._budget.limit)

    def run(self, trial: Trial) -> Record:
        """Runs one trial in real time; what this machine cannot do gives a failed record that says so."""
        seconds, packets_per_second = self._expect(trial)
        timeout = seconds * PATIENCE_FACTOR + PATIENCE_S if seconds else UNKNOWN_PATIENCE_S
        with self._budget.share(packets_per_second):
            if self._cancelled.is_set():
                raise CancelledTrialError
            try:
                names = {name: self._kernel_name(name) for name in sorted(controllers(trial.spec))}
                record = self._emulate(trial.spec, names, timeout)
            except (EndpointError, ControllerUnavailableError, HolderError) as error:
                record = Record(None, str(error))
        if self._cancelled.is_set():
            raise CancelledTrialError
        return record

    def _kernel_name(self, name: str) -> str:
        """What the kernel calls a controller; Vegas is given to a kernel that has none."""
        with self._guard:
            if name not in self._names:
                own = _OTHER_NAMES.get(name, name)
                if name == "vegas" and own not in listed():
                    self._names[name] = self._held.enter_context(ensure(name)).kernel_name
                else:
                    self._names[name] = own
            return self._names[name]

    def _emulate(self, spec: dict[str, Any], names: dict[str, str], timeout: float) -> Record:
        with self._endpoint() as endpoint:
            endpoint.start(spec, None, names=names)
            return record_from_json(json.dumps(endpoint.answer(timeout)))

    @contextlib.contextmanager
    def _endpoint(self) -> Iterator[Endpoint]:
        endpoint = Endpoint("emulate")
        with self._guard:
            self._running.add(endpoint)
            if self._cancelled.is_set():  # after `cancel` looked through the running ones
                endpoint.process.kill()
        try:
            yield endpoint
        finally:
            with self._guard:
                self._running.discard(endpoint)
            endpoint.close()

    def _expect(self, trial: Trial) -> tuple[float, float]:
        """Seconds and packets a second that the simulator expects; zeros where it expects failure."""
        name = canonical(trial.cell.spec)
        if name not in self._expected:
            try:
                metrics = record_from_json(_native.simulate(trial.spec_json, self._cancel)).metrics or {}
            except _native.Cancelled:
                raise CancelledTrialError from None
            workload = trial.spec["workload"]
            measured = _seconds(workload, "duration") - _seconds(workload, "warm_up")
            seconds = _seconds(workload, "duration") or metrics.get("completion_s", 0.0)
            span = measured if measured > 0 else seconds
            self._expected[name] = (seconds, metrics.get("packets_sent", 0.0) / span if span else 0.0)
        return self._expected[name]

    def cancel(self) -> None:
        """Ends every process, which ends the trials."""
        super().cancel()
        self._cancel.cancel()
        self._budget.open()
        with self._guard:
            for endpoint in self._running:
                endpoint.process.kill()

    def close(self) -> None:
        """Waits for the threads to end, and takes back what the kernel was given."""
        super().close()
        self._held.close()


def _seconds(workload: dict[str, Any], key: str) -> float:
    found = units.number(workload[key]) if key in workload else None
    return found or 0.0


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
