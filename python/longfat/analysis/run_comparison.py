"""Which cells of a run differ from those of another run of the same study, such as one of an older version.

Each shown metric of each cell that both runs have is one comparison, paired by trial. Their differences are
tested at a common level of 95 %: with m comparisons, each has 1 - 0.05 / m (Bonferroni). If nothing has
changed, the probability of at least one reported change is therefore at most 5 %, whatever the number of
cells.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from longfat.analysis import grid
from longfat.analysis.relations import Family
from longfat.analysis.statistics import CONFIDENCE, mean_difference, paired, ratio
from longfat.results.run import Interval, known

if TYPE_CHECKING:
    from longfat.results.run import Cell, CellResult, RunResult

Outcome = Literal["higher", "lower", "equal", "similar"]
"""`equal` are bit-identical samples; `similar` ones differ by no more than chance explains."""


@dataclass(frozen=True)
class Change:
    """One metric of one cell in both runs, in the metric's base unit.

    `difference` is the mean of second - first over pairs of trials, and `ratio` second / first, at the level
    of all comparisons together. `n` is the number of pairs.
    """

    cell: Cell
    metric: str
    first: float
    second: float
    difference: Interval
    ratio: Interval
    n: int

    @property
    def outcome(self) -> Outcome:
        """Whether the second run has higher or lower values."""
        low, high = self.difference.low, self.difference.high
        if low == high == 0:
            return "equal"
        return "higher" if low > 0 else "lower" if high < 0 else "similar"

    @property
    def is_change(self) -> bool:
        """Whether the difference is more than chance explains."""
        return self.outcome in ("higher", "lower")


@dataclass(frozen=True)
class RunComparison:
    """The comparisons of two runs, and the cells that only one of them has."""

    changes: tuple[Change, ...]
    only_first: tuple[Cell, ...]
    only_second: tuple[Cell, ...]

    @property
    def changed(self) -> tuple[Change, ...]:
        """The comparisons whose difference is more than chance explains, the largest first."""
        found = [change for change in self.changes if change.is_change]
        return tuple(sorted(found, key=lambda change: -_size(change.ratio.value)))

    @property
    def level(self) -> float:
        """The confidence level of each comparison."""
        return Family(max(1, len(self.changes))).strict

    def to_json(self) -> dict[str, object]:
        """Returns the comparison as plain data."""
        return {
            "confidence": CONFIDENCE,
            "confidence_of_each": self.level,
            "comparisons": [
                {
                    "world": change.cell.world,
                    "protocol": change.cell.protocol,
                    "params": dict(change.cell.params),
                    "metric": change.metric,
                    "first": known(change.first),
                    "second": known(change.second),
                    "difference": change.difference.to_json(),
                    "ratio": change.ratio.to_json(),
                    "n": change.n,
                    "outcome": change.outcome,
                }
                for change in self.changes
            ],
            "only_first": [_named(cell) for cell in self.only_first],
            "only_second": [_named(cell) for cell in self.only_second],
        }


def _size(factor: float) -> float:
    return abs(math.log(factor)) if 0 < factor < math.inf else math.inf


def _named(cell: Cell) -> dict[str, object]:
    return {"world": cell.world, "protocol": cell.protocol, "params": dict(cell.params)}


def _identity(cell: Cell) -> tuple[str, str, str]:
    return cell.world, cell.protocol, repr(sorted(cell.params.items()))


def compare(first: RunResult, second: RunResult, metrics: Sequence[str] = ()) -> RunComparison:
    """Compares two runs by these metrics; by default, by those that both studies show.

    Raises ValueError if the runs have no cell or no metric in common.
    """
    one = {_identity(result.cell): result for result in first.cells}
    other = {_identity(result.cell): result for result in second.cells}
    shared = [key for key in one if key in other]
    if not shared:
        raise ValueError("the runs have no cell in common: compare runs of the same study")
    pairs = [(one[key], other[key]) for key in shared]
    chosen = list(metrics) or [
        name for name in grid.shown(first.study, first.cells) if name in grid.listed(second.cells)
    ]
    todo = [
        (a, b, metric) for a, b in pairs for metric in chosen if metric in a.samples and metric in b.samples
    ]
    todo = [(a, b, metric) for a, b, metric in todo if len(paired(a, b, metric)[0]) >= 2]
    if not todo:
        raise ValueError("the runs have no metric with two trials in common")
    level = Family(len(todo)).strict
    return RunComparison(
        tuple(_change(a, b, metric, level) for a, b, metric in todo),
        tuple(one[key].cell for key in one if key not in other),
        tuple(other[key].cell for key in other if key not in one),
    )


def _change(first: CellResult, second: CellResult, metric: str, level: float) -> Change:
    before, after = paired(first, second, metric)
    n = len(before)
    return Change(
        first.cell,
        metric,
        sum(before) / n,
        sum(after) / n,
        mean_difference(after, before, 1.0, level),
        ratio(after, before, level),
        n,
    )
