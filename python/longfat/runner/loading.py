"""Results from records: of a run that has just finished, or of an earlier run's folder."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from longfat.results.frames import stored
from longfat.results.run import Cell, CellResult
from longfat.results.trial import CellKeys
from longfat.store import parts, store
from longfat.store.copies import Copies
from longfat.store.shard import Shard
from longfat.store.table import Table
from longfat.study import Study, cells, load_study
from longfat.system.remote_path import Location, RemotePath, location


def read_records(
    study: Study,
    planned: Sequence[Cell],
    counts: Sequence[int],
    folder: Location,
    version: str,
    shard: Shard | None = None,
) -> Table:
    """Returns the records of the first `counts` trials of each cell, or those that a shard reads."""
    keys = CellKeys(study.seed, version).texts_of_all(planned)
    derived = {one.column: one for one in study.derived_metrics.values()}
    return Table(Copies(folder, shard).frames, keys, counts, derived)


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


@dataclass(frozen=True)
class Measured:
    """A run's records and the intervals of its cells, without verdicts.

    `interrupted` is true if trials are missing, and running the study again resumes it.
    """

    study: Study
    records: Table
    cells: list[CellResult]
    folder: Location
    environment: dict[str, Any]
    interrupted: bool = False

    def read_records(self) -> pl.DataFrame:
        """Returns one row for each trial, with what identifies it in front."""
        return _with_places(self.records.measured(), self.study, cells(self.study))

    @property
    def flows(self) -> Flows | None:
        """The flows of the trials; None without records of them."""
        if not parts.listed(self.folder, parts.FLOWS):
            return None
        return Flows(self.study, cells(self.study), self.folder, self.records)


def load(folder: str | Path | RemotePath) -> Measured:
    """Returns what a complete or interrupted run measured, from its folder or URL ("s3://bucket/run").

    Raises ValueError for a folder without a run.

    >>> load("no-such-folder")
    Traceback (most recent call last):
    ...
    longfat.store.parts.FolderError: no-such-folder: is not the folder of a run: it has no run.json
    """
    from longfat.analysis.statistics import summarise

    folder = location(folder)
    about = store.describe(folder)
    study = _study(folder / store.STUDY_FILE, str(about.get("study")))
    study = study.with_provenance(cuts=tuple(about.get("cuts", [])), is_quick=bool(about.get("quick")))
    planned = cells(study)
    # Keys contain the version that measured, which may differ from this one.
    version = str(about.get("longfat"))
    counts = [study.most_trials_in(cell.world) for cell in planned]
    records = read_records(study, planned, counts, folder, version)
    results = summarise(records, planned, study.first_look)
    environment = about.get("environment", {})
    # With a precision, the number of trials depends on the results.
    complete = study.precision is not None or records.height >= sum(counts)
    return Measured(study, records, results, folder, environment, interrupted=not complete)


def _study(file: Location, name: str) -> Study:
    """Returns the study of a stored run."""
    if isinstance(file, Path):
        return load_study(file, name=name, checked=True)
    with tempfile.TemporaryDirectory(prefix="longfat-") as copies:
        copy = Path(copies) / file.name
        copy.write_bytes(file.read_bytes())
        return load_study(copy, name=name, checked=True)
