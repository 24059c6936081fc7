"""The relations of a claim: what each compares and how it is decided.

a is the metric of the claim's protocol, b that of the other protocol in the same trials, m the margin `by`:

| relation | claimed | note |
|---|---|---|
| higher | a > (1 + m) b | |
| lower | a < (1 - m) b | |
| not-lower | a >= (1 - m) b | without `by`: the interval excludes a deficit above 5 % |
| not-higher | a <= (1 + m) b | likewise |
| within | (1 - m) b <= a <= (1 + m) b | |
| rises-with | last > (1 + m) first, and no step down | along the swept key; steps are judged like not-lower |
| falls-with | last < (1 - m) first, and no step up | likewise |
| flat-after | no later point > (1 + m) times the point `after` | m is 5 % without `by`; a fall is allowed |
| flat-with | every point within (1 +- m) times the first | along the swept key; m is 5 % without `by` |
| lead-rises-with | as rises-with, for the ratio a / b | trial by trial |
| lead-falls-with | as falls-with, for the ratio a / b | |
| at-least | a >= the claim's `value` | judged like not-lower, without tolerance |
| at-most | a <= the claim's `value` | likewise |
| agrees-with | b - t <= a <= b + t | b in another world; t is the larger of m b and the claim's `value` |
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from longfat.analysis.statistics import CONFIDENCE, mean_difference, paired, ratio
from longfat.results import Interval
from longfat.study import units
from longfat.study.claims import MIN_TRIALS

if TYPE_CHECKING:
    from longfat.results import Cell, CellResult, VerdictWord
    from longfat.study.claims import Claim
    from longfat.study.selection import Series

RESOLUTION = 0.05
"""The precision with which equality must be measured, relative to the value, if a claim gives no margin."""

Sample = Sequence[float]


@dataclass(frozen=True)
class Step:
    """Two points of a trend: the swept key and its two values."""

    key: str
    first: Any
    last: Any


@dataclass(frozen=True)
class Evidence:
    """One comparison: its verdict and its numbers, in the metric's unit.

    `strength` is the distance from the opposite verdict, relative to the compared value; `counted` names
    what the comparisons of this relation are. `values` are the compared means by name; for a lead they are
    ratios. `reason` replaces the numbers if there is nothing to compare.
    """

    verdict: VerdictWord
    metric: str
    strength: float = -math.inf
    params: Mapping[str, Any] | None = None
    values: tuple[tuple[str, float], ...] = ()
    ratio: Interval | None = None
    level: tuple[str, float] | None = None
    step: Step | None = None
    is_lead: bool = False
    n: int = 0
    failed: int = 0
    counted: str = "cells"
    reason: str = ""


@dataclass(frozen=True)
class _Test:
    """Whether the mean of left - right (over pairs) is above zero, at two confidence levels."""

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

    def not_below(self, tolerance: float = 0.0) -> VerdictWord:
        """Claimed: the difference is zero or above. It may be lower by `tolerance` of the scale."""
        if self.strict.high < 0:
            return "fails"
        if self.usual.high >= 0 and self.usual.low >= -tolerance * abs(self.scale):
            return "holds"
        return "undecided"

    @property
    def strength(self) -> float:
        """The lower bound of the difference, relative to the scale."""
        end = self.usual.low if math.isfinite(self.usual.low) else self.usual.mean
        return end / abs(self.scale)


def _mean(values: Sample) -> float:
    return math.fsum(values) / len(values) if values else math.nan


def _failed(concerned: Sequence[CellResult]) -> int:
    return sum(sum(result.failures.values()) for result in concerned)


def comparison(claim: Claim, metric: str, of: CellResult, against: CellResult, count: int) -> Evidence:
    """Compares two protocols in one cell; `count` cells are compared for the claim."""
    a, b = paired(of, against, metric)
    names = str(claim.of), str(claim.against)
    if len(a) < MIN_TRIALS:
        return _pair("undecided", -math.inf, metric, names, (a, b), (of, against))
    if _mean(b) == 0:
        test, verdict = _against_zero(claim, a, count)
    else:
        test, verdict = _compare(claim, a, b, count)
    return _pair(verdict, test.strength, metric, names, (a, b), (of, against))


def agreement(claim: Claim, metric: str, of: CellResult, against: CellResult, count: int) -> Evidence:
    """Compares one cell in two worlds with the difference that the claim allows."""
    a, b = paired(of, against, metric)
    names = of.cell.world, against.cell.world
    if len(a) < MIN_TRIALS:
        return _pair("undecided", -math.inf, metric, names, (a, b), (of, against))
    part, amount = claim.margin * abs(_mean(b)), claim.level
    if part >= amount:
        lower, upper = _Test.of(a, b, 1, 1 - claim.margin, count), _Test.of(b, a, 1 + claim.margin, 1, count)
    else:
        lower = _Test.of([x + amount for x in a], b, 1, 1, count)
        upper = _Test.of([y + amount for y in b], a, 1, 1, count)
    verdict, strength = _both(lower, upper)
    return _pair(verdict, strength, metric, names, (a, b), (of, against))


def _pair(
    verdict: VerdictWord,
    strength: float,
    metric: str,
    names: tuple[str, str],
    samples: tuple[Sample, Sample],
    concerned: tuple[CellResult, CellResult],
) -> Evidence:
    a, b = samples
    return Evidence(
        verdict,
        metric,
        strength,
        params=concerned[0].cell.params,
        values=((names[0], _mean(a)), (names[1], _mean(b))),
        ratio=ratio(a, b),
        n=len(a),
        failed=_failed(concerned),
    )


def level(claim: Claim, metric: str, of: CellResult, count: int) -> Evidence:
    """Compares one cell with the claim's own value; `count` cells are judged for the claim."""
    a = [value for value in of.samples.get(metric, []) if math.isfinite(value)]
    given = [claim.level] * len(a)
    test = _Test.of(*((a, given) if claim.relation == "at-least" else (given, a)), 1, 1, count)
    enough = len(a) >= MIN_TRIALS
    return Evidence(
        test.not_below() if enough else "undecided",
        metric,
        test.strength if enough else -math.inf,
        params=of.cell.params,
        values=((str(claim.of), _mean(a)),),
        level=(claim.relation, claim.level),
        n=len(a),
        failed=_failed((of,)),
    )


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
            return min(lower, upper, key=lambda test: test.strength), _both(lower, upper)[0]
        case _:
            raise ValueError(f'relation "{claim.relation}" does not compare two protocols')


