"""`run`: all trials of a study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex

from longfat.study import Overrides, Study, load_study
from longfat.study.plain import plain

if TYPE_CHECKING:
    from longfat.presentation.run.displayed import Run


def run(
    study: str | Path | Mapping[str, Any] | Study,
    *,
    worlds: Sequence[str] = (),
    repeats: SupportsIndex | None = None,
    settings: Mapping[str, Any] | None = None,
    seed: SupportsIndex | None = None,
    jobs: int | None = None,
    out: str | Path | None = None,
    quick: bool = False,
    fresh: bool = False,
    progress: bool | None = None,
    force: bool = False,
    report: bool = True,
    precision: str | None = None,
    budget: str | None = None,
    max_trials: SupportsIndex | None = None,
    executor: str | None = None,
    scheduler: str | None = None,
    scheduler_file: str | Path | None = None,
    shard: str | None = None,
) -> Run:
    """Runs the trials of a study that have no record yet, and returns the result of all.

    Args:
        study: A study file's path, a built-in study's name ("arq/loss"), its tables as a dict, or a `Study`.
            A dict may contain objects (`Path`, `Tcp`), dicts, NumPy values and controller classes. An entry
            of its protocols may be a name or a class ("cubic"), as in `simulate`.
        worlds: Worlds to run in, instead of the study's.
        repeats: Trials of each cell.
        settings: Keys to change, as `--set` does: `{"path.loss": "2%"}`; a list becomes a sweep.
        seed: Random seed.
        jobs: Number of parallel trials; by default one per core.
        out: Folder or URL ("s3://bucket/run") of the run; by default `runs/` and the study's name.
        quick: Runs fewer cells and shorter trials, for an answer within half a minute; `study.cuts` of the
            result lists the differences.
        fresh: Removes this study's records first.
        progress: Whether to show the progress; by default in a notebook or at a prompt.
        force: Also runs trials above this machine's capacity, in worlds in wall time.
        report: Whether to write `report.html` into the folder.
        precision: Adds trials until the interval of the main metric is within this part of its mean ("5%"),
            or until every claim is decided ("claims").
        budget: Time after which no more trials start ("10min").
        max_trials: Number of trials of the whole run.
        executor: "local", or "dask" for a cluster (`longfat[cluster]`).
        scheduler: Address of a Dask scheduler ("tcp://HOST:8786"); by default a cluster on this machine.
        scheduler_file: The file that the scheduler wrote, instead of its address.
        shard: One share of the trials ("3/100"), for job arrays. Any number of shards may run into one folder
            or URL at once. The result has the trials of this shard. The last shard has all trials and
            writes the report.

    Returns:
        Cells with intervals and claims with verdicts. `to_polars()` has one row for each trial,
        `flows_to_polars()` one for each flow, both with plain names and SI numbers.

    Raises:
        ValueError: with file, key, value and what is allowed; also for the folder of another study.
        OSError: if the folder is not writable.
        KeyboardInterrupt: on Ctrl-C, after the finished records were written; another run resumes. At a
            prompt or in a notebook, the result of the finished trials is returned instead, with `interrupted`
            true.
    """
    from longfat.analysis.expectation import theory_problems
    from longfat.api.running import Running
    from longfat.api.runs import InterruptedRun
    from longfat.presentation.run.report.page import write_report
    from longfat.runner.progress import Reporter
    from longfat.runner.sampling import Budget
    from longfat.system.interactive import is_interactive
    from longfat.system.progress import display

    overrides = Overrides(
        tuple(plain(settings or {}).items()),
        tuple(plain([worlds] if isinstance(worlds, str) else worlds)),
        plain(repeats),
        plain(seed),
        precision,
        quick,
        label="settings",
    )
    shown = is_interactive() if progress is None else progress
    reporter = Reporter(display() if shown else None)
    running = Running(
        out,
        jobs,
        fresh,
        quick,
        force,
        Budget.of(budget, plain(max_trials), "budget"),
        executor,
        scheduler,
        scheduler_file,
        shard,
        overrides.variant,
    )
    checked = load_study(study, overrides, also=theory_problems)
    try:
        (result,) = running.run([checked], reporter)
    except InterruptedRun as stop:
        if not is_interactive():
            raise
        result = stop.partial()
    if report and not running.awaits_others(result):
        write_report(result)
    return result
