"""The world `netns`: wall time, with network namespaces as hosts and Linux's TCP/IP.

Each trial is a separate process that creates namespaces, devices and the emulated links between them. They
exist as long as the process's file descriptors, so nothing outlives it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from longfat import _native
from longfat.kernel.controllers import PARAMETERS, ControllerUnavailableError, ensure, listed
from longfat.kernel.holder import HolderError
from longfat.results.trial import Record, Trial
from longfat.study.vocabulary import canonical
from longfat.worlds.capacity import machine_capacity
from longfat.worlds.environment import available_cores
from longfat.worlds.executor import record_of
from longfat.worlds.processes import EndpointError, ProcessExecutor

MOST_JOBS = 4
"""Default number of parallel trials: the emulator of each must wake up in time."""
PACKETS_PER_CORE = 6_000
"""Total load of parallel trials for each core, in packets/s, if the capacity is unknown."""
SHARE = 1 / 16
"""Total load of parallel trials as a share of the capacity: above it, they disturb each other."""
ACKNOWLEDGED = 1.5
"""Packets of a flow per packet of its sender: a receiver acknowledges every second one."""
# Linux's names of controllers, if they differ from a study's.
_OTHER_NAMES = {"bbr1": "bbr"}


class Netns(ProcessExecutor):
    """Runs each trial in a process with its own namespaces."""

    def __init__(self, jobs: int | None = None) -> None:
        super().__init__(jobs or min(MOST_JOBS, 2 * available_cores()), PACKETS_PER_CORE)
        # Controllers loaded into the kernel stay there until `close`.
        self._loaded = contextlib.ExitStack()
        self._names: dict[str, str] = {}

    def measure(self, spec: dict[str, Any], timeout: float) -> Record:
        """Returns the record of the trial's process; its error may be a missing requirement."""
        return record_of(self._answer(spec, timeout))

    def trace(self, spec: dict[str, Any], options: dict[str, Any], timeout: float) -> dict[str, Any]:
        """Returns one trial's record with its trace; `options` are the arguments of `emulate_traced`.

        Raises EndpointError if the trial cannot run here.
        """
        answer = self._answer(spec, timeout, options)
        if "events" not in answer:
            raise EndpointError(str(answer["error"]))
        return answer

    def _answer(
        self, spec: dict[str, Any], timeout: float, trace: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        try:
            names = self._kernel_names(spec)
        except (ControllerUnavailableError, HolderError) as error:
            raise EndpointError(str(error)) from None
        with self.endpoint("emulate") as endpoint:
            endpoint.start(spec, None, names=names, trace=trace)
            return endpoint.answer(timeout)

    def unsupported(self, trials: Sequence[Trial]) -> list[str]:
        """Returns why this kernel cannot run some trials, each reason with its first cell."""
        found: dict[str, list[Trial]] = {}
        for trial in {id(trial.cell): trial for trial in trials}.values():
            try:
                _native.check_emulated(trial.spec_json, self._kernel_names(trial.spec))
            except (ControllerUnavailableError, HolderError, ValueError) as error:
                found.setdefault(str(error), []).append(trial)
        return [
            f"{of[0].place}{f' (and {len(of) - 1} more cells)' if len(of) > 1 else ''}: {reason}"
            for reason, of in found.items()
        ]

    def refusals(self, trials: Sequence[Trial]) -> list[str]:
        """Returns a line if trials would send more packets than this machine emulates, with the worst one.

        A capacity measured on a busy machine does not count.
        """
        found = machine_capacity()
        if found is None or not found.packets_per_second:
            return []
        if not found.is_busy:
            self.limit_load(found.packets_per_second * SHARE)
        loads = [(self._expect(trial)[1] * ACKNOWLEDGED, trial) for trial in trials]
        over = [(load, trial) for load, trial in loads if load > found.packets_per_second]
        if not over or found.is_busy:
            return []
        load, worst = max(over, key=lambda one: one[0])
        cells = len({canonical(trial.cell.spec) for _, trial in over})
        others = f" (and {cells - 1} more cells)" if cells > 1 else ""
        expected = f"{worst.place}{others} is expected to send {load:,.0f} packets/s"
        return [f"too many packets: {expected}, and this machine emulates {found.packets_per_second:,.0f}"]

    def _kernel_names(self, spec: dict[str, Any]) -> dict[str, str]:
        """Returns the kernel's names of a trial's controllers. Raises ControllerUnavailableError."""
        return {key: self._kernel_name(key, one) for key, one in controllers(spec).items()}

    def _kernel_name(self, key: str, requested: KernelController) -> str:
        """Returns the kernel's name of a controller; loads Vegas into a kernel without one like it."""
        with self._guard:
            if key not in self._names:
                own = _OTHER_NAMES.get(requested.name, requested.name)
                # The administrator may have changed the thresholds of the kernel's own Vegas.
                if PARAMETERS.get(requested.name) or (requested.name in PARAMETERS and own not in listed()):
                    own = self._loaded.enter_context(ensure(requested.name, requested.parameters)).kernel_name
                self._names[key] = own
            return self._names[key]

    def close(self) -> None:
        """Waits for the threads, and removes loaded controllers from the kernel."""
        super().close()
        self._loaded.close()


class KernelController(NamedTuple):
    """A controller that a study requires of the kernel: its name, and parameters that the kernel has."""

    name: str
    parameters: dict[str, int]


def controllers(spec: dict[str, Any]) -> dict[str, KernelController]:
    """Returns the congestion controllers of a trial's TCP flows, by name and parameters as one line.

    >>> vegas = {"kind": "vegas", "beta": 6, "alpha": 3}
    >>> traffic = [{"name": "rival", "protocol": {"kind": "tcp", "congestion": vegas}}]
    >>> list(controllers({"protocol": {"kind": "tcp", "congestion": "reno"}, "traffic": traffic}))
    ['reno', 'vegas alpha=3 beta=6']
    """
    found = {}
    for protocol in [spec["protocol"], *(one["protocol"] for one in spec.get("traffic", []))]:
        congestion = protocol.get("congestion")
        # Longfat's own TCP needs no controller of the kernel.
        by_kernel = protocol.get("kind") in {"tcp", "mptcp"} and protocol.get("stack") != "longfat"
        if not by_kernel or congestion is None:
            continue
        given = congestion if isinstance(congestion, dict) else {"kind": congestion}
        name = str(given["kind"])
        if name in ("bbr", "bbr-tolerant", "fixed"):
            continue
        known = PARAMETERS.get(name, {})
        parameters = {key: int(given[key]) for key in sorted(known) if given.get(key) is not None}
        key = " ".join([name, *(f"{key}={value}" for key, value in parameters.items())])
        found[key] = KernelController(name, parameters)
    return found
