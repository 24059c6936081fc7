"""Agreement of worlds: the same cell in two worlds, metric by metric, compared with an allowed difference.

Two cells are compared trial by trial, over the trials that succeeded in both. A cell *agrees* in a metric if
the mean difference is within the limit and *misses* if it is beyond; `unsure` marks a 95 % interval of the
difference that contains the limit. A metric whose value is unknown in a world is not compared. A
limit is a share of the first world's mean, an amount in the metric's unit, or the larger of both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from longfat.analysis.agreement_causes import Cause, causes
from longfat.analysis.metric_range import range_of
from longfat.analysis.statistics import mean_difference, paired, ratio
from longfat.study.vocabulary import canonical

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longfat.results.run import Cell, CellResult, Interval


@dataclass(frozen=True)
class Measure:
    """A metric in which worlds are compared, and the allowed difference.

    `part` is relative to the first world's mean, `amount` in the metric's unit; the larger of both counts.
    Without either, the difference has no verdict. With `kinds`, only workloads of these kinds are compared.
    """

    metric: str
    part: float | None = None
    amount: float | None = None
    kinds: tuple[str, ...] = ()

    @property
    def is_limited(self) -> bool:
        """Whether a difference can be beyond the limit."""
        return self.part is not None or self.amount is not None

    def tolerance(self, mean: float) -> float:
        """The largest difference that agrees with this mean, in the metric's unit; infinite without limit."""
        if not self.is_limited:
            return math.inf
        return max((self.part or 0.0) * abs(mean), self.amount or 0.0)


MEASURES = (
    Measure("goodput_bps", part=0.10),
    Measure("fct_mean_s", part=0.10, amount=0.001, kinds=("request-response", "web-page", "arrivals")),
    Measure("rtt_mean_s", part=0.10, amount=0.001),
    Measure("jain", amount=0.05),
    Measure("share", amount=0.05),
    Measure("retransmissions"),
)
"""The compared metrics, the most important first. The goodput of requests depends on the pauses between them.

The scheduler of a computer occasionally adds a millisecond to a round trip on any path.
"""


@dataclass(frozen=True)
class Difference:
    """One metric of one cell in two worlds; `change` is other - first, `ratio` other / first."""

    measure: Measure
    first: float
    other: float
    change: Interval
    ratio: Interval

    @property
    def tolerance(self) -> float:
        """The largest difference that agrees here, in the metric's unit."""
        return self.measure.tolerance(self.first)

    @property
    def misses(self) -> bool:
        """Whether the mean difference is beyond the limit."""
        return abs(self.change.mean) > self.tolerance

    @property
    def unsure(self) -> bool:
        """Whether the interval of the difference contains the limit or is unknown."""
        if self.tolerance == math.inf:
            return False
        low, high = self.change.low, self.change.high
        if not (math.isfinite(low) and math.isfinite(high)):
            return True
        inside = -self.tolerance <= low and high <= self.tolerance
        return not inside and not low > self.tolerance and not high < -self.tolerance

    @property
    def distance(self) -> float:
        """The difference in units of the limit."""
        return abs(self.change.mean) / self.tolerance if self.tolerance > 0 else 0.0


@dataclass(frozen=True)
class Agreement:
    """One cell in two worlds, by metric; `causes` are possible causes of a miss."""

    cell: Cell
    other_world: str
    differences: tuple[Difference, ...]
    causes: tuple[Cause, ...]

    @property
    def misses(self) -> list[Difference]:
        """The metrics whose difference is beyond the limit."""
        return [difference for difference in self.differences if difference.misses]

    def difference(self, metric: str) -> Difference | None:
        """The difference in one metric, if both worlds measured it."""
        return next((one for one in self.differences if one.measure.metric == metric), None)


def agreements(results: Sequence[CellResult]) -> list[Agreement]:
    """Every cell that two worlds share: the study's first world compared with each other one, in order."""
    by_cell: dict[str, dict[str, CellResult]] = {}
    for result in results:
        key = canonical([result.cell.protocol, result.cell.params])
        by_cell.setdefault(key, {})[result.cell.world] = result
    found = []
    for in_worlds in by_cell.values():
        first, *others = in_worlds.values()
        found += [agreement for other in others if (agreement := _compare(first, other)) is not None]
    return found


def by_world(found: Sequence[Agreement]) -> list[list[Agreement]]:
    """The agreements with each other world."""
    groups: dict[str, list[Agreement]] = {}
    for one in found:
        groups.setdefault(one.other_world, []).append(one)
    return list(groups.values())


def differences(found: Sequence[Agreement], metric: str) -> list[Difference]:
    """The differences of all cells in one metric."""
    return [one for each in found if (one := each.difference(metric)) is not None]


def measured(found: Sequence[Agreement]) -> list[Measure]:
    """The metrics in which any cell was compared. Jain's index of a lone flow is always 1 and left out."""
    return [
        measure
        for measure in MEASURES
        if (all_of := differences(found, measure.metric))
        and not (measure.metric == "jain" and all(one.first == one.other == 1.0 for one in all_of))
    ]


def missed(found: Sequence[Agreement]) -> list[Agreement]:
    """The cells that miss, the furthest first."""
    return sorted(
        (one for one in found if one.misses),
        key=lambda one: max(difference.distance for difference in one.misses),
        reverse=True,
    )


def furthest(found: Sequence[Agreement]) -> tuple[Agreement, Difference]:
    """The cell and metric with the largest difference, in units of the limit."""
    apart = [(each, one) for each in found for one in each.differences if one.tolerance < math.inf]
    return max(apart, key=lambda pair: pair[1].distance)


def _compare(first: CellResult, other: CellResult) -> Agreement | None:
    found = tuple(one for measure in MEASURES if (one := _difference(first, other, measure)) is not None)
    if not any(one.tolerance < math.inf for one in found):
        return None
    beyond = [one.measure.metric for one in found if one.misses]
    unsure = any(one.misses and one.unsure for one in found)
    why = tuple(causes(first, other, beyond, unsure=unsure)) if beyond else ()
    return Agreement(first.cell, other.cell.world, found, why)


def _difference(first: CellResult, other: CellResult, measure: Measure) -> Difference | None:
    metric = measure.metric
    if measure.kinds and first.cell.spec.get("workload", {}).get("kind") not in measure.kinds:
        return None
    b, a = paired(first, other, metric)
    if not a or metric in first.censored or metric in other.censored:
        return None
    mean = math.fsum(b) / len(b)
    of_b, of_a = range_of(metric, first.samples), range_of(metric, other.samples)
    return Difference(
        measure,
        mean,
        math.fsum(a) / len(a),
        mean_difference(a, b, within=of_a.minus(of_b)),
        ratio(a, b, within=of_a.over(of_b)),
    )
