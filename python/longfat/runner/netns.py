"""The world `netns`: wall time, and hosts that are network namespaces with the real Linux stack.

Each trial is a process of its own that makes namespaces, devices and the emulated links between them. All of
it is held by that process's file descriptors, so nothing outlives it, however it dies.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from longfat import _native
from longfat.kernel.controllers import PARAMETERS, ControllerUnavailableError, ensure, listed
from longfat.kernel.holder import HolderError
from longfat.runner.capacity import machine_capacity
from longfat.runner.environment import available_cores
from longfat.runner.executor import record_of
from longfat.runner.processes import EndpointError, ProcessExecutor
from longfat.runner.trial import Record, Trial
from longfat.study.vocabulary import canonical

MOST_JOBS = 4
"""Trials at once, unless said: each has kernels and an emulator that must wake up in time."""
PACKETS_PER_CORE = 6_000
"""Packets a second that trials at once may offer for each core where the machine was not measured."""
SHARE = 1 / 16
"""The part of what the machine emulates that trials at once may offer: beyond, they disturb each other."""
ACKNOWLEDGED = 1.5
"""Packets of a flow over those of its sender: a receiver acknowledges every second one."""
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
        return record_of(self._answer(spec, timeout))

    def trace(self, spec: dict[str, Any], asked: dict[str, Any], timeout: float) -> dict[str, Any]:
        """One trial's record with what was traced; `asked` are the arguments of `emulate_traced`.

        Raises EndpointError where the trial cannot be run here.
        """
        answer = self._answer(spec, timeout, asked)
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
        """The trials that this kernel cannot be asked for, by reason, each with the first one's cell."""
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
        """The trials that are expected to send more packets than this machine emulates, the worst one named.

        A machine that is busy while it is measured is no reason.
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
        """What the kernel calls the controllers of a trial; ControllerUnavailableError where it has none."""
        return {key: self._kernel_name(key, asked) for key, asked in controllers(spec).items()}

    def _kernel_name(self, key: str, asked: Asked) -> str:
        """What the kernel calls a controller; Vegas is given to a kernel that has none like it."""
        with self._guard:
            if key not in self._names:
                own = _OTHER_NAMES.get(asked.name, asked.name)
                # Whoever set up this machine may have given the kernel's own Vegas other thresholds.
                if PARAMETERS.get(asked.name) or (asked.name in PARAMETERS and own not in listed()):
                    own = self._held.enter_context(ensure(asked.name, asked.parameters)).kernel_name
                self._names[key] = own
            return self._names[key]

    def close(self) -> None:
        """Waits for the threads to end, and takes back what the kernel was given."""
        super().close()
        self._held.close()


class Asked(NamedTuple):
    """A controller as a study asks a kernel for it: its name, and what a kernel can be told of it."""

    name: str
    parameters: dict[str, int]


def controllers(spec: dict[str, Any]) -> dict[str, Asked]:
    """The congestion controllers that a trial names for TCP, by the name and parameters in a line.

    >>> vegas = {"kind": "vegas", "beta": 6, "alpha": 3}
    >>> traffic = [{"name": "rival", "protocol": {"kind": "tcp", "congestion": vegas}}]
    >>> list(controllers({"protocol": {"kind": "tcp", "congestion": "reno"}, "traffic": traffic}))
    ['reno', 'vegas alpha=3 beta=6']
    """
    found = {}
    for protocol in [spec["protocol"], *(one["protocol"] for one in spec.get("traffic", []))]:
        congestion = protocol.get("congestion")
        # Longfat's own TCP asks the kernel for nothing.
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
        found[key] = Asked(name, parameters)
    return found
