"""The relations of a claim: what each compares and how it is decided.

a is the metric of the claim's protocol, b that of the other protocol, or of the point `against_where`, in the
same trials, m the margin `by`:

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
| near | (1 - m) `value` <= a <= (1 + m) `value` | a published value with its tolerance, or a range |
| best, highest, lowest | higher, or lower, than each rival | with `by` not-lower, or not-higher |
| agrees-with | b - t <= a <= b + t | b in another world; t is the larger of m b and the claim's `value` |
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from longfat.analysis.metric_range import Range, range_of
from longfat.analysis.statistics import interval, mean_difference, paired, ratio, trials_needed
from longfat.results.run import CONFIDENCE, Interval
from longfat.study import units
from longfat.study.claims import MIN_TRIALS, THEORY

if TYPE_CHECKING:
    from longfat.results.run import Cell, CellResult, Censored, VerdictWord
    from longfat.study.claims import Claim
    from longfat.study.selection import Series

RESOLUTION = 0.05
"""The precision with which equality must be measured, relative to the value, if a claim gives no margin."""

TRENDS_COUNTED = "trends"
"""What a claim along a swept key covers: a trend for each combination of the other keys."""

Sample = Sequence[float]


@dataclass(frozen=True)
class Family:
    """The comparisons of one claim: their number, and the confidence level of each alone (`usual`)."""

    count: int
    usual: float = CONFIDENCE

    def with_one_more(self) -> Family:
        """Returns the family with one more comparison."""
        return Family(self.count + 1, self.usual)

    @property
    def strict(self) -> float:
        """The level of each at which all together have the usual one (Bonferroni)."""
        return 1 - (1 - self.usual) / max(self.count, 1)


@dataclass(frozen=True)
class Step:
    """Two points of a trend: the swept key and its two values."""

    key: str
    first: Any
    last: Any


@dataclass(frozen=True)
class Evidence:
    """One comparison: its verdict and its numbers, in the metric's unit.

    Of comparisons with the same verdict, `deciding` selects the one to report; `counted` names what a claim
    of this relation covers, each with one evidence. `values` are the compared means by name; for a lead they
    are ratios. `interval` is that of the mean that is compared with the claim's value. `reason` replaces the
    numbers if there is nothing to compare. `needed` estimates how many trials decide an undecided comparison,
    if mean and spread stay the same; infinite if it has neither.
    `is_paired` is whether both sides are of the same trials, with the same random numbers, and `is_fixed`
    whether all trials of each side have the same value.
    `unknown` has the name of a side whose value is unknown, and why; then the comparison is undecided.
    """

    verdict: VerdictWord
    metric: str
    rank: float = -math.inf
    params: Mapping[str, Any] | None = None
    values: tuple[tuple[str, float], ...] = ()
    ratio: Interval | None = None
    interval: Interval | None = None
    level: tuple[str, tuple[float, ...]] | None = None
    step: Step | None = None
    is_lead: bool = False
    is_paired: bool = False
    is_fixed: bool = False
    n: int = 0
    failed: int = 0
    counted: str = "cells"
    reason: str = ""
    needed: float = math.inf
    unknown: tuple[str, Censored] | None = None


@dataclass(frozen=True)
class _Test:
    """Whether the mean of left - right (over pairs) is above zero, at two confidence levels.

    Equality may be claimed with a `tolerance`, relative to the scale.
    """

    usual: Interval
    strict: Interval
    scale: float
    family: Family
    tolerance: float = 0.0

    @classmethod
    def of(
        cls,
        left: Sample,
        right: Sample,
        weights: tuple[float, float],
        family: Family,
        tolerance: float = 0.0,
        within: tuple[Range, Range] = (Range(), Range()),
    ) -> _Test:
        """Tests weighted sides; `within` has the range of each."""
        scaled = [weights[0] * value for value in left]
        possible = within[0].times(weights[0]).minus(within[1], weights[1])
        return cls(
            mean_difference(scaled, right, weights[1], family.usual, possible),
            mean_difference(scaled, right, weights[1], family.strict, possible),
            _mean(right) or 1.0,
            family,
            tolerance,
        )

    @classmethod
    def of_level(cls, values: Sample, limit: float, family: Family, within: Range, *, least: bool) -> _Test:
        """Tests the interval of the mean, as in tables, against a limit: a `least` or a largest value."""

        def distance(confidence: float) -> Interval:
            found = interval(values, confidence, within)
            ends = (found.low - limit, found.high - limit)
            low, high = ends if least else (-ends[1], -ends[0])
            return Interval(found.mean - limit if least else limit - found.mean, low, high)

        scale = limit if least else _mean(values)
        return cls(distance(family.usual), distance(family.strict), scale or 1.0, family)

    def above(self) -> VerdictWord:
        """Claimed: the difference is above zero. Equality is not above."""
        if self.usual.low > 0:
            return "holds"
        return "fails" if self.strict.high <= 0 else "undecided"

    def not_below(self) -> VerdictWord:
        """Claimed: the difference is zero or above. It may be lower by the tolerance."""
        if self.strict.high < 0:
            return "fails"
        if self.usual.high >= 0 and self.usual.low >= -self.tolerance * abs(self.scale):
            return "holds"
        return "undecided"

    @property
    def strength(self) -> float:
        """The lower bound of the difference, relative to the scale."""
        end = self.usual.low if math.isfinite(self.usual.low) else self.usual.mean
        return end / abs(self.scale)

    def rank(self, verdict: VerdictWord) -> float:
        """The lower bound of the difference, or for a failure its mean: the lowest is the largest failure."""
        return self.usual.mean / abs(self.scale) if verdict == "fails" else self.strength

    @property
    def level(self) -> float:
        """The confidence level of this comparison alone."""
        return self.family.usual

    def needed(self, n: int) -> float:
        """How many trials instead of `n` would decide."""
        mean = self.usual.mean
        # A failure must be clear among all comparisons.
        interval, level = (self.usual, self.family.usual) if mean > 0 else (self.strict, self.family.strict)
        half = (interval.high - interval.low) / 2
        distance = max(abs(mean), mean + self.tolerance * abs(self.scale))
        if not math.isfinite(half) or distance <= 0:
            return math.inf
        return trials_needed(n, half / distance, level)


def _mean(values: Sample) -> float:
    return math.fsum(values) / len(values) if values else math.nan


def _failed(concerned: Sequence[CellResult]) -> int:
    return sum(sum(result.failures.values()) for result in concerned)


def _are_fixed(*samples: Sample) -> bool:
    return all(len(values) > 1 and min(values) == max(values) for values in samples)


def comparison(claim: Claim, metric: str, of: CellResult, against: CellResult, family: Family) -> Evidence:
    """Compares two protocols in one cell; the claim makes `family` comparisons."""
    names = claim.sides
    if found := _unknown(metric, names, (of, against)):
        return found
    a, b = paired(of, against, metric)
    if len(a) < MIN_TRIALS:
        return _pair("undecided", None, metric, names, (a, b), (of, against))
    within = _ranges(metric, of, against)
    if _mean(b) == 0:
        test, verdict = _against_zero(claim, a, family)
    else:
        test, verdict = _compare(claim, a, b, family, within)
    return _pair(verdict, test, metric, names, (a, b), (of, against))


def agreement(claim: Claim, metric: str, of: CellResult, against: CellResult, family: Family) -> Evidence:
    """Compares one cell in two worlds with the difference that the claim allows."""
    names = of.cell.world, against.cell.world
    if found := _unknown(metric, names, (of, against)):
        return found
    a, b = paired(of, against, metric)
    first, second = _ranges(metric, of, against)
    if len(a) < MIN_TRIALS:
        return _pair("undecided", None, metric, names, (a, b), (of, against))
    part, amount = claim.margin * abs(_mean(b)), max(claim.limits(of.cell), default=0.0)
    if part >= amount:
        lower, upper = (
            _Test.of(a, b, (1, 1 - claim.margin), family, within=(first, second)),
            _Test.of(b, a, (1 + claim.margin, 1), family, within=(second, first)),
        )
    else:
        lower = _Test.of([x + amount for x in a], b, (1, 1), family, within=(first.plus(amount), second))
        upper = _Test.of([y + amount for y in b], a, (1, 1), family, within=(second.plus(amount), first))
    test, verdict = _both(lower, upper)
    return _pair(verdict, test, metric, names, (a, b), (of, against))


def _pair(
    verdict: VerdictWord,
    test: _Test | None,
    metric: str,
    names: tuple[str, str],
    samples: tuple[Sample, Sample],
    concerned: tuple[CellResult, CellResult],
) -> Evidence:
    a, b = samples
    return Evidence(
        verdict,
        metric,
        -math.inf if test is None else test.rank(verdict),
        params=concerned[0].cell.params,
        values=((names[0], _mean(a)), (names[1], _mean(b))),
        ratio=ratio(a, b, CONFIDENCE if test is None else test.level, _ratios(metric, *concerned)),
        needed=math.inf if test is None else test.needed(len(a)),
        is_paired=concerned[1].cell.protocol != THEORY,
        is_fixed=_are_fixed(a, b),
        n=len(a),
        failed=_failed(concerned),
    )


def level(claim: Claim, metric: str, of: CellResult, family: Family) -> Evidence:
    """Compares one cell with the claim's own value; the claim makes `family` comparisons."""
    if found := _unknown(metric, (str(claim.of),), (of,)):
        return found
    a = [value for value in of.samples.get(metric, []) if math.isfinite(value)]
    within = range_of(metric, of.samples)
    limits = claim.limits(of.cell)
    test, verdict = _at_level(claim, limits, a, family, within)
    enough = len(a) >= MIN_TRIALS
    verdict = verdict if enough else "undecided"
    return Evidence(
        verdict,
        metric,
        test.rank(verdict) if enough else -math.inf,
        params=of.cell.params,
        values=((str(claim.of), _mean(a)),),
        level=(_phrase(claim), limits),
        interval=interval(a, family.usual, within),
        needed=test.needed(len(a)) if enough else math.inf,
        is_fixed=_are_fixed(a),
        n=len(a),
        failed=_failed((of,)),
    )


