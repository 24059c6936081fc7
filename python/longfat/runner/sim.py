"""The world `sim`: virtual time, one thread a core."""

from __future__ import annotations

from longfat import _native
from longfat.runner.environment import available_cores
from longfat.runner.executor import CancelledTrialError, ThreadedExecutor, record_from_json
from longfat.runner.trial import Record, Trial


class Simulation(ThreadedExecutor):
    """Runs trials in the native simulator, which lets go of the interpreter's lock."""

    def __init__(self, jobs: int | None = None) -> None:
        super().__init__(jobs or available_cores())
        self._cancel = _native.Cancel()

    def run(self, trial: Trial) -> Record:
        """A pure function of the trial's specification."""
        try:
            return record_from_json(_native.simulate(trial.spec_json, self._cancel))
        except _native.Cancelled:
            raise CancelledTrialError from None

    def cancel(self) -> None:
        """Ends running simulations at their next look at the flag."""
        super().cancel()
        self._cancel.cancel()
