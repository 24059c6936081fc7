"""Which cells miss the precision of a study, and by how much."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from longfat.analysis import grid
from longfat.study import units
from longfat.study.specification import DECIDED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longfat.results.run import CellResult
    from longfat.study import Study


def imprecise(study: Study, results: Sequence[CellResult]) -> list[tuple[CellResult, float]]:
    """Returns the cells whose interval of the main metric is too wide, with its width over the wanted one.

    Empty for a study without a precision in percent. Infinite for a cell with a single trial.
    """
    if study.precision in (None, DECIDED):
        return []
    target = units.proportion(study.precision)
    metric = grid.shown(study, results)[0]
    ratios = ((result, relative_width(result, metric) / target) for result in results)
    return [(result, ratio) for result, ratio in ratios if ratio > 1]


def relative_width(result: CellResult, metric: str) -> float:
    """The half-width of an interval relative to its mean; infinite with one trial, 0 without a value."""
    interval = result.metrics.get(metric)
    if interval is None or interval.mean == 0:
        return 0.0
    width = interval.relative_half_width
    return width if math.isfinite(width) else math.inf
