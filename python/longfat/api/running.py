"""Runs of loaded studies, on this machine or on a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from longfat.api.runs import InterruptedRun, run_of
from longfat.cluster import Target, open_machines
from longfat.runner import Interrupted, run_study
from longfat.store.shard import Shard
from longfat.system.remote_path import location

if TYPE_CHECKING:
    from pathlib import Path

    from longfat.presentation.run.displayed import Run
    from longfat.runner.progress import Reporter
    from longfat.runner.sampling import Budget
    from longfat.study import Study


@dataclass(frozen=True)
class Running:
    """How studies run: the parameters of `run` with these names.

    `variant` is that of the overrides, for the default folder. `prefix` precedes the names of parameters in
    messages: "--" for options.
    """

    out: str | Path | None
    jobs: int | None
    fresh: bool
    quick: bool
    force: bool
    budget: Budget
    executor: str | None
    scheduler: str | None
    scheduler_file: str | Path | None
    shard: str | None
    variant: str = ""
    prefix: str = ""

    def run(self, studies: Sequence[Study], reporter: Reporter) -> Iterator[Run]:
        """Runs one study after another, and yields the result of each."""
        target = Target(self.scheduler, None if self.scheduler_file is None else str(self.scheduler_file))
        shard = Shard.of(self.shard, f"{self.prefix}shard")
        with open_machines(self.executor, target, self.jobs, reporter.note, self.prefix) as machines:
            for study in studies:
                try:
                    measured = run_study(
                        study,
                        folder=None if self.out is None else location(self.out),
                        machines=machines,
                        fresh=self.fresh,
                        quick=self.quick,
                        variant=self.variant,
                        reporter=reporter,
                        force=self.force,
                        budget=self.budget,
                        shard=shard,
                    )
                except Interrupted as stop:
                    raise InterruptedRun(str(stop), stop.folder) from None
                yield run_of(measured)

    def awaits_others(self, result: Run) -> bool:
        """Returns whether other shards complete the run, so that the last one writes the report."""
        return self.shard is not None and result.interrupted