def _phrase(claim: Claim) -> str:
    if claim.relation != "near":
        return claim.relation
    return "between" if claim.by is None else f"within {claim.by} of"


def _at_level(
    claim: Claim, limits: tuple[float, ...], a: Sample, family: Family, within: Range
) -> tuple[_Test, VerdictWord]:
    low, high = limits[0], limits[-1]
    if claim.relation != "near":
        test = _Test.of_level(a, low, family, within, least=claim.relation == "at-least")
        return test, test.not_below()
    part = claim.margin * abs(low)
    return _both(
        _Test.of_level(a, low - part, family, within, least=True),
        _Test.of_level(a, high + part, family, within, least=False),
    )


def _unknown(metric: str, names: Sequence[str], concerned: Sequence[CellResult]) -> Evidence | None:
    """An undecided comparison, if the value of a side is unknown."""
    for name, result in zip(names, concerned, strict=True):
        if metric in result.censored:
            unknown = (name, result.censored[metric])
            return Evidence(
                "undecided",
                metric,
                params=result.cell.params,
                unknown=unknown,
                n=result.n,
                failed=_failed(concerned),
            )
    return None


def _ranges(metric: str, of: CellResult, against: CellResult) -> tuple[Range, Range]:
    return range_of(metric, of.samples), range_of(metric, against.samples)


