"""Results from records: of a run that has just finished, or of an earlier run's folder."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from longfat.frames import stored
from longfat.presentation.displayed_run import Run
from longfat.remote_path import Location, RemotePath, location
from longfat.results import Cell, CellResult
from longfat.runner import parts, store
from longfat.runner.copies import Copies
from longfat.runner.shard import Shard
from longfat.runner.table import Table
from longfat.runner.trial import cell_key
from longfat.study import Study, cells, load_study


def read_records(
    study: Study,
    planned: Sequence[Cell],
    counts: Sequence[int],
    folder: Location,
    version: str,
    shard: Shard | None = None,
) -> Table:
    """Returns the records of the first `counts` trials of each cell, or those that a shard reads."""
    keys = [cell_key(cell, study.seed, version) for cell in planned]
    return Table(Copies(folder, shard).frames, keys, counts)


def _with_places(found: pl.DataFrame, study: Study, planned: Sequence[Cell]) -> pl.DataFrame:
    """Returns rows with what identifies their trial in front: cell, world, protocol, swept keys, trial."""
    swept = list(dict.fromkeys(key for one in planned for key in one.params))
    by_cell: dict[str, list[str | None]] = {
        "world": [one.world for one in planned],
        "protocol": [one.protocol for one in planned],
        **{key: [stored(one.params.get(key)) for one in planned] for key in swept},
    }
    places = (
        pl.Series(name, values, dtype=pl.String).gather(found["cell"]) for name, values in by_cell.items()
    )
    return found.select(
        "cell", *places, "trial", pl.lit(study.seed, pl.Int64).alias("seed"), pl.exclude("cell", "trial")
    )


@dataclass(frozen=True)
class Flows:
    """The flows of a run's trials, read from its folder on request: there may be millions."""

    study: Study
    planned: Sequence[Cell]
    folder: Location
    table: Table

    def read(self, columns: Sequence[str] | None = None, cells: Sequence[int] | None = None) -> pl.DataFrame:
        """Returns one row for each flow: columns that identify its trial, then those of the flow.

        `columns` selects some of the latter, `cells` some cells by their numbers.
        """
        index = self.table.index(cells)
        wanted = index.select("cell_key").unique()

        def is_wanted(name: str) -> bool:
            return columns is None or name in parts.IDENTITY or name in columns

        frames = parts.flows_once(parts.frames(self.folder, parts.FLOWS, is_wanted))
        found = [frame.join(wanted, on="cell_key", how="semi", maintain_order="left") for frame in frames]
        empty = pl.DataFrame(schema={name: parts.COLUMNS[name] for name in parts.IDENTITY})
        flows = pl.concat([empty, *found], how="diagonal_relaxed")
        placed = _with_places(index, self.study, self.planned).drop("seed")
        taken = {
            name: f"flow_{name}"
            for name in flows.columns
            if name in placed.columns and name not in parts.IDENTITY
        }
        return placed.join(
            flows.rename(taken), on=parts.IDENTITY, how="inner", maintain_order="left_right"
        ).drop("cell_key")


def evaluate(
    study: Study,
    records: Table,
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

    planned = cells(study)
    return Run(
        study=study,
        folder=folder,
        cells=results,
        claims=[verdict(one) for one in judge(study, results)],
        environment=environment,
        quick=quick,
        read_records=lambda: _with_places(records.measured(), study, planned),
        flows=Flows(study, planned, folder, records) if parts.listed(folder, parts.FLOWS) else None,
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
    results = summarise(records, planned, study.first_look)
    environment = about.get("environment", {})
    quick = bool(about.get("quick"))
    # With a precision, the number of trials depends on the results.
    complete = study.precision is not None or records.height >= sum(counts)
    return evaluate(study, records, results, folder, environment, quick=quick, interrupted=not complete)


def _study(file: Location, name: str) -> Study:
    """Returns the study of a stored run."""
    if isinstance(file, Path):
        return load_study(file, name=name, checked=True)
    with tempfile.TemporaryDirectory(prefix="longfat-") as copies:
        copy = Path(copies) / file.name
        copy.write_bytes(file.read_bytes())
        return load_study(copy, name=name, checked=True)
