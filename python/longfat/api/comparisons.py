"""`compare`: which cells differ between two runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from longfat.presentation.run.comparison import ComparedRuns


def compare(run_a: str | Path, run_b: str | Path, *, metrics: Sequence[str] = ()) -> ComparedRuns:
    """Compares the cells of two runs, such as those of two versions of a program.

    Args:
        run_a: Folder of the first run, or its name in the folder runs.
        run_b: Folder of the second run.
        metrics: Metrics to compare, such as goodput; by default those that the first study shows.

    Returns:
        The comparison. Its intervals have 95 % confidence for all cells and metrics together. Runs with the
        same seed are paired by trial. `is_changed` also covers metrics without a value in the second run,
        and other numbers of failed trials.

    Raises:
        ValueError: for a folder without a run, a metric that is unknown or not measured in the first run, and
            runs without a common cell or with fewer than two trials outside of virtual time.
        OSError: if a folder cannot be read.
    """
    from longfat.analysis import grid, run_comparison
    from longfat.api.runs import find_run, load_run
    from longfat.presentation.run.comparison import ComparedRuns
    from longfat.study.vocabulary import resolve_metric
    from longfat.system.parameters import ParameterError

    first, second = load_run(find_run(run_a)), load_run(find_run(run_b))
    present = grid.listed(first.cells)
    chosen = []
    for metric in metrics:
        column = resolve_metric(metric)
        if column not in present:
            raise ParameterError(
                "metrics", f'"{metric}" is not measured in {run_a}; measured: {", ".join(present)}'
            )
        chosen.append(column)
    return ComparedRuns(**vars(run_comparison.compare(first, second, chosen)))
