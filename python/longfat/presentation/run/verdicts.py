"""Verdicts as sentences: the deciding metric, both values with units, their ratio and n."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from longfat.presentation import formatting, names
from longfat.presentation.html.markup import Markup, tag
from longfat.presentation.run import censored
from longfat.results.run import Interval, Verdict, known
from longfat.study.claims import AGREES, MIN_TRIALS

if TYPE_CHECKING:
    from longfat.analysis.claims import Judgement
    from longfat.analysis.relations import Evidence
    from longfat.results.run import VerdictWord


SYMBOLS: dict[VerdictWord, str] = {"holds": "\N{CHECK MARK}", "fails": "\N{BALLOT X}", "undecided": "?"}
"""The symbols of verdicts, in the order of lists."""
MOST_TIMES = 1000
"""Times as many trials beyond which more of them are no remedy."""


def line(claim: Verdict) -> str:
    """Returns a verdict in one line: symbol, word, claim and deciding numbers."""
    return f"{labelled(claim.verdict)}: {claim.text} ({claim.detail})"


def labelled(verdict: VerdictWord, text: str = "") -> str:
    """Returns the symbol of a verdict with its word or another text.

    >>> labelled("holds"), labelled("fails", "2 fail")
    ('✓ holds', '✗ 2 fail')
    """
    return f"{SYMBOLS[verdict]} {text or verdict}"


def badge(verdict: VerdictWord, text: str = "") -> Markup:
    """Returns `labelled` as HTML, in the colour of the verdict."""
    return tag("span", labelled(verdict, text), class_=verdict)


def verdict(judgement: Judgement, labels: Mapping[str, str] | None = None) -> Verdict:
    """Returns the verdict with its sentence and its numbers. The sentence has the labels of protocols."""
    return Verdict(
        judgement.claim.id,
        judgement.claim.text,
        judgement.verdict,
        _detail(judgement, {} if labels is None or judgement.claim.relation == AGREES else labels),
        judgement.world,
        _figures(judgement),
    )


def _figures(judgement: Judgement) -> dict[str, Any] | None:
    evidence = judgement.decisive
    if evidence is None or evidence.reason:
        return None
    return {
        "metric": evidence.metric,
        "params": dict(evidence.params or {}),
        "values": [{"name": name, "value": known(value)} for name, value in evidence.values],
        "ratio": None if evidence.ratio is None else evidence.ratio.to_json(),
        "interval": None if evidence.interval is None else evidence.interval.to_json(),
        "n": evidence.n,
        "comparisons": judgement.total,
        "agreeing": judgement.agreeing,
    }


def _detail(judgement: Judgement, labels: Mapping[str, str]) -> str:
    if judgement.decisive is None:
        return judgement.reason
    text = _sentence(judgement.decisive, labels)
    is_known = judgement.decisive.unknown is None
    if judgement.verdict == "undecided" and judgement.decisive.n >= MIN_TRIALS and is_known:
        text += f"; {_remedy(judgement)}"
    if judgement.total == 1:
        return text
    counted = judgement.decisive.counted
    scope = {
        "holds": f"in {_all_or_some(judgement)} {counted}; closest",
        "fails": f"in {judgement.agreeing} of {judgement.total} {counted}; worst",
        "undecided": f"in {judgement.agreeing} of {judgement.total} {counted}; e.g.",
    }[judgement.verdict]
    return f"{scope} {text}"


def _all_or_some(judgement: Judgement) -> str:
    if judgement.agreeing < judgement.total:
        return f"{judgement.agreeing} of {judgement.total}"
    return "both" if judgement.total == 2 else f"all {judgement.total}"


def _remedy(judgement: Judgement) -> str:
    """What would decide an undecided claim."""
    if judgement.decisive is None or not math.isfinite(judgement.needed):
        return "too uncertain to decide: needs more trials"
    if judgement.needed > MOST_TIMES * judgement.decisive.n:
        return "too close to the limit to decide"
    return f"too uncertain to decide: needs about {formatting.rounded(judgement.needed)} trials per cell"


def _sentence(evidence: Evidence, labels: Mapping[str, str]) -> str:
    if evidence.reason:
        return evidence.reason
    where, n = _where(evidence), evidence.n
    if evidence.unknown is not None:
        name, why = evidence.unknown
        of = _labelled(name, labels)
        return f"{where}{names.metric_phrase(evidence.metric)} of {of} is {censored.unknown(why)}"
    failed = f", {evidence.failed} failed" if evidence.failed else ""
    if n == 0:
        return f"{where}no trial has this metric on both sides{failed}"
    if n < MIN_TRIALS:
        trials = "one trial" if n == 1 else f"{n} trials"
        return f"{where}{trials} cannot decide: at least {MIN_TRIALS} are needed (--repeats){failed}"
    kind = ", all equal" if evidence.is_fixed else ", paired" if evidence.is_paired else ""
    return f"{where}{names.metric_phrase(evidence.metric)}: {_values(evidence, labels)} (n={n}{kind}{failed})"


def _where(evidence: Evidence) -> str:
    place = f"at {formatting.place(evidence.params)}" if evidence.params else ""
    if evidence.step is not None:
        first, last = formatting.label(evidence.step.first), formatting.label(evidence.step.last)
        return f"{place} from {evidence.step.key} {first} to {last}, ".lstrip()
    return f"{place}, " if place else ""


def _labelled(name: str, labels: Mapping[str, str]) -> str:
    """The name of a side of a claim with the labels of its protocols.

    >>> _labelled("bbr over reno", {"bbr": "BBRv3"}), _labelled("bbr at path.loss 2%", {"bbr": "BBRv3"})
    ('BBRv3 over reno', 'BBRv3 at path.loss 2%')
    """
    protocols = (part.partition(" at ") for part in name.split(" over "))
    return " over ".join(labels.get(first, first) + at + point for first, at, point in protocols)


def _values(evidence: Evidence, labels: Mapping[str, str]) -> str:
    unit = names.unit_of(evidence.metric)

    def shown(value: float) -> str:
        ratio = f"{formatting.TIMES}{formatting.digits(value)}"
        return ratio if evidence.is_lead else formatting.quantity(value, unit)

    (name, first), *others = ((_labelled(name, labels), value) for name, value in evidence.values)
    if evidence.level is not None:
        relation, limits = evidence.level
        mean = f"{name} {_with_interval(evidence, first, unit, limits)}"
        return f"{mean}, claimed {relation.replace('-', ' ')} {' and '.join(map(shown, limits))}"
    ((other, second),) = others
    joint = f" to {shown(second)}" if evidence.step is not None else f", {other} {shown(second)}"
    return f"{name} {shown(first)}{joint}, {_ratio(evidence.ratio, is_fixed=evidence.is_fixed)}"


def _with_interval(evidence: Evidence, mean: float, unit: str, limits: tuple[float, ...]) -> str:
    """A mean with the interval that decides, which values without a spread do not have."""
    found = evidence.interval
    if found is None or evidence.is_fixed or not math.isfinite(mean):
        return formatting.quantity(mean, unit)
    scale, name = formatting.scale_for([mean], unit)
    (limit, *others) = limits
    ends = (one / limit for one in (found.mean, found.low, found.high)) if limit > 0 and not others else ()
    significant = _digits_of(Interval(*ends)) if ends else 3
    shown = f"{formatting.digits(mean / scale, significant)} {name}".strip()
    return f"{shown} {formatting.bounds(found, scale, significant)}".rstrip()


def _ratio(ratio: Interval | None, *, is_fixed: bool) -> str:
    """The ratio with its interval, which values without a spread do not have."""
    if ratio is None or not math.isfinite(ratio.mean):
        return "no ratio (the second value is 0)"
    if is_fixed:
        return f"{formatting.TIMES}{formatting.digits(ratio.mean, _digits_of(ratio))}"
    significant = _digits_of(ratio)
    mean = formatting.digits(ratio.mean, significant)
    return f"{formatting.TIMES}{mean} {formatting.bounds(ratio, significant=significant)}".rstrip()


def _digits_of(ratio: Interval) -> int:
    """Returns the digits of a ratio: three, or enough to show that an interval near 1 excludes it.

    >>> from longfat.results.run import Interval
    >>> _digits_of(Interval(1.31, 1.2, 1.4)), _digits_of(Interval(1.0038, 1.0037, 1.0039))
    (3, 4)
    """
    distances = [abs(one - 1) for one in (ratio.mean, ratio.low, ratio.high)]
    is_on_a_side = ratio.low > 1 or ratio.high < 1
    least = min(distances)
    return max(3, min(9, 1 - math.floor(math.log10(least)))) if is_on_a_side and 0 < least < 0.005 else 3
