"""Runs a study: plans its trials, skips those with a record, and summarises the records."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from longfat import _native
from longfat.results.run import Cell, CellResult
from longfat.runner import loading
from longfat.runner.dispatch import run_trials
from longfat.runner.progress import Reporter
from longfat.runner.sampling import Budget, exhausted, first_counts, next_counts, widths
from longfat.store.planning import Plan, PlannedTrials, plan
from longfat.store.shard import Shard
from longfat.store.store import Store, open_store
from longfat.store.table import Table
from longfat.study import Study, cells
from longfat.study.claims import MIN_TRIALS
from longfat.study.combinations import Cells, Points
from longfat.study.support import first_refused
from longfat.system.remote_path import Location
from longfat.worlds.environment import environment
from longfat.worlds.executor import Executor, executor_of

LARGE_RUN = 200_000
"""Number of trials whose records take seconds to read."""
RUNS = Path("runs")


class Interrupted(KeyboardInterrupt):
    """Ctrl-C stopped the run; its records are kept in `folder`. The text describes how to resume."""

    def __init__(self, message: str, folder: Location) -> None:
        super().__init__(message)
        self.folder = folder


class MachineTooSlowError(OSError):
    """Trials in wall time exceed this machine's capacity. The text has one line for each reason."""

    def __init__(self, world: str, refusals: Sequence[str]) -> None:
        lines = [f"world {world}: {line}" for line in refusals]
        super().__init__(
            "\n".join([*lines, "longfat check measures the paths; --force runs the trials anyway"])
        )


class UnsupportedTrialsError(OSError):
    """A world cannot run some trials on this system. The text has one line for each reason."""

    def __init__(self, world: str, reasons: Sequence[str]) -> None:
        lines = [f"world {world}: {line}" for line in reasons]
        super().__init__("\n".join([*lines[:-1], f"{lines[-1]} (--force runs the other trials)"]))


class Machines(Protocol):
    """What runs the trials."""

    def executor_of(self, world: str) -> Executor:
        """Returns the executor of a world."""

    def description(self) -> dict[str, Any]:
        """Returns the machines, for the description of a run."""


@dataclass(frozen=True)
class ThisMachine:
    """The processors of this machine; `jobs` trials at a time, or each world's default."""

    jobs: int | None = None

    def executor_of(self, world: str) -> Executor:
        """Returns the executor of a world."""
        return executor_of(world, self.jobs)

    def description(self) -> dict[str, Any]:
        """Returns nothing besides the environment."""
        return {}


def default_folder(study: Study) -> Path:
    """Returns `runs/` and the study's name, with suffixes for changed settings and for a quick run."""
    return RUNS / "-".join(filter(None, (study.name, study.variant, "quick" if study.is_quick else "")))


