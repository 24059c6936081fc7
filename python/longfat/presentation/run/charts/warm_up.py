"""The flows of a cell whose values are of the measured time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from longfat.study import units

if TYPE_CHECKING:
    from longfat.results.run import CellResult


def after_warm_up(flows: pl.DataFrame, cell: CellResult) -> pl.DataFrame:
    """Returns the flows of arrivals after the warm-up; others start before it and are measured after it."""
    workload = cell.cell.spec["workload"]
    if workload.get("kind") != "arrivals":
        return flows
    return flows.filter(pl.col("opened_s") >= (units.number(workload.get("warm_up")) or 0.0))
