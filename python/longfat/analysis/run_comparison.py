"""Which cells of a run differ from those of another run of the same study, such as one of an older version.

Each shown metric of each cell that both runs have is one comparison. The rules:

- Runs with the same seed are compared trial by trial, since trial k of both has the same random numbers. Runs
  with different seeds are compared as independent samples.
- The differences are tested at a common level of 95 %: with m comparisons, each has 1 - 0.05 / m
  (Bonferroni). If nothing has changed, the probability of at least one reported difference of values is
  therefore at most 5 %, whatever the number of cells. Lost metrics and numbers of failed trials are reported
  without a test, so rare failures that differ between seeds are changes, too. A run with a precision has
  its own, higher level (`longfat.analysis.looks`).
- A single trial is compared in the world sim with the same seed only. The same version gives the same bits
  there, so every difference is a change.
- A metric with a value in the first run but none in the second is lost, and so is a cell that the second run
  lacks or whose trials all fail. A different number of failed trials is a change, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from longfat.analysis import grid
from longfat.analysis.relations import Family
from longfat.analysis.statistics import CONFIDENCE, mean_difference, paired, ratio, unpaired
from longfat.analysis.study_differences import differences
from longfat.results.run import Interval, known
from longfat.study.vocabulary import metrics, whole_metric
from longfat.study.worlds import VIRTUAL

if TYPE_CHECKING:
    from longfat.results.run import Cell, CellResult, RunResult

_FEWEST = 2
"""Trials from which chance can be excluded."""

Outcome = Literal["higher", "lower", "equal", "similar"]
"""`equal` are bit-identical samples; `similar` ones differ by no more than chance explains."""
Effect = Literal["better", "worse"]
"""Whether a change has the direction that the vocabulary declares as better for its metric."""


@dataclass(frozen=True)
class Change:
    """One metric of one cell in both runs, in the metric's base unit.

    `difference` is the mean of second - first, and `ratio` second / first, at the level of all comparisons
    together. `n` is the number of pairs of trials; with different seeds, that of the smaller sample.
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

    @property
    def effect(self) -> Effect | None:
        """Whether a change is better or worse; None without a change, and for a study's own metrics."""
        better = metrics().get(whole_metric(self.metric), {}).get("better")
        if better is None or not self.is_change:
            return None
        return "better" if self.outcome == better else "worse"


@dataclass(frozen=True)
class Failures:
    """A cell whose number of failed trials differs: failed and all trials in both runs."""

    cell: Cell
    first: tuple[int, int]
    second: tuple[int, int]


@dataclass(frozen=True, repr=False)
class RunComparison:
    """The comparisons of two runs, and what could not be compared.

    `level` is the confidence of each comparison. `lost` are the metrics of a cell that only the first run
    has, `too_few` those with too few trials for a comparison in one run, and `unknown` those whose mean is
    unknown in the first run, since requests were unanswered or flows incomplete. `only_first` and
    `only_second` are the cells that one run lacks. `is_paired` states that both runs have the same seed.
    `settings` are the keys in which their studies differ, with both values.
    """

    changes: tuple[Change, ...]
    lost: tuple[tuple[Cell, str], ...]
    too_few: tuple[tuple[Cell, str], ...]
    unknown: tuple[tuple[Cell, str], ...]
    failures: tuple[Failures, ...]
    only_first: tuple[Cell, ...]
    only_second: tuple[Cell, ...]
    level: float
    is_paired: bool
    settings: tuple[tuple[str, Any, Any], ...] = ()

    @property
    def changed(self) -> tuple[Change, ...]:
        """The comparisons whose difference is more than chance explains.

        Metrics are in the order of the comparisons, each with its largest change first.
        """
        found = [change for change in self.changes if change.is_change]
        order = list(dict.fromkeys(change.metric for change in self.changes))
        return tuple(sorted(found, key=lambda one: (order.index(one.metric), -_size(one.ratio.value))))

    @property
    def is_changed(self) -> bool:
        """Whether a value or a number of failures differs, or something of the first run is lost."""
        return bool(self.changed or self.lost or self.failures or self.only_first)

    def to_json(self) -> dict[str, object]:
        """Returns the comparison as plain data."""
        return {
            "confidence": CONFIDENCE,
            "confidence_of_each": self.level,
            "comparisons": [
                {
                    **_named(change.cell),
                    "metric": change.metric,
                    "first": known(change.first),
                    "second": known(change.second),
                    "difference": change.difference.to_json(),
                    "ratio": change.ratio.to_json(),
                    "n": change.n,
                    "outcome": change.outcome,
                    "effect": change.effect,
                }
                for change in self.changes
            ],
            "lost": [{**_named(cell), "metric": metric} for cell, metric in self.lost],
            "too_few_trials": [{**_named(cell), "metric": metric} for cell, metric in self.too_few],
            "unknown": [{**_named(cell), "metric": metric} for cell, metric in self.unknown],
            "failures": [
                {
                    **_named(one.cell),
                    "first": {"failed": one.first[0], "tried": one.first[1]},
                    "second": {"failed": one.second[0], "tried": one.second[1]},
                }
                for one in self.failures
            ],
            "paired": self.is_paired,
            "changed": self.is_changed,
            "only_first": [_named(cell) for cell in self.only_first],
            "only_second": [_named(cell) for cell in self.only_second],
            "settings": [{"key": key, "first": a, "second": b} for key, a, b in self.settings],
        }