def run_study(
    study: Study,
    *,
    folder: Location | None = None,
    jobs: int | None = None,
    fresh: bool = False,
    reporter: Reporter | None = None,
    force: bool = False,
    budget: Budget | None = None,
    machines: Machines | None = None,
    shard: Shard | None = None,
) -> loading.Measured:
    """Runs every trial of a study without a record, and returns what all trials measured.

    Args:
        study: The checked study (`load_study`).
        folder: Folder or URL of the run; None for `default_folder`.
        jobs: Number of parallel trials; None for each world's default.
        fresh: Removes the study's records first.
        reporter: Shows the progress; None for no progress.
        force: Also runs trials above this machine's capacity; unsupported trials fail.
        budget: Limits of time and trials; None for no limits. Another run with a larger one continues.
        machines: What runs the trials; None for this machine with `jobs`.
        shard: Runs only this share of the trials, while other processes may run others into the same folder.

    Raises:
        Interrupted: on Ctrl-C, after the finished records were written.
        ValueError: for another study's folder, one in use, or a mistake in a trial's network or hosts.
        OSError: if the folder is not writable, or the machine cannot run some trials.
    """
    folder = folder or default_folder(study)
    reporter = reporter or Reporter()
    budget = budget or Budget()
    machines = machines or ThisMachine(jobs)
    planned = cells(study)
    if shard is not None:
        _refuse_shard(study, fresh=fresh)
    with open_store(folder, study.name, _native.version(), fresh=fresh, shard=shard) as store:
        about = environment() | machines.description()
        earlier = store.environment().get("build")
        store.describe(study, about)
        if earlier is not None and earlier != about["build"]:
            reporter.note("the folder has trials of another build of longfat; --fresh repeats them")
        if study.dropped_sweeps:
            reporter.note(f"the new path replaces the sweep of {', '.join(study.dropped_sweeps)}")
        for line in _undecidable(study):
            reporter.note(line)
        if study.cuts:
            reporter.note(f"quick look: {'; '.join(study.cuts)}")
        running = _Running(study, planned, store, machines, reporter, budget, force, fresh, shard)
        counts = first_counts(study, planned, budget)
        records, results = running.measure(counts)
        while study.precision is not None:
            width = widths(study, results)
            more = next_counts(study, planned, counts, width, budget)
            if more == counts:
                for line in _limits(study, planned, counts, width):
                    reporter.note(line)
                break
            raised = sum(new > old for new, old in zip(more, counts, strict=True))
            counts = more
            look = f"precision {study.precision}: {raised} of {len(planned)} cells need more trials"
            records, results = running.measure(counts, look)
        running.report_idle()
        complete = records.height >= sum(counts)
        if shard is not None and complete:
            store.compact()
        elif shard is not None:
            have = f"{store.finished(shard.count)} of {shard.count} shards are complete"
            reporter.note(f"shard {shard}: {have}; the last one writes the report")
        if budget.is_limited and (not complete or sum(counts) >= budget.trials):
            spent = "trials" if sum(counts) >= budget.trials else "time"
            reporter.note(f"the budget of {spent} is spent; the same command with a larger one continues")
        # With a precision, the number of trials depends on the results.
        partial = not complete and study.precision is None
        return loading.Measured(study, records, results, folder, about, interrupted=partial)


def _limits(
    study: Study, planned: Sequence[Cell], counts: Sequence[int], width: Callable[[Cell], float]
) -> Iterator[str]:
    """Yields a line for each number of trials at which cells stopped that need more."""
    left = [study.most_trials_in(cell.world) for cell in exhausted(study, planned, counts, width)]
    for most in sorted(set(left)):
        yield (
            f"precision {study.precision}: {left.count(most)} of {len(planned)} cells end at "
            f"max_repeats = {most}; the same command with --set max_repeats={2 * most} continues"
        )


def _refuse_shard(study: Study, *, fresh: bool) -> None:
    """Raises ValueError for a shard of a run that has none."""
    if study.precision is not None:
        raise ValueError(
            "shard: a precision chooses trials by the results of all shards: set repeats (--repeats) instead"
        )
    if fresh:
        raise ValueError("shard: fresh would remove the records of other shards: choose another folder")


def _undecidable(study: Study) -> Iterator[str]:
    """Yields a line for each world with too few trials to decide claims, before the first trial runs."""
    for world in study.worlds if study.claims else ():
        trials = study.trials_in(world)
        if trials < MIN_TRIALS:
            what = "one trial" if trials == 1 else f"{trials} trials"
            yield f"{world}: {what} per cell cannot decide claims: at least {MIN_TRIALS} required (--repeats)"


