"""The world `sim`: virtual time, one thread per core."""

from __future__ import annotations

from longfat import _native
from longfat.runner.environment import available_cores
from longfat.runner.executor import CancelledTrialError, ThreadedExecutor, record_from_json
from longfat.runner.trial import Record, Trial


class Simulation(ThreadedExecutor):
    """Runs trials in the native simulator, which releases the interpreter's lock."""

    def __init__(self, jobs: int | None = None) -> None:
        super().__init__(jobs or available_cores())
        self._cancel = _native.Cancel()

    def run(self, trial: Trial) -> Record:
        """Returns the record, a pure function of the trial's specification."""
        try:
            return record_from_json(_native.simulate(trial.spec_json, self._cancel))
        except _native.Cancelled:
            raise CancelledTrialError from None

    def cancel(self) -> None:
        """Stops running simulations, which check a flag regularly."""
        super().cancel()
        self._cancel.cancel()
