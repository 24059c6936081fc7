"""Compares the records of two runs of a study, bit by bit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from longfat.results.run import RunResult

PLACE = ("world", "protocol")


@dataclass(frozen=True)
class Comparison:
    """How many records were compared, and the first difference as text; None if all are identical."""

    trials: int
    values: int
    difference: str | None

    def __str__(self) -> str:
        if self.difference is None:
            return f"identical: {self.trials} trials, {self.values} values"
        return f"different: {self.difference}"


def compare(original: RunResult, repeated: RunResult, world: str) -> Comparison:
    """Compares the records of one world, trials and flows."""
    builds = {run.environment.get("build") for run in (original, repeated)}
    first, second = (_of_world(run, world) for run in (original, repeated))
    found = _difference(first, second)
    values = first.height * len(first.columns)
    for one, other in _flows(original, repeated, world):
        values += one.height * len(one.columns)
        found = found or _difference(one, other)
    if found and len(builds) > 1:
        found += "; the runs are of different builds of longfat"
    return Comparison(first.height, values, found)


def _of_world(run: RunResult, world: str) -> pl.DataFrame:
    records = run.records
    assert records is not None, "a run with a folder"
    # The cells are numbered over all worlds of the study.
    return records.filter(pl.col("world") == world).drop("cell")


def _flows(original: RunResult, repeated: RunResult, world: str) -> list[tuple[pl.DataFrame, pl.DataFrame]]:
    if original.flows is None or repeated.flows is None:
        return []
    frames = (
        run.read().filter(pl.col("world") == world).drop("cell") for run in (original.flows, repeated.flows)
    )
    first, second = frames
    return [(first, second)]


def _difference(first: pl.DataFrame, second: pl.DataFrame) -> str | None:
    if first.height != second.height:
        return f"{first.height} and {second.height} records"
    if sorted(first.columns) != sorted(second.columns):
        only = sorted(set(first.columns) ^ set(second.columns))
        return f"only one run has {only[0]}"
    # Missing values are equal, and so is NaN.
    unequal = first.select(first[name].ne_missing(second[name]).alias(name) for name in first.columns)
    rows = unequal.max_horizontal() if unequal.height else pl.Series([], dtype=pl.Boolean)
    if not rows.any():
        return None
    row = int(rows.arg_max() or 0)
    name = next(name for name in first.columns if unequal[name][row])
    place = first.row(row, named=True)
    where = ", ".join(str(place[key]) for key in PLACE) + f", trial {place['trial']}"
    others = f" ({rows.sum()} of {first.height} records differ)" if rows.sum() > 1 else ""
    return f"{where}: {name} is {second[name][row]} instead of {first[name][row]}{others}"