@dataclass(frozen=True)
class _Running:
    """A run of a study, with an open store."""

    study: Study
    planned: Cells
    store: Store
    machines: Machines
    reporter: Reporter
    budget: Budget
    force: bool
    fresh: bool
    shard: Shard | None = None
    idle: dict[str, int] = field(default_factory=dict)
    """The trials with a record of each world in which no trial has run."""
    ran: set[str] = field(default_factory=set)

    def report_idle(self) -> None:
        """Reports the worlds in which no trial had to run."""
        for world, present in self.idle.items():
            self.reporter.start(world, 0, present)

    def measure(self, counts: Sequence[int], look: str = "") -> tuple[Table, list[CellResult]]:
        """Runs the missing trials, world by world, up to `counts` per cell; returns records and results.

        `look` describes a further look of a run with a precision. It is reported if trials are missing, so
        that a resumed run reports no look of the runs before it.
        """
        from longfat.analysis.statistics import summarise

        study, store, shard = self.study, self.store, self.shard
        wanted = self._plan(counts)
        check_trials(wanted.missing, self.planned)
        if look and wanted.missing:
            self.reporter.note(look)
        with contextlib.ExitStack() as stack:
            executors = self._executors(wanted.missing, stack)
            for world in study.worlds:
                self._run_world(world, wanted, executors)
        store.compact(own=shard is not None)
        if shard is not None and not self._plan(counts).missing:
            store.finish(shard)
        # A shard reads the records of the others only if it completes the run.
        is_whole = shard is None or store.finished(shard.count) == shard.count
        if sum(counts) >= LARGE_RUN:
            self.reporter.note(f"reading the records of {sum(counts):,} trials")
        share = None if is_whole else shard
        records = loading.read_records(study, self.planned, counts, store.folder, store.version, share)
        return records, summarise(records, self.planned, study.first_look)

    def _plan(self, counts: Sequence[int]) -> Plan:
        store = self.store
        return plan(self.planned, counts, self.study.seed, store.version, store.present(), self.shard)

    def _executors(self, missing: PlannedTrials, stack: contextlib.ExitStack) -> dict[str, Executor]:
        """Returns the executors of worlds with trials to run. Raises UnsupportedTrialsError unless forced."""
        executors = {}
        for world in self.study.worlds:
            if not (todo := missing.of_world(world)):
                continue
            executor = self.machines.executor_of(world)
            stack.callback(executor.close)
            executors[world] = executor
            if reasons := executor.unsupported(todo):
                if not self.force:
                    raise UnsupportedTrialsError(world, reasons)
                for line in reasons:
                    self.reporter.note(f"{world}: {line}")
        return executors

    def _run_world(self, world: str, wanted: Plan, executors: Mapping[str, Executor]) -> None:
        reporter, todo, present = self.reporter, wanted.missing.of_world(world), wanted.present.get(world, 0)
        try:
            if not todo:
                if world not in self.ran:
                    self.idle[world] = present
                return
            self.ran.add(world)
            self.idle.pop(world, None)
            executor = executors[world]
            forecast = executor.forecast(todo)
            if refusals := executor.refusals(todo):
                if not self.force:
                    raise MachineTooSlowError(world, refusals)
                for line in refusals:
                    reporter.note(f"{world}: {line}")
            reporter.start(world, len(todo), present, forecast)
            run_trials(todo, executor, self.store, reporter, self.budget)
        except KeyboardInterrupt:
            reporter.finish()
            folder = self.store.folder
            again = "without fresh" if self.fresh else "again"
            raise Interrupted(
                f"stopped; {folder} has the finished trials: run the same command {again} to resume", folder
            ) from None
        finally:
            reporter.finish()


def check_trials(trials: PlannedTrials, planned: Cells) -> None:
    """Raises ValueError, with the cell, for a mistake in a trial's network or hosts."""
    wanted = np.zeros(len(planned), bool)
    wanted[trials.groups.numbers] = True
    of_points: dict[int, tuple[Points, np.ndarray[tuple[int], np.dtype[np.int64]]]] = {}
    for _, points, places in planned.blocks():
        # The worlds have the same points, so a point stands for its first wanted cell.
        cells_of = of_points.setdefault(id(points), (points, np.full(len(points), -1)))[1]
        for some, numbers in places:
            own = np.arange(numbers.start, numbers.stop, numbers.step)
            first = cells_of[some.start : some.stop]
            first[:] = np.where((first < 0) & wanted[own], own, first)
    refused = []
    for points, cells_of in of_points.values():
        mask = (cells_of >= 0).tolist()
        at = first_refused(points, trials.groups.seed, wanted=None if all(mask) else mask)
        refused += [] if at is None else [cells_of[at]]
    if refused:
        trial = trials.groups[int(np.searchsorted(trials.groups.numbers, min(refused)))][0]
        try:
            _native.check_trial(trial.spec_json)
        except ValueError as error:
            raise ValueError(f"{trial.place}: {error}") from None
