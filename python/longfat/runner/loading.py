"""Results from records: of a run that has just finished, or of an earlier run's folder."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from longfat.frames import stored
from longfat.presentation.displayed_run import Run
from longfat.remote_path import Location, RemotePath, location
from longfat.results import Cell, CellResult
from longfat.runner import parts, store
from longfat.runner.trial import trial_keys
from longfat.study import Study, cells, load_study


@dataclass(frozen=True)
class Records:
    """The records of a study's trials in a folder.

    `index` has one row for each planned trial: its cell, the values of the swept keys, and the key of its
    record. `measured` has the records, as in `RunResult.records`.
    """

    index: pl.DataFrame
    measured: pl.DataFrame


def read_records(
    study: Study, planned: Sequence[Cell], counts: Sequence[int], folder: Location, version: str
) -> Records:
    """Returns the records of the first `counts` trials of each cell; reads each part once."""
    found = parts.read(folder)
    # A study with a precision may plan many more trials than it ran.
    most = 1 + max(found["trial"].unique().to_list(), default=-1)
    index = _index(study, planned, [min(count, most) for count in counts], version)
    found = found.drop("version", "world", "protocol", "params", "trial", "seed")
    # Sorted by name: their order in the parts depends on which trial finished first.
    metrics = sorted(set(found.columns) - {"key", "error"})
    measured = index.join(found, on="key", how="inner", maintain_order="left").select(
        *(name for name in index.columns if name != "key"), "error", *metrics
    )
    return Records(index, measured)


@dataclass(frozen=True)
class Flows:
    """The flows of a run's trials, read from its folder on request: there may be millions."""

    folder: Location
    index: pl.DataFrame

    def read(self, columns: Sequence[str] | None = None, cells: Sequence[int] | None = None) -> pl.DataFrame:
        """Returns one row for each flow: columns that identify its trial, then those of the flow.

        `columns` selects some of the latter, `cells` some cells by their numbers.
        """
        index = self.index if cells is None else self.index.filter(pl.col("cell").is_in(list(cells)))
        found = parts.read_flows(self.folder, index["key"] if cells is not None else None, columns)
        taken = {name: f"flow_{name}" for name in found.columns if name in index.columns and name != "key"}
        return index.join(found.rename(taken), on="key", how="inner", maintain_order="left_right").drop(
            "key", "seed"
        )


def _index(study: Study, planned: Sequence[Cell], counts: Sequence[int], version: str) -> pl.DataFrame:
    """Returns one row for each trial, cell by cell: its cell, swept values and the key of its record."""
    cell = np.repeat(np.arange(len(planned)), counts)
    swept = list(dict.fromkeys(key for one in planned for key in one.params))
    by_cell: dict[str, list[str | None]] = {
        "world": [one.world for one in planned],
        "protocol": [one.protocol for one in planned],
        **{key: [stored(one.params.get(key)) for one in planned] for key in swept},
    }
    keys = trial_keys(planned, counts, study.seed, version)
    return pl.DataFrame(
        [
            pl.Series("cell", cell, dtype=pl.Int64),
            *(pl.Series(name, values, dtype=pl.String).gather(cell) for name, values in by_cell.items()),
            pl.Series("trial", [n for count in counts for n in range(count)], dtype=pl.Int64),
            pl.Series("seed", np.full(len(cell), study.seed), dtype=pl.Int64),
            pl.Series("key", [key for of_cell in keys for key in of_cell], dtype=pl.String),
        ]
    )


def evaluate(
    study: Study,
    records: Records,
    results: list[CellResult],
    folder: Location,
    environment: dict[str, Any],
    *,
    quick: bool,
    interrupted: bool = False,
) -> Run:
    """Returns the whole result, with the verdicts on the study's claims."""
    from longfat.analysis.claims import judge
    from longfat.presentation.verdicts import verdict

    return Run(
        study=study,
        folder=folder,
        cells=results,
        claims=[verdict(one) for one in judge(study, results)],
        environment=environment,
        quick=quick,
        records=records.measured,
        flows=Flows(folder, records.index) if parts.listed(folder, parts.FLOWS) else None,
        interrupted=interrupted,
    )


def load_run(folder: str | Path | RemotePath) -> Run:
    """Returns the result of a complete or interrupted run from its folder or URL ("s3://bucket/run").

    Raises ValueError for a folder without a run.

    >>> load_run("no-such-folder")
    Traceback (most recent call last):
    ...
    longfat.runner.parts.FolderError: no-such-folder: is not the folder of a run: it has no run.json
    """
    from longfat.analysis.statistics import summarise

    folder = location(folder)
    about = store.describe(folder)
    study = _study(folder / store.STUDY_FILE, str(about.get("study")))
    study._cuts = list(about.get("cuts", []))
    planned = cells(study)
    # Keys contain the version that measured, which may differ from this one.
    version = str(about.get("longfat"))
    counts = [study.most_trials_in(cell.world) for cell in planned]
    records = read_records(study, planned, counts, folder, version)
    results = summarise(records.measured, planned, study.first_look)
    environment = about.get("environment", {})
    quick = bool(about.get("quick"))
    # With a precision, the number of trials depends on the results.
    complete = study.precision is not None or records.measured.height >= sum(counts)
    return evaluate(study, records, results, folder, environment, quick=quick, interrupted=not complete)


def _study(file: Location, name: str) -> Study:
    """Returns the study of a stored run."""
    if isinstance(file, Path):
        return load_study(file, name=name, checked=True)
    with tempfile.TemporaryDirectory(prefix="longfat-") as copies:
        copy = Path(copies) / file.name
        copy.write_bytes(file.read_bytes())
        return load_study(copy, name=name, checked=True)