def _ratios(metric: str, of: CellResult, against: CellResult) -> Range:
    first, second = _ranges(metric, of, against)
    return first.over(second)


def _compare(
    claim: Claim, a: Sample, b: Sample, family: Family, within: tuple[Range, Range]
) -> tuple[_Test, VerdictWord]:
    swapped = within[::-1]
    margin, tolerance = claim.margin, 0.0 if claim.by else RESOLUTION
    match claim.relation:
        case "higher":
            test = _Test.of(a, b, (1, 1 + margin), family, within=within)
            return test, test.above()
        case "lower":
            test = _Test.of(b, a, (1 - margin, 1), family, within=swapped)
            return test, test.above()
        case "not-lower":
            test = _Test.of(a, b, (1, 1 - margin), family, tolerance, within)
            return test, test.not_below()
        case "not-higher":
            test = _Test.of(b, a, (1 + margin, 1), family, tolerance, swapped)
            return test, test.not_below()
        case "within":
            lower = _Test.of(a, b, (1, 1 - margin), family, within=within)
            upper = _Test.of(b, a, (1 + margin, 1), family, within=swapped)
            return _both(lower, upper)
        case _:
            raise ValueError(f'relation "{claim.relation}" does not compare two protocols')


def _against_zero(claim: Claim, a: Sample, family: Family) -> tuple[_Test, VerdictWord]:
    """A counter (timeouts, retransmissions) that is zero for the other protocol: margins do not apply."""
    zeros = [0.0] * len(a)
    if claim.relation in ("higher", "not-lower"):
        test = _Test.of(a, zeros, (1, 1), family)
    else:
        test = _Test.of(zeros, a, (1, 1), family)
    return test, test.above() if claim.relation in ("higher", "lower") else test.not_below()


