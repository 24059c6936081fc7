"""How traced trials compare with the means of their run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longfat.analysis import grid
from longfat.presentation import formatting, names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from longfat.results.run import Cell, CellResult
    from longfat.study import Study


def line(
    study: Study,
    results: Sequence[CellResult],
    cells: Sequence[Cell],
    trial: int,
    traced: Sequence[Mapping[str, float | None]],
) -> str:
    """Returns the main metric of traced trials, the means of their run, and the trials nearest to the means.

    `results` are those of the run, and `cells` those of the traced trials, whose metrics are `traced`. Empty
    if the run has no other trial of these cells, and if all trials are equal.
    """
    found = []
    for cell, metrics in zip(cells, traced, strict=True):
        result = next((one for one in results if _same(one.cell, cell)), None)
        if result is not None and result.n > 1 and not result.deterministic:
            found.append(_comparison(result, grid.shown(study, results)[0], trial, metrics))
    return "; ".join(filter(None, found))


def _same(one: Cell, other: Cell) -> bool:
    """Whether two cells have the same trials in the simulation."""
    return one.world == "sim" and (one.protocol, one.params, one.spec) == (
        other.protocol,
        other.params,
        other.spec,
    )


def _comparison(result: CellResult, metric: str, trial: int, traced: Mapping[str, float | None]) -> str:
    own, mean = traced.get(metric), result.metrics.get(metric)
    if own is None or mean is None:
        return ""
    values = dict(zip(result.trials, result.samples[metric], strict=True))
    nearest = min(values, key=lambda number: abs(values[number] - mean.mean))
    unit = names.unit_of(metric)
    where = "this trial is the nearest" if nearest == trial else f"nearest: --trial {nearest}"
    return (
        f"{result.cell.display_name}, {names.metric_phrase(metric)}: {formatting.quantity(own, unit)} "
        f"in trial {trial}, mean of the run {formatting.quantity(mean.mean, unit)} (n = {result.n}; {where})"
    )
