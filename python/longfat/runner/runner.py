"""Runs a study: plans its trials, skips those with a record, and summarises the records."""

from __future__ import annotations

import contextlib
import queue
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path

from longfat import _native
from longfat.presentation.displayed_run import Run
from longfat.results import Cell, CellResult
from longfat.runner import loading
from longfat.runner.batches import Batches
from longfat.runner.environment import environment
from longfat.runner.executor import Executor, executor_of
from longfat.runner.progress import Reporter
from longfat.runner.sampling import Budget, first_counts, next_counts, widths
from longfat.runner.store import Store, open_store
from longfat.runner.trial import Records, Trial, plan
from longfat.study import Study, cells
from longfat.study.claims import MIN_TRIALS

QUEUE_PER_JOB = 4
"""Trials submitted ahead for each job, so that no job waits."""
LARGE_RUN = 200_000
"""Number of trials whose records take seconds to read."""
RUNS = Path("runs")


class Interrupted(KeyboardInterrupt):
    """Ctrl-C stopped the run; its records are kept in `folder`. The text describes how to resume."""

    def __init__(self, message: str, folder: Path) -> None:
        super().__init__(message)
        self.folder = folder

    def partial(self) -> Run:
        """Returns the result of the finished trials."""
        return loading.load_run(self.folder)


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


def default_folder(study: Study, *, quick: bool) -> Path:
    """Returns `runs/` and the study's name, with a suffix for a quick run."""
    return RUNS / (f"{study.name}-quick" if quick else study.name)


def run_study(
    study: Study,
    *,
    folder: Path | None = None,
    jobs: int | None = None,
    fresh: bool = False,
    quick: bool = False,
    reporter: Reporter | None = None,
    force: bool = False,
    budget: Budget | None = None,
) -> Run:
    """Runs every trial of a study without a record, and returns the result of all trials.

    Args:
        study: The checked study (`load_study`).
        folder: Folder of the run; None for `default_folder`.
        jobs: Number of parallel trials; None for each world's default.
        fresh: Removes the study's records first.
        quick: Whether the study was shortened by `--quick`; stored with the run.
        reporter: Shows the progress; None for no progress.
        force: Also runs trials above this machine's capacity; unsupported trials fail.
        budget: Limits of time and trials; None for no limits. Another run with a larger one continues.

    Raises:
        Interrupted: on Ctrl-C, after the finished records were written.
        ValueError: for another study's folder, one in use, or a mistake in a trial's network or hosts.
        OSError: if the folder is not writable, or the machine cannot run some trials.
    """
    folder = folder or default_folder(study, quick=quick)
    reporter = reporter or Reporter()
    budget = budget or Budget()
    version = _native.version()
    planned = cells(study)
    with open_store(folder, study.name, version, fresh=fresh) as store:
        about = environment()
        store.describe(study, about, quick=quick)
        counts = first_counts(study, planned, budget)
        if study.dropped_sweeps:
            reporter.note(f"the new path replaces the sweep of {', '.join(study.dropped_sweeps)}")
        for line in _undecidable(study):
            reporter.note(line)
        if study.cuts:
            reporter.note(f"quick look: {'; '.join(study.cuts)}")
        records, results = _measure(study, planned, counts, store, jobs, reporter, budget, force=force)
        while study.precision is not None:
            more = next_counts(study, planned, counts, widths(study, results), budget)
            if more == counts:
                break
            raised = sum(new > old for new, old in zip(more, counts, strict=True))
            reporter.note(f"precision {study.precision}: {raised} of {len(planned)} cells need more trials")
            counts = more
            records, results = _measure(study, planned, counts, store, jobs, reporter, budget, force=force)
        complete = records.measured.height >= sum(counts)
        if not complete or sum(counts) >= budget.trials:
            reporter.note("the budget is spent; the same command with a larger one continues")
        return loading.evaluate(study, records, results, folder, about, quick=quick, interrupted=not complete)


def _undecidable(study: Study) -> Iterator[str]:
    """Yields a line for each world with too few trials to decide claims, before the first trial runs."""
    for world in study.worlds if study.claims else ():
        trials = study.trials_in(world)
        if trials < MIN_TRIALS:
            what = "one trial" if trials == 1 else f"{trials} trials"
            yield f"{world}: {what} per cell cannot decide claims: at least {MIN_TRIALS} required (--repeats)"