def _both(lower: _Test, upper: _Test) -> tuple[_Test, VerdictWord]:
    """The weaker of two limits, and the verdict on both together."""
    weaker = min(lower, upper, key=lambda test: test.strength)
    return weaker, together((lower.not_below(), upper.not_below()))


def together(verdicts: Collection[VerdictWord]) -> VerdictWord:
    """Returns the verdict on several comparisons: fails or undecided if any is, in this order."""
    return "fails" if "fails" in verdicts else "undecided" if "undecided" in verdicts else "holds"


def deciding(pieces: Sequence[Evidence], verdict: VerdictWord) -> Evidence:
    """Returns the piece of evidence to report, of those with the verdict on all.

    It is the largest failure, or what holds most narrowly. Of undecided comparisons it is the one that needs
    the most trials, so that what is said of all is true of it.
    """
    found = [piece for piece in pieces if piece.verdict == verdict]
    return min(found, key=lambda piece: (-piece.needed if verdict == "undecided" else 0.0, piece.rank))


def trend(
    claim: Claim, metric: str, group: Series, result_of: Callable[[Cell], CellResult], family: Family
) -> Evidence | None:
    """Judges a relation along a swept key, for one combination of the other keys; None without comparisons.

    The verdict is that on the whole trend, and the numbers are those of the comparison that decides it.
    """
    points = [_Point.of(claim, metric, group, i, result_of) for i in range(len(group.points))]
    judged = {"flat-after": _flat_after, "flat-with": _flat}.get(claim.relation, _monotone)
    pieces = judged(claim, points, family)
    return deciding(pieces, together([piece.verdict for piece in pieces])) if pieces else None


@dataclass(frozen=True)
class _Point:
    """The values of one point of a trend, by trial."""

    metric: str
    value: Any
    number: float
    values: dict[int, float]
    fixed: Mapping[str, Any]
    failed: int
    within: Range
    unknown: tuple[str, Censored] | None

    @classmethod
    def of(
        cls, claim: Claim, metric: str, group: Series, index: int, result_of: Callable[[Cell], CellResult]
    ) -> _Point:
        pairing = group.points[index]
        own = result_of(pairing.of)
        values = dict(zip(own.trials, own.samples.get(metric, []), strict=False))
        concerned: tuple[CellResult, ...] = (own,)
        names = claim.sides
        within = range_of(metric, own.samples)
        if pairing.against is not None:
            other = result_of(pairing.against)
            concerned = (own, other)
            within = _ratios(metric, own, other)
            base = dict(zip(other.trials, other.samples.get(metric, []), strict=False))
            # A trial in which the other protocol's value is zero has no ratio.
            values = {trial: value / base[trial] for trial, value in values.items() if base.get(trial)}
        value = pairing.value(str(claim.along))
        found = _unknown(metric, names[: len(concerned)], concerned)
        return cls(
            metric,
            value,
            pairing.number(str(claim.along)) or 0.0,
            {trial: v for trial, v in values.items() if math.isfinite(v)},
            group.fixed,
            _failed(concerned),
            within,
            None if found is None else found.unknown,
        )

    def paired(self, other: _Point) -> tuple[list[float], list[float]]:
        both = [trial for trial in self.values if trial in other.values]
        return [self.values[trial] for trial in both], [other.values[trial] for trial in both]


