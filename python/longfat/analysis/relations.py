"""The relations of a claim: what each compares, and what decides it.

With a the metric of the claim's protocol, b that of the other in the same trials, and m the margin `by`:

| relation | claimed | note |
|---|---|---|
| higher | a > (1 + m) b | |
| lower | a < (1 - m) b | |
| not-lower | a >= (1 - m) b | without `by`: no clear loss, and none above 5 % possible |
| not-higher | a <= (1 + m) b | without `by`: likewise |
| within | (1 - m) b <= a <= (1 + m) b | |
| rises-with | last > (1 + m) first, and no step down | along the swept key; a step is judged like not-lower |
| falls-with | last < (1 - m) first, and no step up | likewise |
| flat-after | no later point > (1 + m) times the point `after` | m is 5 % without `by`; a fall is no rise |
| flat-with | no point beyond (1 +- m) times the first | along the swept key; m is 5 % without `by` |
| lead-rises-with | as rises-with, of the ratio a / b | trial by trial |
| lead-falls-with | as falls-with, of the ratio a / b | |
| at-least | a >= the claim's own `value` | judged like not-lower, without tolerance |
| at-most | a <= the claim's own `value` | likewise |
| agrees-with | b - t <= a <= b + t | b in another world; t is the larger of m b and the claim's `value` |
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from longfat.analysis.statistics import CONFIDENCE, mean_difference, paired, ratio
from longfat.presentation import formatting
from longfat.study import units
from longfat.study.claims import MIN_TRIALS

if TYPE_CHECKING:
    from longfat.results import Cell, CellResult, Interval, VerdictWord
    from longfat.study.claims import Claim
    from longfat.study.selection import Series

RESOLUTION = 0.05
"""How well equality must be measured, relative to the value, where a claim gives no margin."""


@dataclass(frozen=True)
class Evidence:
    """One comparison: its verdict, how far it is from the other verdict, and the numbers in a line.

    `strength` is the distance in units of the value compared with: the least is what a reader should see.
    """

    verdict: VerdictWord
    strength: float
    text: str
    counted: str = "cells"


Sample = Sequence[float]


@dataclass(frozen=True)
class _Test:
    """Whether the mean of left - right (over pairs) is above zero, at two confidences."""

    usual: Interval
    strict: Interval
    scale: float

    @classmethod
    def of(cls, left: Sample, right: Sample, weight_left: float, weight_right: float, count: int) -> _Test:
        scaled = [weight_left * value for value in left]
        strict = 1 - (1 - CONFIDENCE) / max(count, 1)
        return cls(
            mean_difference(scaled, right, weight_right),
            mean_difference(scaled, right, weight_right, strict),
            _mean(right) or 1.0,
        )

    def above(self) -> VerdictWord:
        """Claimed: the difference is above zero. Equality is not above."""
        if self.usual.low > 0:
            return "holds"
        return "fails" if self.strict.high <= 0 else "undecided"

    def not_below(self, tolerance: float) -> VerdictWord:
        """Claimed: the difference is not below zero. It may reach `tolerance` of the scale lower."""
        if self.strict.high < 0:
            return "fails"
        if self.usual.high >= 0 and self.usual.low >= -tolerance * abs(self.scale):
            return "holds"
        return "undecided"

    @property
    def strength(self) -> float:
        """How far above zero the interval begins, relative to the scale."""
        end = self.usual.low if math.isfinite(self.usual.low) else self.usual.mean
        return end / abs(self.scale)


def _mean(values: Sample) -> float:
    return math.fsum(values) / len(values) if values else math.nan


def comparison(claim: Claim, metric: str, of: CellResult, against: CellResult, count: int) -> Evidence:
    """A relation between two protocols in one cell; `count` cells are compared for the claim."""
    a, b = paired(of, against, metric)
    where = _where(of.cell)
    if len(a) < MIN_TRIALS:
        return _too_few(len(a), where, "cells", (of, against))
    if _mean(b) == 0:
        test, word = _against_zero(claim, a, count)
    else:
        test, word = _compare(claim, a, b, count)
    text = _compared(metric, (str(claim.of), a), (str(claim.against), b), (of, against))
    return Evidence(word, test.strength, where + text)


def level(claim: Claim, metric: str, of: CellResult, count: int) -> Evidence:
    """A relation to the claim's own value in one cell; `count` cells are judged for the claim."""
    a = [value for value in of.samples.get(metric, []) if math.isfinite(value)]
    where = _where(of.cell)
    if len(a) < MIN_TRIALS:
        return _too_few(len(a), where, "cells", (of,))
    least = claim.relation == "at-least"
    given = [claim.level] * len(a)
    test = _Test.of(a, given, 1, 1, count) if least else _Test.of(given, a, 1, 1, count)
    unit = formatting.unit_of(metric)
    claimed = f"claimed {'at least' if least else 'at most'} {formatting.quantity(claim.level, unit)}"
    measured = f"{formatting.metric_phrase(metric)}: {claim.of} {formatting.quantity(_mean(a), unit)}"
    text = f"{where}{measured}, {claimed} (n={len(a)}{_lost((of,))})"
    return Evidence(test.not_below(0.0), test.strength, text)


