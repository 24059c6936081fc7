"""An executor with scripted trials."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from longfat.results.trial import Record, Records, Trial
from longfat.runner import runner
from longfat.study import Study, load_study
from longfat.worlds.executor import CancelledTrialError, ThreadedExecutor

Behaviour = Callable[[Trial], Record]


class Scripted(ThreadedExecutor):
    """Runs a function as each trial, and records the trials."""

    def __init__(self, behaviour: Behaviour, jobs: int = 2) -> None:
        super().__init__(jobs)
        self.behaviour = behaviour
        self.ran: list[Trial] = []
        self._guard = threading.Lock()

    def run_all(self, trials: Sequence[Trial]) -> Records:
        (trial,) = trials
        if self._cancelled.is_set():
            raise CancelledTrialError
        with self._guard:
            self.ran.append(trial)
        return Records.of(trial.number, self.behaviour(trial))


def goodput(trial: Trial) -> Record:
    """Returns a record that depends on the trial only."""
    value = 1e6 + (int(trial.key[:6], 16) % 1000) * 100 + trial.number
    return Record({"goodput_bps": float(value), "completion_s": 8e6 / value})


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Callable[[Behaviour], list[Scripted]]:
    """Replaces the executors of all worlds; returns the list of created executors."""

    def _use(behaviour: Behaviour = goodput) -> list[Scripted]:
        created: list[Scripted] = []

        def _make(world: str, jobs: int | None) -> Scripted:
            created.append(Scripted(behaviour, jobs or 2))
            return created[-1]

        monkeypatch.setattr(runner, "executor_of", _make)
        return created

    return _use


@pytest.fixture
def study(data: dict[str, Any]) -> Study:
    """The small study."""
    return load_study(data, name="small")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a run."""
    return tmp_path / "run"
