"""The interface of a world's executor, and a base class with a pool of threads.

A new world is a class with `submit`, `cancel` and `close` (most simply a `ThreadedExecutor` with its own
`run`) and one line in `longfat.study.worlds`.
"""

from __future__ import annotations

import abc
import importlib
import json
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Protocol

from longfat.results.trial import Record, Records, Trial
from longfat.store.planning import CellTrials
from longfat.study.worlds import WORLDS
from longfat.system.threads import DaemonPool


class CancelledTrialError(Exception):
    """The trial was cancelled; it has no record."""


DEATHS = 3
"""Times that a trial may kill the process that runs it."""
STOP_TIMEOUT_S = 1.0
"""How long a cancelled executor waits for its threads."""
KILLED = f"killed its worker {DEATHS} times"
"""The error of a trial that did: it is set aside."""


class DividedCallError(Exception):
    """A call was divided; each of `parts` has trials of the call and the future of their records."""

    def __init__(self, parts: Sequence[tuple[CellTrials, Future[Records]]]) -> None:
        super().__init__(f"divided into {len(parts)} calls")
        self.parts = parts


class Executor(Protocol):
    """Runs trials of one world in parallel."""

    @property
    def jobs(self) -> int:
        """The number of parallel calls."""

    most_trials: int
    """Maximum number of trials in one call."""
    longest_first: bool
    """Whether cells with long trials come first, rather than in turns."""

    @property
    def seconds_per_call(self) -> float:
        """The duration in s for which a call gets trials."""

    def submit(self, trials: CellTrials) -> Future[Records]:
        """Queues trials of one cell.

        After `cancel` the future has the records of the finished ones, or raises CancelledTrialError. It
        raises DividedCallError if other futures have the records.
        """

    def forecast(self, trials: Sequence[Trial]) -> float | None:
        """Returns the expected duration of all trials in s, None if unknown."""

    def unsupported(self, trials: Sequence[Trial]) -> list[str]:
        """Returns why this system cannot run some of the trials, one line for each reason."""

    def refusals(self, trials: Sequence[Trial]) -> list[str]:
        """Returns why some trials exceed this machine's capacity, one line each."""

    def cancel(self) -> None:
        """Cancels all waiting and running trials."""

    def close(self) -> None:
        """Waits for running trials and frees all resources."""


class ThreadedExecutor(abc.ABC):
    """Runs trials in a pool of threads, for worlds that wait or release the interpreter's lock."""

    most_trials = 1
    longest_first = False
    seconds_per_call = 0.05
    """Far above the cost of a call, and short for progress and Ctrl-C."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self._pool = DaemonPool(jobs, "trial")
        self._cancelled = threading.Event()

    @abc.abstractmethod
    def run_all(self, trials: Sequence[Trial]) -> Records:
        """Runs up to `most_trials` trials of one cell in the calling thread.

        After `cancel` it returns the records of the finished ones or raises CancelledTrialError.
        """

    def forecast(self, trials: Sequence[Trial]) -> float | None:  # noqa: ARG002 - a subclass may know
        """Returns None."""
        return None

    def unsupported(self, trials: Sequence[Trial]) -> list[str]:  # noqa: ARG002 - a subclass may know
        """Returns none."""
        return []

    def refusals(self, trials: Sequence[Trial]) -> list[str]:  # noqa: ARG002 - a subclass may know
        """Returns none."""
        return []

    def submit(self, trials: Sequence[Trial]) -> Future[Records]:
        """Queues trials for the next free thread."""
        return self._pool.submit(self._unless_cancelled, trials)

    def _unless_cancelled(self, trials: Sequence[Trial]) -> Records:
        if self._cancelled.is_set():
            raise CancelledTrialError
        return self.run_all(trials)

    def cancel(self) -> None:
        """Cancels waiting trials; a subclass also stops running ones."""
        self._cancelled.set()

    def close(self) -> None:
        """Waits for the threads; after `cancel` for up to 1 s, since a Python class may ignore exceptions."""
        self._pool.close(STOP_TIMEOUT_S if self._cancelled.is_set() else None)


def executor_of(world: str, jobs: int | None) -> Executor:
    """Returns the executor of a world; with `jobs` None it chooses the number of parallel trials."""
    module, _, name = WORLDS[world].partition(":")
    made: Executor = getattr(importlib.import_module(module), name)(jobs)
    return made


def record_from_json(text: str) -> Record:
    """Returns the record in the native part's JSON text."""
    return record_of(json.loads(text))


def record_of(content: Mapping[str, Any]) -> Record:
    """Returns the record in the native part's JSON object."""
    metrics, error = content.get("metrics"), content.get("error")
    if metrics is None:
        return Record(None, str(error or "the trial returned no record"))
    # A metric without a value (an RTT percentile without samples) is null.
    measured = {name: float(value) for name, value in metrics.items() if value is not None}
    return Record(measured, None, content.get("flows") or ())
