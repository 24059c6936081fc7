"""Results of runs: verdicts on the claims, and the display."""

from __future__ import annotations

from pathlib import Path

from longfat.presentation.run.displayed import Run
from longfat.runner import Interrupted, Measured, load
from longfat.store.store import quick_folder
from longfat.system.remote_path import Location, RemotePath, location


class InterruptedRun(Interrupted):
    """Ctrl-C stopped the run of a study."""

    def partial(self) -> Run:
        """Returns the result of the finished trials."""
        return load_run(self.folder)


def run_of(measured: Measured) -> Run:
    """Returns the result of a run, with the verdicts on the study's claims."""
    from longfat.analysis.claims import judge
    from longfat.presentation.run.verdicts import verdict

    return Run(
        study=measured.study,
        folder=measured.folder,
        cells=measured.cells,
        claims=[verdict(one, measured.study.labels) for one in judge(measured.study, measured.cells)],
        environment=measured.environment,
        quick=measured.study.is_quick,
        read_records=measured.read_records,
        flows=measured.flows,
        interrupted=measured.interrupted,
    )


def find_run(name: str | Path) -> Location:
    """Returns the folder or URL with this name, or else the run of a study in `runs`, also if only quick."""
    named = location(name)
    if not isinstance(named, Path) or named.exists():
        return named
    within = Path("runs") / named
    return within if within.is_dir() or quick_folder(within).is_dir() else named


def load_run(folder: str | Path | RemotePath) -> Run:
    """Returns the result of a complete or interrupted run from its folder or URL ("s3://bucket/run").

    Raises ValueError for a folder without a run.

    >>> load_run("no-such-folder")
    Traceback (most recent call last):
    ...
    longfat.store.parts.FolderError: no-such-folder: is not the folder of a run: it has no run.json
    """
    return run_of(load(folder))
