"""The world `sim`: virtual time, one thread per core."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import polars as pl

from longfat import _native
from longfat.results.trial import Records, Trial, trials_frame
from longfat.system.flow_table import flow_table
from longfat.worlds.environment import available_cores
from longfat.worlds.executor import CancelledTrialError, ThreadedExecutor


class Simulation(ThreadedExecutor):
    """Runs trials in the native simulator, which releases the interpreter's lock."""

    most_trials = 1000

    def __init__(self, jobs: int | None = None) -> None:
        super().__init__(jobs or available_cores())
        self._cancel = _native.Cancel()

    def run_all(self, trials: Sequence[Trial]) -> Records:
        """Returns the records of the trials in one call."""
        started = time.perf_counter()
        numbers = [trial.number for trial in trials]
        found = _native.simulate_trials(trials[0].spec_json, numbers, self._cancel)
        errors = found["errors"]
        if not errors:
            raise CancelledTrialError
        metrics = {name: np.frombuffer(values, "<f8") for name, values in found["metrics"].items()}
        table = trials_frame(numbers[: len(errors)], errors, metrics)
        flows = flow_table(found["flows"]) if found["flows"] else pl.DataFrame()
        if flows.height:
            heights = np.frombuffer(found["heights"], "<u4")
            flows.insert_column(0, pl.Series("trial", np.repeat(table["trial"].to_numpy(), heights)))
        return Records(table, flows, time.perf_counter() - started)

    def cancel(self) -> None:
        """Stops running simulations, which check a flag regularly."""
        super().cancel()
        self._cancel.cancel()