def _against_zero(claim: Claim, a: Sample, count: int) -> tuple[_Test, VerdictWord]:
    """A counter (timeouts, retransmissions) that is zero for the other protocol: margins do not apply."""
    zeros = [0.0] * len(a)
    if claim.relation in ("higher", "not-lower"):
        test = _Test.of(a, zeros, 1, 1, count)
    else:
        test = _Test.of(zeros, a, 1, 1, count)
    return test, test.above() if claim.relation in ("higher", "lower") else test.not_below()


def _both(lower: _Test, upper: _Test) -> tuple[VerdictWord, float]:
    """The verdict on two limits together, and the smaller strength."""
    return together((lower.not_below(), upper.not_below())), min(lower.strength, upper.strength)


def together(verdicts: Collection[VerdictWord]) -> VerdictWord:
    """Returns the verdict on several comparisons: fails or undecided if any is, in this order."""
    return "fails" if "fails" in verdicts else "undecided" if "undecided" in verdicts else "holds"


def trend(
    claim: Claim, metric: str, group: Series, result_of: Callable[[Cell], CellResult], count: int
) -> list[Evidence]:
    """Judges a relation along a swept key, for one combination of the other keys."""
    points = [_Point.of(claim, metric, group, i, result_of) for i in range(len(group.points))]
    if claim.relation == "flat-after":
        return _flat_after(claim, points, count)
    if claim.relation == "flat-with":
        return _flat(claim, points, count)
    return _monotone(claim, points, count)


