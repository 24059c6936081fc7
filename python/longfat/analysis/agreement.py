"""Do the worlds agree? The same cell in two worlds, metric by metric, against the difference that is allowed.

Two cells are compared trial by trial, over the trials that succeeded in both. A cell *agrees* in a metric
where the mean difference is within the limit and *misses* where it is beyond; where the 95 % interval of
the difference reaches across the limit, that is said too. A limit is a part of the first world's mean, an
amount in the metric's unit, or the larger of both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from longfat.analysis.agreement_causes import causes
from longfat.analysis.statistics import mean_difference, paired, ratio
from longfat.presentation import formatting
from longfat.study.vocabulary import canonical

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from longfat.results import Cell, CellResult, Interval


@dataclass(frozen=True)
class Measure:
    """A metric in which worlds are compared, and by how much they may differ.

    `part` is relative to the first world's mean, `amount` in the metric's unit; where both are there the
    larger counts, and where neither is the difference is told without a verdict.
    """

    metric: str
    part: float | None = None
    amount: float | None = None

    @property
    def phrase(self) -> str:
        """The metric inside a sentence."""
        return formatting.metric_phrase(self.metric)

    @property
    def limit(self) -> str:
        """The limit in words: "10 % or 1.00 ms"; empty where there is none."""
        parts = [f"{self.part * 100:g} %"] if self.part is not None else []
        if self.amount is not None:
            unit = formatting.unit_of(self.metric)
            parts.append(f"{_amount(self.amount, unit)}")
        return " or ".join(parts)

    def tolerance(self, mean: float) -> float:
        """The largest difference that agrees with this mean, in the metric's unit; infinite without limit."""
        if self.part is None and self.amount is None:
            return math.inf
        return max((self.part or 0.0) * abs(mean), self.amount or 0.0)


MEASURES = (
    Measure("goodput_bps", part=0.10),
    Measure("rtt_mean_s", part=0.10, amount=0.001),
    Measure("jain", amount=0.05),
    Measure("share", amount=0.05),
    Measure("retransmissions"),
)
"""What is compared, the most asked for first.

A millisecond of round trip is what a computer's own scheduling takes now and then, whatever the path.
"""


@dataclass(frozen=True)
class Difference:
    """One metric of one cell in two worlds; `change` is other - first, `of` other / first."""

    measure: Measure
    first: float
    other: float
    change: Interval
    of: Interval

    @property
    def tolerance(self) -> float:
        """How large a difference agrees here, in the metric's unit."""
        return self.measure.tolerance(self.first)

    @property
    def misses(self) -> bool:
        """Whether the mean difference is beyond the limit."""
        return abs(self.change.mean) > self.tolerance

    @property
    def unsure(self) -> bool:
        """Whether the interval of the difference reaches across the limit, or is unknown."""
        if self.tolerance == math.inf:
            return False
        low, high = self.change.low, self.change.high
        if not (math.isfinite(low) and math.isfinite(high)):
            return True
        inside = -self.tolerance <= low and high <= self.tolerance
        return not inside and not low > self.tolerance and not high < -self.tolerance

    @property
    def distance(self) -> float:
        """How far the worlds are apart, in units of the limit."""
        return abs(self.change.mean) / self.tolerance if self.tolerance > 0 else 0.0

    def told(self) -> str:
        """The difference in words: relative where the limit is so, else in the metric's unit."""
        unit = formatting.unit_of(self.measure.metric)
        if self.measure.part is not None and math.isfinite(self.of.mean):
            part = f"{(self.of.mean - 1) * 100:+.1f} %"
            return part if self.measure.amount is None else f"{part}, {_signed(self.change.mean, unit)}"
        return _signed(self.change.mean, unit)

    def bounds(self) -> str:
        """The interval of the difference, in the unit of `told`; empty where it is unknown."""
        if self.measure.part is not None and not math.isnan(self.of.low):
            low, high = (self.of.low - 1) * 100, (self.of.high - 1) * 100
            end = f"{high:+.1f}]" if math.isfinite(high) else f"+{formatting.UNBOUNDED}"
            return f"[{low:+.1f}, {end} %"
        low, high = self.change.low, self.change.high
        if self.measure.part is not None or not (math.isfinite(low) and math.isfinite(high)):
            return ""
        return f"[{formatting.digits(low)}, {formatting.digits(high)}]"


