"""Runs of studies, on this machine or on a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longfat.analysis.expectation import theory_problems
from longfat.api.runs import InterruptedRun, run_of
from longfat.cluster import Target, open_machines
from longfat.runner import Interrupted, run_study
from longfat.runner.sampling import Budget
from longfat.store.shard import Shard
from longfat.study import Overrides, load_study
from longfat.system.remote_path import location

if TYPE_CHECKING:
    from longfat.presentation.run.displayed import Run
    from longfat.runner.progress import Reporter
    from longfat.study import Study


@dataclass(frozen=True)
class RunOptions:
    """The parameters of `run` with these names; `settings` are pairs of key and value."""

    worlds: Sequence[str]
    repeats: int | None
    precision: str | None
    budget: str | None
    max_trials: int | None
    settings: Sequence[tuple[str, Any]]
    seed: int | None
    jobs: int | None
    executor: str | None
    scheduler: str | None
    scheduler_file: str | Path | None
    out: str | Path | None
    shard: str | None
    quick: bool
    fresh: bool
    force: bool

    def load(self, study: Any, label: str = "--set") -> Study:
        """Returns the changed study. `label` is the origin of the settings in messages."""
        overrides = Overrides(
            tuple(self.settings),
            tuple(self.worlds),
            self.repeats,
            self.seed,
            self.precision,
            self.quick,
            label=label,
        )
        return load_study(study, overrides, also=theory_problems)

    def run(self, studies: Sequence[Study], reporter: Reporter) -> Iterator[Run]:
        """Runs one loaded study after another, and yields the result of each."""
        target = Target(self.scheduler, None if self.scheduler_file is None else str(self.scheduler_file))
        budget, shard = Budget.of(self.budget, self.max_trials), Shard.of(self.shard)
        with open_machines(self.executor, target, self.jobs, reporter.note) as machines:
            for study in studies:
                try:
                    measured = run_study(
                        study,
                        folder=None if self.out is None else location(self.out),
                        machines=machines,
                        fresh=self.fresh,
                        reporter=reporter,
                        force=self.force,
                        budget=budget,
                        shard=shard,
                    )
                except Interrupted as stop:
                    raise InterruptedRun(str(stop), stop.folder) from None
                yield run_of(measured)

    def awaits_others(self, result: Run) -> bool:
        """Returns whether other shards complete the run, so that the last one writes the report."""
        return self.shard is not None and result.interrupted
