"""`compare`: which cells differ between two runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from longfat.analysis.run_comparison import RunComparison


def compare(run_a: str | Path, run_b: str | Path, *, metrics: Sequence[str] = ()) -> RunComparison:
    """Compares the cells of two runs, such as those of two versions of a program.

    Args:
        run_a: Folder of the first run, or its name in the folder runs.
        run_b: Folder of the second run.
        metrics: Metrics to compare, such as goodput; by default those that the study shows.

    Returns:
        The comparison. Its intervals have 95 % confidence for all cells and metrics together.

    Raises:
        ValueError: for a folder without a run, an unknown metric, and runs without a common cell.
    """
    from longfat.analysis import grid, run_comparison
    from longfat.api.runs import find_run, load_run
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
    return run_comparison.compare(first, second, chosen)