def _measure(
    study: Study,
    planned: Sequence[Cell],
    counts: Sequence[int],
    store: Store,
    jobs: int | None,
    reporter: Reporter,
    budget: Budget,
    *,
    force: bool,
) -> tuple[loading.Records, list[CellResult]]:
    """Runs the missing trials, world by world, up to `counts` per cell; returns records and results."""
    from longfat.analysis.statistics import summarise

    wanted = {trial.key: trial for _, trial in plan(planned, counts, study.seed, store.version)}
    missing = [trial for key, trial in wanted.items() if key not in store.keys]
    _check(missing)
    with contextlib.ExitStack() as stack:
        executors = _executors(study, missing, jobs, stack, reporter, force=force)
        _run_worlds(study, wanted, executors, store, reporter, budget, force=force)
    if sum(counts) >= LARGE_RUN:
        reporter.note(f"reading the records of {sum(counts):,} trials")
    records = loading.read_records(study, planned, counts, store.folder, store.version)
    return records, summarise(records.measured, planned, study.first_look)


def _check(trials: Sequence[Trial]) -> None:
    """Raises ValueError, with the cell, for a mistake in a trial's network or hosts."""
    for trial in {id(trial.cell): trial for trial in trials}.values():
        try:
            _native.check_trial(trial.spec_json)
        except ValueError as error:
            raise ValueError(f"{trial.place}: {error}") from None


def _executors(
    study: Study,
    missing: Sequence[Trial],
    jobs: int | None,
    stack: contextlib.ExitStack,
    reporter: Reporter,
    *,
    force: bool,
) -> dict[str, Executor]:
    """Returns the executors of worlds with trials to run. Raises UnsupportedTrialsError unless forced."""
    executors = {}
    for world in study.worlds:
        if not (todo := [trial for trial in missing if trial.cell.world == world]):
            continue
        executor = executor_of(world, jobs)
        stack.callback(executor.close)
        executors[world] = executor
        if reasons := executor.unsupported(todo):
            if not force:
                raise UnsupportedTrialsError(world, reasons)
            for line in reasons:
                reporter.note(f"{world}: {line}")
    return executors


def _run_worlds(
    study: Study,
    wanted: Mapping[str, Trial],
    executors: Mapping[str, Executor],
    store: Store,
    reporter: Reporter,
    budget: Budget,
    *,
    force: bool,
) -> None:
    for world in study.worlds:
        of_world = [trial for trial in wanted.values() if trial.cell.world == world]
        todo = [trial for trial in of_world if trial.key not in store.keys]
        present = len(of_world) - len(todo)
        try:
            if todo:
                executor = executors[world]
                forecast = executor.forecast(todo)
                if refusals := executor.refusals(todo):
                    if not force:
                        raise MachineTooSlowError(world, refusals)
                    for line in refusals:
                        reporter.note(f"{world}: {line}")
                reporter.start(world, len(todo), present, forecast)
                _run_trials(todo, executor, store, reporter, budget)
            else:
                reporter.start(world, 0, present)
        except KeyboardInterrupt:
            reporter.finish()
            raise Interrupted(
                f"stopped; {store.folder} has the finished trials: run the same command again to resume",
                store.folder,
            ) from None
        finally:
            reporter.finish()


def _run_trials(
    todo: Iterable[Trial], executor: Executor, store: Store, reporter: Reporter, budget: Budget
) -> None:
    waiting = Batches(todo, executor.most_trials)
    running: dict[Future[Records], list[Trial]] = {}
    finished: queue.SimpleQueue[Future[Records]] = queue.SimpleQueue()

    def hand_over() -> None:
        # After the budget's end, running trials complete: to drop slow ones would bias the result.
        most = 0 if budget.is_over else executor.jobs * QUEUE_PER_JOB
        while len(running) < most and (trials := waiting.next()):
            future = executor.submit(trials)
            running[future] = trials
            future.add_done_callback(finished.put)

    try:
        hand_over()
        while running:
            try:
                future = finished.get(timeout=1.0)
            except queue.Empty:
                store.flush_if_due()
                continue
            trials = running.pop(future)
            records = _outcome(trials, future)
            waiting.measured(trials, records.seconds)
            _add(trials, records, store)
            reporter.advance(len(trials), sum(error is not None for error in records.errors))
            hand_over()
            store.flush_if_due()
    except BaseException:
        executor.cancel()
        _keep_finished(running, finished, store)
        raise
    finally:
        try:
            executor.close()
        finally:
            store.flush()


def _outcome(trials: Sequence[Trial], future: Future[Records]) -> Records:
    try:
        return future.result()
    except ValueError as error:
        # Sections, networks and hosts were checked; only contradictions between sections appear this late.
        raise ValueError(f"{trials[0].place}: {error}") from None


def _add(trials: Sequence[Trial], records: Records, store: Store) -> None:
    """Stores the records of the trials that finished, all of them unless the run was cancelled."""
    store.add(trials[: len(records.errors)], records)


def _keep_finished(
    running: dict[Future[Records], list[Trial]], finished: queue.SimpleQueue[Future[Records]], store: Store
) -> None:
    """Stores the trials that finished before the run stopped."""
    while True:
        try:
            future = finished.get_nowait()
        except queue.Empty:
            return
        if future in running and not future.cancelled() and future.exception() is None:
            _add(running.pop(future), future.result(), store)