def agreement(claim: Claim, metric: str, of: CellResult, against: CellResult, count: int) -> Evidence:
    """One cell in two worlds, against the difference that the claim allows; `count` cells are compared."""
    a, b = paired(of, against, metric)
    where = _where(of.cell)
    if len(a) < MIN_TRIALS:
        return _too_few(len(a), where, "cells", (of, against))
    part, amount = claim.margin * abs(_mean(b)), claim.level
    if part >= amount:
        lower, upper = _Test.of(a, b, 1, 1 - claim.margin, count), _Test.of(b, a, 1 + claim.margin, 1, count)
    else:
        lower = _Test.of([x + amount for x in a], b, 1, 1, count)
        upper = _Test.of([y + amount for y in b], a, 1, 1, count)
    worst = min(lower, upper, key=lambda test: test.strength)
    text = _compared(metric, (of.cell.world, a), (against.cell.world, b), (of, against))
    return Evidence(_all([lower.not_below(0.0), upper.not_below(0.0)]), worst.strength, where + text)


def _compare(claim: Claim, a: Sample, b: Sample, count: int) -> tuple[_Test, VerdictWord]:
    margin, tolerance = claim.margin, 0.0 if claim.by else RESOLUTION
    match claim.relation:
        case "higher":
            test = _Test.of(a, b, 1, 1 + margin, count)
            return test, test.above()
        case "lower":
            test = _Test.of(b, a, 1 - margin, 1, count)
            return test, test.above()
        case "not-lower":
            test = _Test.of(a, b, 1, 1 - margin, count)
            return test, test.not_below(tolerance)
        case "not-higher":
            test = _Test.of(b, a, 1 + margin, 1, count)
            return test, test.not_below(tolerance)
        case "within":
            lower = _Test.of(a, b, 1, 1 - margin, count)
            upper = _Test.of(b, a, 1 + margin, 1, count)
            worst = min(lower, upper, key=lambda test: test.strength)
            return worst, _all([lower.not_below(0.0), upper.not_below(0.0)])
        case _:
            raise ValueError(f'relation "{claim.relation}" is no comparison of two protocols')


def _against_zero(claim: Claim, a: Sample, count: int) -> tuple[_Test, VerdictWord]:
    """A counter (timeouts, retransmissions) of which the other protocol has none: margins are of nothing."""
    zeros = [0.0] * len(a)
    if claim.relation in ("higher", "not-lower"):
        test = _Test.of(a, zeros, 1, 1, count)
    else:
        test = _Test.of(zeros, a, 1, 1, count)
    return test, test.above() if claim.relation in ("higher", "lower") else test.not_below(0.0)


def _all(words: Sequence[VerdictWord]) -> VerdictWord:
    if "fails" in words:
        return "fails"
    return "undecided" if "undecided" in words else "holds"


def trend(
    claim: Claim, metric: str, group: Series, result_of: Callable[[Cell], CellResult], count: int
) -> list[Evidence]:
    """A relation along a swept key, for one combination of the others."""
    points = [_Point.of(claim, metric, group, i, result_of) for i in range(len(group.points))]
    if claim.relation == "flat-after":
        return _flat(claim, metric, points, count)
    if claim.relation == "flat-with":
        return _level(claim, metric, points, count)
    return _monotone(claim, metric, points, count)


@dataclass(frozen=True)
class _Point:
    """The values of one point of a trend, by trial."""

    label: str
    number: float
    values: dict[int, float]
    place: str
    lost: str

    @classmethod
    def of(
        cls, claim: Claim, metric: str, group: Series, index: int, result_of: Callable[[Cell], CellResult]
    ) -> _Point:
        pairing, along = group.points[index], str(claim.along)
        own = result_of(pairing.of)
        values = dict(zip(own.trials, own.samples.get(metric, []), strict=False))
        concerned: tuple[CellResult, ...] = (own,)
        if pairing.against is not None:
            other = result_of(pairing.against)
            concerned = (own, other)
            base = dict(zip(other.trials, other.samples.get(metric, []), strict=False))
            # A trial in which the other protocol has nothing has no ratio.
            values = {trial: value / base[trial] for trial, value in values.items() if base.get(trial)}
        value = pairing.value(along)
        return cls(
            label=formatting.label(value),
            number=units.number(value) or 0.0,
            values={trial: v for trial, v in values.items() if math.isfinite(v)},
            place=f"at {formatting.place(group.fixed)} " if group.fixed else "",
            lost=_lost(concerned),
        )

    def paired(self, other: _Point) -> tuple[list[float], list[float]]:
        both = [trial for trial in self.values if trial in other.values]
        return [self.values[trial] for trial in both], [other.values[trial] for trial in both]