@dataclass(frozen=True)
class Agreement:
    """One cell in two worlds, by metric; `causes` are what the records tell of a miss."""

    cell: Cell
    other_world: str
    differences: tuple[Difference, ...]
    causes: tuple[str, ...]

    @property
    def misses(self) -> list[Difference]:
        """The metrics whose difference is beyond the limit."""
        return [difference for difference in self.differences if difference.misses]

    @property
    def place(self) -> str:
        """The cell in words: "vegas at path.rate = 20Mbit/s"."""
        point = formatting.place(self.cell.params)
        return f"{self.cell.protocol}{f' at {point}' if point else ''}"

    def of(self, metric: str) -> Difference | None:
        """The difference in one metric, where both worlds measured it."""
        return next((one for one in self.differences if one.measure.metric == metric), None)


def agreements(results: Sequence[CellResult]) -> list[Agreement]:
    """Every cell that two worlds share, the study's first world against each other one, in order."""
    by_cell: dict[str, dict[str, CellResult]] = {}
    for result in results:
        key = canonical([result.cell.protocol, result.cell.params])
        by_cell.setdefault(key, {})[result.cell.world] = result
    found = []
    for in_worlds in by_cell.values():
        first, *others = in_worlds.values()
        found += [agreement for other in others if (agreement := _compare(first, other)) is not None]
    return found


def measured(found: Sequence[Agreement]) -> list[Measure]:
    """What any cell was compared in. Jain's index of a lone flow is 1 everywhere and says nothing."""
    return [
        measure
        for measure in MEASURES
        if (all_of := [one for each in found if (one := each.of(measure.metric)) is not None])
        and not (measure.metric == "jain" and all(one.first == one.other == 1.0 for one in all_of))
    ]


def _compare(first: CellResult, other: CellResult) -> Agreement | None:
    differences = tuple(
        one for measure in MEASURES if (one := _difference(first, other, measure)) is not None
    )
    if not any(one.tolerance < math.inf for one in differences):
        return None
    missed = [one.measure.metric for one in differences if one.misses]
    unsure = any(one.misses and one.unsure for one in differences)
    why = tuple(causes(first, other, missed, unsure=unsure)) if missed else ()
    return Agreement(first.cell, other.cell.world, differences, why)


def _difference(first: CellResult, other: CellResult, measure: Measure) -> Difference | None:
    b, a = paired(first, other, measure.metric)
    if not a:
        return None
    mean = math.fsum(b) / len(b)
    return Difference(measure, mean, math.fsum(a) / len(a), mean_difference(a, b), ratio(a, b))


def summary(found: Sequence[Agreement]) -> list[str]:
    """A line for each pair of worlds: in how many cells each metric agrees; then the cells furthest apart.

    >>> summary([])
    []
    """
    lines = []
    for world in dict.fromkeys(one.other_world for one in found):
        cells = [one for one in found if one.other_world == world]
        counts = "; ".join(_counts(cells))
        lines.append(f"{cells[0].cell.world} and {world} agree: {counts}")
        apart = [(each, one) for each in cells for one in each.differences if one.tolerance < math.inf]
        each, one = max(apart, key=lambda pair: pair[1].distance)
        lines.append(
            f"furthest apart: {each.place}, {one.measure.phrase} {one.told()} {one.bounds()}".rstrip()
        )
    return lines


def _counts(cells: Sequence[Agreement]) -> Iterator[str]:
    for measure in measured(cells):
        if not measure.limit:
            continue
        all_of = [one for each in cells if (one := each.of(measure.metric)) is not None]
        close = sum(not one.misses for one in all_of)
        yield f"{measure.phrase} within {measure.limit} in {close} of {len(all_of)} cells"


def missed(found: Sequence[Agreement]) -> list[tuple[str, str]]:
    """Each cell that misses, the furthest first: what differs by how much, and what records tell of it."""
    far = sorted(
        (one for one in found if one.misses),
        key=lambda one: max(difference.distance for difference in one.misses),
        reverse=True,
    )
    return [(f"{one.place}: {_differences(one)}", "; ".join(one.causes)) for one in far]


def _differences(one: Agreement) -> str:
    return ", ".join(
        f"{difference.measure.phrase} {difference.told()} {difference.bounds()}".rstrip()
        for difference in one.misses
    )


def _amount(value: float, unit: str) -> str:
    scale, name = formatting.scale_for([value], unit)
    return f"{value / scale:g} {name}".strip()


def _signed(value: float, unit: str) -> str:
    return f"{'+' if value >= 0 else '-'}{formatting.quantity(abs(value), unit)}"