@dataclass(frozen=True)
class _Point:
    """The values of one point of a trend, by trial."""

    metric: str
    value: Any
    number: float
    values: dict[int, float]
    fixed: Mapping[str, Any]
    failed: int

    @classmethod
    def of(
        cls, claim: Claim, metric: str, group: Series, index: int, result_of: Callable[[Cell], CellResult]
    ) -> _Point:
        pairing = group.points[index]
        own = result_of(pairing.of)
        values = dict(zip(own.trials, own.samples.get(metric, []), strict=False))
        concerned: tuple[CellResult, ...] = (own,)
        if pairing.against is not None:
            other = result_of(pairing.against)
            concerned = (own, other)
            base = dict(zip(other.trials, other.samples.get(metric, []), strict=False))
            # A trial in which the other protocol's value is zero has no ratio.
            values = {trial: value / base[trial] for trial, value in values.items() if base.get(trial)}
        value = pairing.value(str(claim.along))
        return cls(
            metric,
            value,
            pairing.number(str(claim.along)) or 0.0,
            {trial: v for trial, v in values.items() if math.isfinite(v)},
            group.fixed,
            _failed(concerned),
        )

    def paired(self, other: _Point) -> tuple[list[float], list[float]]:
        both = [trial for trial in self.values if trial in other.values]
        return [self.values[trial] for trial in both], [other.values[trial] for trial in both]


def _monotone(claim: Claim, points: Sequence[_Point], count: int) -> list[Evidence]:
    rising = claim.relation.endswith("rises-with")
    steps = []
    for before, after in itertools.pairwise(points):
        first, second = before.paired(after)
        test = _Test.of(*((second, first) if rising else (first, second)), 1, 1, count)
        steps.append(_step(claim, before, after, test.not_below(RESOLUTION), test.strength))
    first, last = points[0].paired(points[-1])
    # The comparison of both ends is one more besides the steps.
    if rising:
        total = _Test.of(last, first, 1, 1 + claim.margin, count + 1)
    else:
        total = _Test.of(first, last, 1 - claim.margin, 1, count + 1)
    whole = _step(claim, points[0], points[-1], total.above(), total.strength, "steps")
    if all(piece.verdict == "holds" for piece in (whole, *steps)):
        # The trend as a whole is one piece of evidence.
        return [_step(claim, points[0], points[-1], "holds", whole.strength, "trends")]
    return [whole, *steps]


def _flat_after(claim: Claim, points: Sequence[_Point], count: int) -> list[Evidence]:
    after = units.number(claim.after)
    margin = claim.margin if claim.by else RESOLUTION
    base = next((point for point in points if claim.after == point.value or point.number == after), None)
    if base is None:
        reason = f"this run has no point at {claim.along} {claim.after}"
        return [Evidence("undecided", points[0].metric, counted="points", reason=reason)]
    evidence = []
    for point in points:
        if point.number > base.number:
            test = _Test.of(*base.paired(point), 1 + margin, 1, count)
            evidence.append(_step(claim, base, point, test.not_below(), test.strength))
    return evidence


def _flat(claim: Claim, points: Sequence[_Point], count: int) -> list[Evidence]:
    margin = claim.margin if claim.by else RESOLUTION
    evidence = []
    for point in points[1:]:
        first, second = points[0].paired(point)
        above = _Test.of(second, first, 1, 1 - margin, count)
        below = _Test.of(first, second, 1 + margin, 1, count)
        evidence.append(_step(claim, points[0], point, *_both(above, below)))
    return evidence


def _step(
    claim: Claim,
    before: _Point,
    after: _Point,
    verdict: VerdictWord,
    strength: float,
    counted: str = "steps",
) -> Evidence:
    first, second = before.paired(after)
    enough = len(first) >= MIN_TRIALS
    name = f"{claim.of} over {claim.against}" if claim.against is not None else str(claim.of)
    return Evidence(
        verdict if enough else "undecided",
        before.metric,
        strength if enough else -math.inf,
        params=before.fixed,
        values=((name, _mean(first)), (name, _mean(second))),
        ratio=ratio(second, first),
        step=Step(str(claim.along), before.value, after.value),
        is_lead=claim.against is not None,
        n=len(first),
        failed=after.failed,
        counted=counted,
    )
