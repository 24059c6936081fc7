"""Results without trials."""

from __future__ import annotations

import random

from longfat.analysis import grid
from longfat.results.run import CellResult, Interval
from longfat.study import Study, cells


def results_of(study: Study, draw: random.Random, *, failures: bool = False) -> list[CellResult]:
    """Returns a result with random values of the shown metrics for every cell of a study."""
    metrics = study.show or grid.SHOWN_BY_WORKLOAD.get(str(study.workload["kind"]), ("goodput_bps",))
    found = []
    for cell in cells(study):
        means = {name: draw.uniform(1e5, 1e8) if name.endswith("bps") else draw.random() for name in metrics}
        intervals = {name: Interval(mean, 0.9 * mean, 1.1 * mean) for name, mean in means.items()}
        samples = {name: [interval.low, interval.mean, interval.high] for name, interval in intervals.items()}
        failed = {"timed out": 2} if failures and draw.random() < 0.3 else {}
        found.append(CellResult(cell, 3, failed, intervals, samples, (0, 1, 2)))
    if failures and not any(result.failures for result in found):
        found[0].failures["timed out"] = 1
    return found
