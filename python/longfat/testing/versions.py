"""Comparison of two versions of a program by interleaved measurements, which ends when it is decided."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from longfat.results.run import Interval

CONFIDENCE = 0.99
"""Confidence of a decision, whenever the comparison ends."""
FIRST = 12
"""Pairs of measurements at the first look; each further look has half as many again."""
MOST = 200

Better = Literal["higher", "lower"]
Outcome = Literal["no worse", "worse", "undecided"]


class UndecidedComparisonWarning(UserWarning):
    """A comparison of versions whose measurements vary too much for its margin."""


@dataclass(frozen=True)
class VersionComparison:
    """The measurements of both versions in pairs, and their typical ratio new / old at the last look."""

    outcome: Outcome
    new: tuple[float, ...]
    old: tuple[float, ...]
    ratio: Interval

    def __str__(self) -> str:
        new, old = (f"{median(values):.4g}" for values in (self.new, self.old))
        interval = f"new / old {self.ratio.value:.3f} [{self.ratio.low:.3f}, {self.ratio.high:.3f}]"
        return f"new {new}, old {old}, {interval} (n = {len(self.new)} pairs)"


def compare_versions(
    new: Callable[[int], float],
    old: Callable[[int], float],
    better: Better,
    *,
    by: str = "5%",
    most: int = MOST,
) -> VersionComparison:
    """Measures two versions in turns until it is clear whether the new one is worse by more than a margin.

    Each pair measures both versions, one pair the old one first and the next the new one, so that a drift of
    the machine affects both alike. The ratio new / old is the typical one of a pair, which a few disturbed
    measurements hardly change (`longfat.analysis.signed_ranks`). Its interval is looked at after 12, 18, 27,
    ... pairs (`longfat.analysis.looks`) and after the last, which has half of the errors; they sum to 1 %.

    The new version is "worse" if an interval is beyond the margin; after the last pair, also if the ratio is
    beyond the margin and the interval excludes 1. It is "no worse" if an interval is within the margin.
    All intervals together include the true ratio with 99 %. A version that is as good as the old one is only
    "worse" if one of them excludes 1 on this side: in at most 0.5 % of comparisons, however its measurements
    are distributed.

    Args:
        new: Measures the new version once: a positive number, such as goodput or a percentile of the delay.
            It is called with the number of the pair, 1 or more: as seed of a relay, it gives both versions of
            a pair the same losses, which makes their ratio more precise.
        old: Measures the old version once.
        better: Whether "higher" or "lower" values are better.
        by: The margin: a change for the worse up to this is no reason to fail.
        most: Limit of pairs. If none of the rules has decided after it, the outcome is "undecided".

    Raises:
        ValueError: for a measurement that is not a positive number, a wrong margin, or fewer than 12 pairs.

    >>> goodputs = iter([100.0, 89.0, 91.0, 101.0, 99.0, 90.0, 88.0, 100.0, 101.0, 90.0, 91.0, 99.0] * 2)
    >>> print(compare_versions(lambda pair: next(goodputs), lambda pair: next(goodputs), "higher"))
    new 90, old 100, new / old 0.899 [0.885, 0.914] (n = 12 pairs)
    """
    from longfat.analysis.looks import confidence, looks
    from longfat.analysis.signed_ranks import ratio_of_pairs
    from longfat.study.units import proportion

    margin = proportion(by)
    if not 0 <= margin < 1:
        raise ValueError(f"by: {by} is out of range: at least 0%, below 100%")
    if most < FIRST:
        raise ValueError(f"most: {most} is out of range: at least {FIRST}")
    if better not in ("higher", "lower"):
        raise ValueError(f'better: "{better}" must be "higher" or "lower"')
    values: dict[str, list[float]] = {"new": [], "old": []}
    outcome: Outcome = "undecided"
    for look in looks(FIRST):
        pairs = min(look, most)
        while (pairs_before := len(values["old"])) < pairs:
            turns = [("old", old), ("new", new)]
            for name, measure in turns if pairs_before % 2 == 0 else reversed(turns):
                values[name].append(_positive(name, measure(pairs_before + 1)))
        is_last = pairs == most
        together = (1 + CONFIDENCE) / 2
        of_look = together if is_last else confidence(pairs, FIRST, together)
        found = ratio_of_pairs(values["new"], values["old"], of_look)
        outcome = _outcome(found, better, margin, is_last=is_last)
        if outcome != "undecided" or is_last:
            break
    return VersionComparison(outcome, tuple(values["new"]), tuple(values["old"]), found)


def _outcome(ratio: Interval, better: Better, margin: float, *, is_last: bool) -> Outcome:
    """Returns the decision at a look."""
    sign = 1 if better == "higher" else -1
    limit = 1 - sign * margin
    best, worst = (ratio.high, ratio.low)[::sign]
    if sign * (worst - limit) >= 0:
        return "no worse"
    is_beyond = sign * (best - limit) < 0
    is_probably_beyond = sign * (ratio.value - limit) < 0 and sign * (best - 1) < 0
    return "worse" if is_beyond or (is_last and is_probably_beyond) else "undecided"


def assert_no_worse(
    new: Callable[[int], float],
    old: Callable[[int], float],
    better: Better,
    what: str = "the measurement",
    *,
    by: str = "5%",
    most: int = MOST,
) -> VersionComparison:
    """Asserts that a new version is not worse than an old one by more than a margin; see `compare_versions`.

    If `most` pairs decide nothing, it warns and does not fail, so that a noisy machine causes no false alarm:
    with pytest's `-W error::longfat.testing.UndecidedComparisonWarning`, this fails, too.

    Args:
        new: Measures the new version once.
        old: Measures the old version once.
        better: Whether "higher" or "lower" values are better.
        what: The measured quantity, for messages.
        by: The margin.
        most: Limit of pairs.

    Raises:
        AssertionError: if the new version is worse.
        ValueError: as `compare_versions`.
    """
    found = compare_versions(new, old, better, by=by, most=most)
    if found.outcome == "worse":
        raise AssertionError(f"{what} of the new version is worse by more than {by}: {found}")
    if found.outcome == "undecided":
        message = f"{what}: {found} is too uncertain for a margin of {by}; raise `most`"
        warnings.warn(message, UndecidedComparisonWarning, stacklevel=2)
    return found


def _positive(name: str, value: float) -> float:
    if not (value > 0 and math.isfinite(value)):
        raise ValueError(f"{name}: measured {value!r}; it must be a positive number")
    return float(value)
