"""Verdicts as sentences: the deciding metric, both values with units, their ratio and n."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from longfat.presentation import formatting, names
from longfat.results import Verdict
from longfat.study.claims import MIN_TRIALS

if TYPE_CHECKING:
    from longfat.analysis.claims import Judgement
    from longfat.analysis.relations import Evidence
    from longfat.results import Interval


def verdict(of: Judgement) -> Verdict:
    """Returns the verdict with its sentence."""
    return Verdict(of.claim.id, of.claim.text, of.verdict, _detail(of), of.world)


def _detail(of: Judgement) -> str:
    if of.decisive is None:
        return of.reason
    text = _sentence(of.decisive)
    if of.verdict == "undecided" and of.decisive.n >= MIN_TRIALS:
        text += "; too uncertain to decide, add repeats"
    if of.total == 1:
        return text
    counted = of.decisive.counted
    scope = {
        "holds": f"in {'both' if of.total == 2 else f'all {of.total}'} {counted}; closest",
        "fails": f"in {of.agreeing} of {of.total} {counted}; worst",
        "undecided": f"in {of.agreeing} of {of.total} {counted}; e.g.",
    }[of.verdict]
    return f"{scope} {text}"


def _sentence(of: Evidence) -> str:
    if of.reason:
        return of.reason
    failed = f", {of.failed} failed" if of.failed else ""
    if of.n == 0:
        return f"{_where(of)}no trial has this metric on both sides{failed}"
    if of.n < MIN_TRIALS:
        trials = "one trial" if of.n == 1 else f"{of.n} trials"
        return f"{_where(of)}{trials} cannot decide: at least {MIN_TRIALS} are needed (--repeats){failed}"
    return f"{_where(of)}{names.metric_phrase(of.metric)}: {_values(of)} (n={of.n}{failed})"


def _where(of: Evidence) -> str:
    place = f"at {formatting.place(of.params)}" if of.params else ""
    if of.step is not None:
        first, last = formatting.label(of.step.first), formatting.label(of.step.last)
        return f"{place} from {of.step.key} {first} to {last}, ".lstrip()
    return f"{place}, " if place else ""


def _values(of: Evidence) -> str:
    unit = names.unit_of(of.metric)

    def shown(value: float) -> str:
        return (
            f"{formatting.TIMES}{formatting.digits(value)}"
            if of.is_lead
            else formatting.quantity(value, unit)
        )

    name, first = of.values[0]
    if of.level is not None:
        relation, limit = of.level
        return (
            f"{name} {shown(first)}, claimed {relation.replace('-', ' ')} {formatting.quantity(limit, unit)}"
        )
    other, second = of.values[1]
    joint = f" to {shown(second)}" if of.step is not None else f", {other} {shown(second)}"
    return f"{name} {shown(first)}{joint}, {_ratio(of.ratio)}"


def _ratio(of: Interval | None) -> str:
    if of is None or not math.isfinite(of.mean):
        return "no ratio (the second value is 0)"
    return f"{formatting.TIMES}{formatting.digits(of.mean)} {formatting.bounds(of)}".rstrip()
