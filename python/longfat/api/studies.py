"""`run`: all trials of a study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex

from longfat.study.plain import plain

if TYPE_CHECKING:
    from longfat.presentation.run.displayed import Run
    from longfat.study import Study


def run(
    study: str | Path | Mapping[str, Any] | Study,
    *,
    worlds: Sequence[str] | None = None,
    repeats: SupportsIndex | None = None,
    precision: str | None = None,
    budget: str | None = None,
    max_trials: SupportsIndex | None = None,
    settings: Mapping[str, Any] | None = None,
    seed: SupportsIndex | None = None,
    jobs: int | None = None,
    executor: str | None = None,
    scheduler: str | None = None,
    scheduler_file: str | Path | None = None,
    out: str | Path | None = None,
    shard: str | None = None,
    quick: bool = False,
    fresh: bool = False,
    force: bool = False,
    report: bool = True,
    progress: bool | None = None,
) -> Run:
    """Runs the trials of a study that have no record yet, and returns the result of all.

    Any number of shards may run into one folder or URL at once. The result has the trials of its shard. The
    last shard has all trials and writes the report.

    Args:
        study: A study file's path, a built-in study's name ("arq/loss"), its tables as a dict, or a `Study`.
            A dict may contain objects (`Path`, `Tcp`), dicts, NumPy values and controller classes. An entry
            of its protocols may be a name or a class ("cubic"), as in `simulate`.
        worlds: Worlds (sim, netns, relay); by default the study's.
        repeats: Trials of each cell.
        precision: Adds trials until the main metric's interval is within this part of its mean ("5%"), or
            until every claim is decided ("claims").
        budget: Time after which no more trials start, e.g. "10min".
        max_trials: Number of trials of the whole run.
        settings: Keys to change, as `--set` does: `{"path.loss": "2%"}`; a list becomes a sweep.
        seed: Random seed; by default the study's.
        jobs: Parallel trials; by default one per core.
        executor: Where trials run: local, or dask (a cluster, `longfat[cluster]`); by default local.
        scheduler: Dask scheduler, e.g. "tcp://HOST:8786"; by default a local cluster.
        scheduler_file: Dask scheduler by the file that it wrote.
        out: Folder of the run, or URL (s3://BUCKET/RUN); by default runs/STUDY.
        shard: One share of the trials, for job arrays, e.g. "3/100".
        quick: Fewer cells and shorter trials, for an answer within half a minute.
        fresh: New run; removes the study's records.
        force: Trials beyond this machine's capacity too, without unsupported ones (wall time).
        report: Whether to write `report.html` into the folder.
        progress: Whether to show the progress; by default in a notebook or at a prompt.

    Returns:
        Cells with intervals and claims with verdicts. `to_polars()` has one row for each trial,
        `flows_to_polars()` one for each flow, both with plain names and SI numbers. `study.cuts` lists what
        `quick` left out.

    Raises:
        ValueError: with file, key, value and what is allowed; also for the folder of another study.
        OSError: if the folder is not writable.
        KeyboardInterrupt: on Ctrl-C, after the finished records were written; another run resumes. At a
            prompt or in a notebook, the result of the finished trials is returned instead, with `interrupted`
            true.
    """
    from longfat.api.running import RunOptions
    from longfat.api.runs import InterruptedRun
    from longfat.presentation.run.report.page import write_report
    from longfat.runner.progress import Reporter
    from longfat.system.interactive import is_interactive
    from longfat.system.progress import display

    options = RunOptions(
        worlds=plain([worlds] if isinstance(worlds, str) else worlds or ()),
        repeats=plain(repeats),
        precision=precision,
        budget=budget,
        max_trials=plain(max_trials),
        settings=list(plain(settings or {}).items()),
        seed=plain(seed),
        jobs=jobs,
        executor=executor,
        scheduler=scheduler,
        scheduler_file=scheduler_file,
        out=out,
        shard=shard,
        quick=quick,
        fresh=fresh,
        force=force,
    )
    shown = is_interactive() if progress is None else progress
    loaded = options.load(study, "settings")
    try:
        (result,) = options.run([loaded], Reporter(display() if shown else None))
    except InterruptedRun as stop:
        if not is_interactive():
            raise
        result = stop.partial()
    if report and not options.awaits_others(result):
        write_report(result)
    return result
