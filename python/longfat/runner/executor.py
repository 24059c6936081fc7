"""The contract of a world's executor, and the one that keeps a pool of threads.

A new world is a class with `submit`, `cancel` and `close` (most simply a `ThreadedExecutor` with its own
`run`) and one line in `longfat.worlds`.
"""

from __future__ import annotations

import abc
import importlib
import json
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol

from longfat.runner.trial import Record, Trial
from longfat.worlds import WORLDS


class CancelledTrialError(Exception):
    """The trial was given up because the run is ending; it has no record."""


class Executor(Protocol):
    """Runs trials of one world, several at once."""

    jobs: int
    """How many trials run at once."""

    def submit(self, trial: Trial) -> Future[Record]:
        """Starts a trial when its turn comes. The future raises CancelledTrialError after `cancel`."""

    def forecast(self, trials: Sequence[Trial]) -> float | None:
        """Seconds that so many trials will take; None where there is no saying before they run."""

    def unsupported(self, trials: Sequence[Trial]) -> list[str]:
        """Trials that the world cannot run on this system, a line a reason; empty where it can run all."""

    def refusals(self, trials: Sequence[Trial]) -> list[str]:
        """Why this machine does not hold some of these trials, a line each; empty where it does."""

    def cancel(self) -> None:
        """Gives up every trial that is waiting or running, soon."""

    def close(self) -> None:
        """Waits for what is running and frees all that is held."""


class ThreadedExecutor(abc.ABC):
    """Trials in a pool of threads, for worlds that wait or release the interpreter's lock."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self._pool = ThreadPoolExecutor(jobs, thread_name_prefix="trial")
        self._cancelled = threading.Event()

    @abc.abstractmethod
    def run(self, trial: Trial) -> Record:
        """Runs one trial in the calling thread. Raises CancelledTrialError once the run is given up."""

    def forecast(self, trials: Sequence[Trial]) -> float | None:  # noqa: ARG002 - a subclass may know
        """No saying."""
        return None

    def unsupported(self, trials: Sequence[Trial]) -> list[str]:  # noqa: ARG002 - a subclass may know
        """None."""
        return []

    def refusals(self, trials: Sequence[Trial]) -> list[str]:  # noqa: ARG002 - a subclass may know
        """None."""
        return []

    def submit(self, trial: Trial) -> Future[Record]:
        """Starts a trial when a thread is free."""
        return self._pool.submit(self._unless_cancelled, trial)

    def _unless_cancelled(self, trial: Trial) -> Record:
        if self._cancelled.is_set():
            raise CancelledTrialError
        return self.run(trial)

    def cancel(self) -> None:
        """Gives up what waits; a subclass also ends what runs."""
        self._cancelled.set()

    def close(self) -> None:
        """Waits for the threads to end."""
        self._pool.shutdown(wait=True, cancel_futures=True)


def executor_of(world: str, jobs: int | None) -> Executor:
    """The executor of a world; `jobs` None leaves the number to it."""
    module, _, name = WORLDS[world].partition(":")
    made: Executor = getattr(importlib.import_module(module), name)(jobs)
    return made


def record_from_json(text: str) -> Record:
    """Reads the native part's record."""
    return record_of(json.loads(text))


def record_of(content: Mapping[str, Any]) -> Record:
    """The record that the native part tells."""
    metrics, error = content.get("metrics"), content.get("error")
    if metrics is None:
        return Record(None, str(error or "the trial gave no record"))
    # A metric that a trial has no value for (an RTT percentile without a sample) is null.
    measured = {name: float(value) for name, value in metrics.items() if value is not None}
    return Record(measured, None, content.get("flows") or ())