def _size(factor: float) -> float:
    return abs(math.log(factor)) if 0 < factor < math.inf else math.inf


def _named(cell: Cell) -> dict[str, object]:
    return {"world": cell.world, "protocol": cell.protocol, "params": dict(cell.params)}


def compare(first: RunResult, second: RunResult, chosen: Sequence[str] = ()) -> RunComparison:
    """Compares two runs by chosen metrics; by default, by those that the first study shows.

    Raises ValueError if the runs have no cell in common, or no metric with enough trials.
    """
    one = {result.cell.identity: result for result in first.cells}
    other = {result.cell.identity: result for result in second.cells}
    pairs = [(one[key], other[key]) for key in one if key in other]
    if not pairs:
        raise ValueError("the runs have no cell in common: compare runs of the same study")
    is_paired = first.study.seed == second.study.seed
    chosen = list(chosen) or grid.shown(first.study, first.cells)
    todo: list[tuple[CellResult, CellResult, str]] = []
    lost: list[tuple[Cell, str]] = []
    too_few: list[tuple[Cell, str]] = []
    unknown: list[tuple[Cell, str]] = []
    for a, b in pairs:
        for metric in chosen:
            if metric not in a.metrics:
                if metric in a.censored:
                    unknown.append((a.cell, metric))
                continue
            fewest = 1 if is_paired and a.cell.world == VIRTUAL else _FEWEST
            if metric in b.metrics and min(map(len, _samples(a, b, metric, is_paired=is_paired))) >= fewest:
                todo.append((a, b, metric))
            else:
                is_lost = metric not in b.metrics and a.n >= fewest
                (lost if is_lost else too_few).append((a.cell, metric))
    failures = [
        Failures(a.cell, (a.tried - a.n, a.tried), (b.tried - b.n, b.tried))
        for a, b in pairs
        if a.tried - a.n != b.tried - b.n
    ]
    only_first = tuple(one[key].cell for key in one if key not in other)
    if not (todo or lost or failures or only_first):
        beyond = ": requests are unanswered or flows incomplete in the first run" if unknown else ""
        raise ValueError(f"the runs have no metric with two trials in common{beyond}")
    usual = max(result.confidence for pair in pairs for result in pair)
    level = Family(len(todo), usual).strict
    return RunComparison(
        changes=tuple(_change(a, b, metric, level, is_paired=is_paired) for a, b, metric in todo),
        lost=tuple(lost),
        too_few=tuple(too_few),
        unknown=tuple(unknown),
        failures=tuple(failures),
        only_first=only_first,
        only_second=tuple(other[key].cell for key in other if key not in one),
        level=level,
        is_paired=is_paired,
        settings=differences(first.study, second.study),
    )


def _samples(
    first: CellResult, second: CellResult, metric: str, *, is_paired: bool
) -> tuple[list[float], list[float]]:
    """Returns the values of both runs: of the same trials if `is_paired`, else all that are known."""
    if is_paired:
        return paired(first, second, metric)
    both = ([value for value in one.samples[metric] if math.isfinite(value)] for one in (first, second))
    before, after = both
    return before, after


def _change(first: CellResult, second: CellResult, metric: str, level: float, *, is_paired: bool) -> Change:
    before, after = _samples(first, second, metric, is_paired=is_paired)
    if len(before) == 1 == len(after):
        # The same seed in virtual time: chance has no part in the difference.
        exact, part = after[0] - before[0], after[0] / before[0] if before[0] else math.nan
        difference, quotient = Interval(exact, exact, exact), Interval(part, part, part)
    elif is_paired:
        difference, quotient = mean_difference(after, before, 1.0, level), ratio(after, before, level)
    else:
        difference, quotient = unpaired(after, before, level)
    return Change(
        first.cell,
        metric,
        sum(before) / len(before),
        sum(after) / len(after),
        difference,
        quotient,
        min(len(before), len(after)),
    )