def _monotone(claim: Claim, points: Sequence[_Point], family: Family) -> list[Evidence]:
    rising = claim.relation.endswith("rises-with")
    steps = []
    for before, after in itertools.pairwise(points):
        test = _between(before, after, (1, 1), family, RESOLUTION, rising=rising)
        steps.append(_step(claim, before, after, test.not_below(), test))
    # The comparison of both ends is one more besides the steps.
    weights = (1, 1 + claim.margin) if rising else (1 - claim.margin, 1)
    total = _between(points[0], points[-1], weights, family.with_one_more(), rising=rising)
    whole = _step(claim, points[0], points[-1], total.above(), total)
    # A trend that holds is shown as a whole.
    holds = all(piece.verdict == "holds" for piece in (whole, *steps))
    return [whole] if holds else [whole, *steps]


def _between(
    before: _Point,
    after: _Point,
    weights: tuple[float, float],
    family: Family,
    tolerance: float = 0.0,
    *,
    rising: bool,
) -> _Test:
    """Tests whether the later point is above the earlier one, or below it unless `rising`."""
    sides, within = before.paired(after), (before.within, after.within)
    if rising:
        sides, within = sides[::-1], within[::-1]
    return _Test.of(*sides, weights, family, tolerance, within)


def _flat_after(claim: Claim, points: Sequence[_Point], family: Family) -> list[Evidence]:
    after = units.number(claim.after)
    margin = claim.margin if claim.by else RESOLUTION
    base = next((point for point in points if claim.after == point.value or point.number == after), None)
    if base is None:
        reason = f"this run has no point at {claim.along} {claim.after}"
        return [Evidence("undecided", points[0].metric, counted=TRENDS_COUNTED, reason=reason)]
    evidence = []
    for point in points:
        if point.number > base.number:
            test = _between(base, point, (1 + margin, 1), family, rising=False)
            evidence.append(_step(claim, base, point, test.not_below(), test))
    return evidence


def _flat(claim: Claim, points: Sequence[_Point], family: Family) -> list[Evidence]:
    margin = claim.margin if claim.by else RESOLUTION
    evidence = []
    for point in points[1:]:
        above = _between(points[0], point, (1, 1 - margin), family, rising=True)
        below = _between(points[0], point, (1 + margin, 1), family, rising=False)
        test, verdict = _both(above, below)
        evidence.append(_step(claim, points[0], point, verdict, test))
    return evidence


def _step(
    claim: Claim,
    before: _Point,
    after: _Point,
    verdict: VerdictWord,
    test: _Test,
) -> Evidence:
    first, second = before.paired(after)
    unknown = before.unknown or after.unknown
    enough = len(first) >= MIN_TRIALS and unknown is None
    name = f"{claim.of} over {claim.against}" if claim.against is not None else str(claim.of)
    return Evidence(
        verdict if enough else "undecided",
        before.metric,
        test.rank(verdict) if enough else -math.inf,
        needed=test.needed(len(first)) if enough else math.inf,
        params=before.fixed,
        values=((name, _mean(first)), (name, _mean(second))),
        ratio=ratio(second, first, test.level, after.within.over(before.within)),
        step=Step(str(claim.along), before.value, after.value),
        is_lead=claim.against is not None,
        is_paired=True,
        is_fixed=_are_fixed(first, second),
        n=len(first),
        failed=after.failed,
        counted=TRENDS_COUNTED,
        unknown=unknown,
    )
