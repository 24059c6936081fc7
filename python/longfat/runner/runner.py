"""Runs a study: plans its trials, skips those whose records are there, and sums up what was measured."""

from __future__ import annotations

import math
import queue
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from pathlib import Path

from longfat import _native
from longfat.results import Cell, CellResult, RunResult
from longfat.runner import loading
from longfat.runner.environment import environment
from longfat.runner.executor import Executor, executor_of
from longfat.runner.progress import Reporter, Silent
from longfat.runner.store import Store, open_store
from longfat.runner.trial import Record, Trial, plan
from longfat.study import Study, cells, units

QUEUE_PER_JOB = 4
"""Trials handed over ahead for each job, so that none waits for the next one."""
RUNS = Path("runs")


class Interrupted(KeyboardInterrupt):
    """The run was stopped by Ctrl-C; what was measured is kept. Its text says how to go on."""


class MachineTooSlowError(OSError):
    """A world on wall time would not be as asked on this machine. Its text is one line a reason."""

    def __init__(self, world: str, refusals: Sequence[str]) -> None:
        lines = [f"world {world}: {line}" for line in refusals]
        super().__init__(
            "\n".join([*lines, "longfat check measures the paths; --force runs it all the same"])
        )


def default_folder(study: Study, *, quick: bool) -> Path:
    """`runs/` and the study's name; a quick run has a folder of its own."""
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
) -> RunResult:
    """Runs every trial of a study that has no record yet, and gives the result of all.

    Args:
        study: The study, checked (`load_study`).
        folder: The run's own folder; `default_folder` where None.
        jobs: Trials at once; None leaves it to each world.
        fresh: Removes the study's records first.
        quick: Whether the study was made quick; kept with the run, and said in its report.
        reporter: Is told of the progress.
        force: Runs also what this machine does not hold.

    Raises:
        Interrupted: on Ctrl-C, after what is done was written.
        ValueError: where the folder is another study's, or in use.
        OSError: where the folder cannot be written, or the machine does not hold a world's trials.
    """
    folder = folder or default_folder(study, quick=quick)
    reporter = reporter or Silent()
    version = _native.version()
    planned = cells(study)
    with open_store(folder, study.name, version, fresh=fresh) as store:
        about = environment()
        store.describe(study, about, quick=quick)
        counts = [study.trials_in(cell.world) for cell in planned]
        results = _measure(study, planned, counts, store, jobs, reporter, force=force)
        while (more := _more_repeats(study, results, counts)) != counts:
            raised = sum(new > old for new, old in zip(more, counts, strict=True))
            reporter.note(f"precision {study.precision}: {raised} of {len(planned)} cells need more repeats")
            counts = more
            results = _measure(study, planned, counts, store, jobs, reporter, force=force)
        return loading.evaluate(study, planned, counts, results, folder, about, version, quick=quick)


def _measure(
    study: Study,
    planned: Sequence[Cell],
    counts: Sequence[int],
    store: Store,
    jobs: int | None,
    reporter: Reporter,
    *,
    force: bool,
) -> list[CellResult]:
    """Runs what is missing of so many trials a cell, world after world; gives each cell's result."""
    wanted = {trial.key: trial for _, trial in plan(planned, counts, study.seed, store.version)}
    for world in study.worlds:
        of_world = [trial for trial in wanted.values() if trial.cell.world == world]
        todo = [trial for trial in of_world if trial.key not in store.keys]
        present = len(of_world) - len(todo)
        try:
            if todo:
                executor = executor_of(world, jobs)
                forecast = executor.forecast(todo)
                if refusals := executor.refusals(todo):
                    if not force:
                        executor.close()
                        raise MachineTooSlowError(world, refusals)
                    for line in refusals:
                        reporter.note(f"{world}: {line}")
                reporter.start(world, len(todo), present, forecast)
                _run_trials(todo, executor, store, reporter)
            else:
                reporter.start(world, 0, present)
        except KeyboardInterrupt:
            reporter.finish()
            raise Interrupted(
                f"stopped; {store.folder} keeps what is done: run the same command again to go on"
            ) from None
        finally:
            reporter.finish()
    return loading.summarise(study, planned, counts, store.folder, store.version)


def _run_trials(todo: Iterable[Trial], executor: Executor, store: Store, reporter: Reporter) -> None:
    waiting = iter(todo)
    running: dict[Future[Record], Trial] = {}
    finished: queue.SimpleQueue[Future[Record]] = queue.SimpleQueue()

    def hand_over() -> None:
        while len(running) < executor.jobs * QUEUE_PER_JOB and (trial := next(waiting, None)) is not None:
            future = executor.submit(trial)
            running[future] = trial
            future.add_done_callback(finished.put)

    try:
        hand_over()
        while running:
            try:
                future = finished.get(timeout=1.0)
            except queue.Empty:
                store.flush_if_due()
                continue
            trial = running.pop(future)
            record = _outcome(trial, future)
            store.add(trial, record)
            reporter.advance(failed=record.error is not None)
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


def _outcome(trial: Trial, future: Future[Record]) -> Record:
    try:
        return future.result()
    except ValueError as error:
        # Each section was checked; only what contradicts between sections is found this late.
        point = ", ".join(f"{key} = {value}" for key, value in trial.cell.params.items())
        raise ValueError(f"{trial.cell.protocol}{f' ({point})' if point else ''}: {error}") from None


def _keep_finished(
    running: dict[Future[Record], Trial], finished: queue.SimpleQueue[Future[Record]], store: Store
) -> None:
    """Takes what was finished before the run was given up."""
    while True:
        try:
            future = finished.get_nowait()
        except queue.Empty:
            return
        if future in running and not future.cancelled() and future.exception() is None:
            store.add(running.pop(future), future.result())


def _more_repeats(study: Study, results: Sequence[CellResult], counts: Sequence[int]) -> list[int]:
    """How many trials each cell should have, from the interval that it has now."""
    if study.precision is None:
        return list(counts)
    from longfat.analysis import grid

    target = units.proportion(study.precision)
    metric = grid.shown(study, results)[0]
    return [
        _repeats_for(result, metric, count, target, study.most_trials_in(result.cell.world))
        for result, count in zip(results, counts, strict=True)
    ]


def _repeats_for(result: CellResult, metric: str, count: int, target: float, most: int) -> int:
    """An interval narrows with the root of the trials; doubled at most, since it is an estimate."""
    interval = result.metrics.get(metric)
    if interval is None or count >= most:
        return count
    width = interval.relative_half_width
    if interval.mean == 0 or width <= target:
        return count
    needed = math.ceil(count * (width / target) ** 2) if math.isfinite(width) else 2 * count
    return min(most, max(count + 1, min(needed, 2 * count)))