def _monotone(claim: Claim, metric: str, points: Sequence[_Point], count: int) -> list[Evidence]:
    rising = claim.relation.endswith("rises-with")
    evidence = []
    for before, after in itertools.pairwise(points):
        first, second = before.paired(after)
        test = _Test.of(second, first, 1, 1, count) if rising else _Test.of(first, second, 1, 1, count)
        evidence.append(_step(claim, metric, (before, after), test.not_below(RESOLUTION), test.strength))
    first, last = points[0].paired(points[-1])
    # The whole way is one more comparison beside the steps.
    if rising:
        total = _Test.of(last, first, 1, 1 + claim.margin, count + 1)
    else:
        total = _Test.of(first, last, 1 - claim.margin, 1, count + 1)
    whole = _step(claim, metric, (points[0], points[-1]), total.above(), total.strength)
    if all(piece.verdict == "holds" for piece in (whole, *evidence)):
        # One line for the trend as a whole, which is what a reader of a trend wants to see.
        return [Evidence("holds", whole.strength, whole.text, "trends")]
    return [whole, *evidence]


def _step(
    claim: Claim, metric: str, ends: tuple[_Point, _Point], word: VerdictWord, strength: float
) -> Evidence:
    before, after = ends
    first, second = before.paired(after)
    where = f"{before.place}from {claim.along} {before.label} to {after.label}, "
    if len(first) < MIN_TRIALS:
        return Evidence("undecided", -math.inf, _few(len(first), where) + before.lost, "steps")
    change = _ratio_text(ratio(second, first))
    subject = f"{claim.of} over {claim.against}" if claim.against is not None else claim.of
    values = f"{_shown(claim, metric, _mean(first))} to {_shown(claim, metric, _mean(second))}"
    text = f"{where}{formatting.metric_phrase(metric)}: {subject} {values}, {change}"
    return Evidence(word, strength, f"{text} (n={len(first)}{after.lost})", "steps")


def _flat(claim: Claim, metric: str, points: Sequence[_Point], count: int) -> list[Evidence]:
    after = units.number(claim.after)
    margin = claim.margin if claim.by else RESOLUTION
    base = next((point for point in points if point.number == after), None)
    if base is None:
        return [
            Evidence(
                "undecided", -math.inf, f"this run has no point at {claim.along} {claim.after}", "points"
            )
        ]
    evidence = []
    for point in points:
        if point.number <= base.number:
            continue
        first, second = base.paired(point)
        test = _Test.of(first, second, 1 + margin, 1, count)
        evidence.append(_step(claim, metric, (base, point), test.not_below(0.0), test.strength))
    return evidence


def _level(claim: Claim, metric: str, points: Sequence[_Point], count: int) -> list[Evidence]:
    """No point lies beyond the margin above or below the first."""
    margin = claim.margin if claim.by else RESOLUTION
    evidence = []
    for point in points[1:]:
        first, second = points[0].paired(point)
        above = _Test.of(second, first, 1, 1 - margin, count)
        below = _Test.of(first, second, 1 + margin, 1, count)
        worst = min(above, below, key=lambda test: test.strength)
        word = _all([above.not_below(0.0), below.not_below(0.0)])
        evidence.append(_step(claim, metric, (points[0], point), word, worst.strength))
    return evidence


def _shown(claim: Claim, metric: str, value: float) -> str:
    if claim.against is not None:
        return f"{formatting.TIMES}{formatting.digits(value)}"
    return formatting.quantity(value, formatting.unit_of(metric))


def _compared(
    metric: str, a: tuple[str, Sample], b: tuple[str, Sample], concerned: Sequence[CellResult]
) -> str:
    """Two means by their names with the metric's name and unit, their ratio, and the number of trials."""
    unit = formatting.unit_of(metric)
    values = ", ".join(f"{name} {formatting.quantity(_mean(sample), unit)}" for name, sample in (a, b))
    change = _ratio_text(ratio(a[1], b[1]))
    return f"{formatting.metric_phrase(metric)}: {values}, {change} (n={len(a[1])}{_lost(concerned)})"


def _where(cell: Cell) -> str:
    return f"at {formatting.place(cell.params)}, " if cell.params else ""


def _ratio_text(of: Interval) -> str:
    if not math.isfinite(of.mean):
        return "no ratio (nothing to divide by)"
    return f"{formatting.TIMES}{formatting.digits(of.mean)} {formatting.bounds(of)}".rstrip()


def _too_few(n: int, where: str, counted: str, concerned: Sequence[CellResult]) -> Evidence:
    return Evidence("undecided", -math.inf, _few(n, where) + _lost(concerned), counted)


def _few(n: int, where: str) -> str:
    if n == 0:
        return f"{where}no trial has this figure on both sides"
    trials = "one trial" if n == 1 else f"{n} trials"
    return f"{where}{trials} cannot decide: at least {MIN_TRIALS} are needed (--repeats)"


def _lost(concerned: Sequence[CellResult]) -> str:
    failed = sum(sum(result.failures.values()) for result in concerned)
    return f", {failed} failed" if failed else ""
