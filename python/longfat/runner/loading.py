"""From records to results: of a run that has just ended, or of a folder that one has left."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from longfat.results import Cell, CellResult, RunResult
from longfat.runner import store
from longfat.runner.trial import plan
from longfat.study import Study, cells, load_study


def records_of(
    study: Study, planned: Sequence[Cell], counts: Sequence[int], folder: Path, version: str
) -> pl.DataFrame:
    """The records that belong to a study's cells, as `RunResult.records` describes them."""
    index = _index(study, planned, counts, version)
    found = store.read(folder).drop("version", "world", "protocol", "params", "trial", "seed")
    metrics = [name for name in found.columns if name not in ("key", "error")]
    return (
        index.join(found, on="key", how="inner")
        .sort("cell", "trial")
        .select(*(name for name in index.columns if name != "key"), "error", *metrics)
    )


@dataclass(frozen=True)
class Flows:
    """The flows of a run's trials, read from its folder when they are asked for: there may be millions."""

    folder: Path
    index: pl.DataFrame

    def read(self, columns: Sequence[str] | None = None, cells: Sequence[int] | None = None) -> pl.DataFrame:
        """One row a flow: the columns that say which trial it is, then what the trial says of it.

        `columns` names some of the latter; `cells` some of the cells, by their numbers.
        """
        index = self.index if cells is None else self.index.filter(pl.col("cell").is_in(list(cells)))
        found = store.read_flows(self.folder, index["key"] if cells is not None else None, columns)
        taken = {name: f"flow_{name}" for name in found.columns if name in index.columns and name != "key"}
        return (
            index.join(found.rename(taken), on="key", how="inner")
            .sort("cell", "trial", maintain_order=True)
            .drop("key", "seed")
        )


def flows_of(
    study: Study, planned: Sequence[Cell], counts: Sequence[int], folder: Path, version: str
) -> Flows | None:
    """The flows of a study's trials; None where no trial told of any."""
    if not store.parts(folder, "flows"):
        return None
    return Flows(folder, _index(study, planned, counts, version))


def _index(study: Study, planned: Sequence[Cell], counts: Sequence[int], version: str) -> pl.DataFrame:
    """One row a trial: which cell it is of, what was swept there, and the key of its record."""
    trials = list(plan(planned, counts, study.seed, version))
    swept = list(dict.fromkeys(key for cell in planned for key in cell.params))
    columns: dict[str, tuple[type[pl.DataType], list[Any]]] = {
        "cell": (pl.Int64, [i for i, _ in trials]),
        "world": (pl.String, [trial.cell.world for _, trial in trials]),
        "protocol": (pl.String, [trial.cell.protocol for _, trial in trials]),
        **{key: (pl.String, [_shown(planned[i].params.get(key)) for i, _ in trials]) for key in swept},
        "trial": (pl.Int64, [trial.number for _, trial in trials]),
        "seed": (pl.Int64, [trial.seed for _, trial in trials]),
        "key": (pl.String, [trial.key for _, trial in trials]),
    }
    return pl.DataFrame([pl.Series(name, values, dtype=of) for name, (of, values) in columns.items()])


def _shown(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def summarise(
    study: Study, planned: Sequence[Cell], counts: Sequence[int], folder: Path, version: str
) -> list[CellResult]:
    """Each cell's result, from the first so many trials of it."""
    from longfat import analysis

    return analysis.summarise(study, records_of(study, planned, counts, folder, version), planned)


def evaluate(
    study: Study,
    planned: Sequence[Cell],
    counts: Sequence[int],
    results: list[CellResult],
    folder: Path,
    environment: dict[str, Any],
    version: str,
    *,
    quick: bool,
) -> RunResult:
    """The whole result, with the verdicts on the study's claims."""
    from longfat import analysis

    return RunResult(
        study=study,
        folder=folder,
        cells=results,
        claims=analysis.evaluate_claims(study, results),
        environment=environment,
        quick=quick,
        records=records_of(study, planned, counts, folder, version),
        flows=flows_of(study, planned, counts, folder, version),
    )


def load_run(folder: str | Path) -> RunResult:
    """The result of a run from its folder, complete or not, without running anything.

    Raises ValueError where the folder is no run's.

    >>> load_run("no-such-folder")
    Traceback (most recent call last):
    ...
    longfat.runner.store.FolderError: no-such-folder: is no run's folder: there is no run.json in it
    """
    folder = Path(folder)
    about = store.describe(folder)
    study = load_study(folder / store.STUDY_FILE, name=str(about.get("study")), checked=True)
    planned = cells(study)
    # The version that measured, not the one that reads: keys hold it.
    version = str(about.get("longfat"))
    counts = [study.most_trials_in(cell.world) for cell in planned]
    results = summarise(study, planned, counts, folder, version)
    return evaluate(
        study,
        planned,
        counts,
        results,
        folder,
        about.get("environment", {}),
        version,
        quick=bool(about.get("quick")),
    )
