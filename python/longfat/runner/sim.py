"""The world `sim`: virtual time, one thread per core."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from longfat import _native
from longfat.runner.environment import available_cores
from longfat.runner.executor import CancelledTrialError, ThreadedExecutor
from longfat.runner.trial import Records, Trial


class Simulation(ThreadedExecutor):
    """Runs trials in the native simulator, which releases the interpreter's lock."""

    most_trials = 1000

    def __init__(self, jobs: int | None = None) -> None:
        super().__init__(jobs or available_cores())
        self._cancel = _native.Cancel()

    def run_all(self, trials: Sequence[Trial]) -> Records:
        """Returns the records of the trials in one call."""
        started = time.perf_counter()
        found = _native.simulate_trials(trials[0].spec_json, [trial.number for trial in trials], self._cancel)
        if not found["errors"]:
            raise CancelledTrialError
        return Records(
            found["errors"],
            {name: np.frombuffer(values, "<f8") for name, values in found["metrics"].items()},
            np.frombuffer(found["heights"], "<u4"),
            found["flows"],
            time.perf_counter() - started,
        )

    def cancel(self) -> None:
        """Stops running simulations, which check a flag regularly."""
        super().cancel()
        self._cancel.cancel()
