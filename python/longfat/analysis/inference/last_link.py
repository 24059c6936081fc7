"""The last link's rates there and back, from answers to UDP.

An echo returns every byte of the probe, so its round trip contains the last link's sending times there and
back in one sum. A host answers UDP to a closed port with a quote of one size for all large packets (RFC 1812,
section 4.3.2.3): the slope over those sizes belongs to the way there, and the rest of the echo's slope to the
way back.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from longfat.analysis.inference.links import BITS, OTHER_S, Interval, Path
from longfat.analysis.inference.samples import Router

ENOUGH = 4
"""Answers to UDP of each size."""
UNSURE = 0.99
"""The quantile of what so few answers may be above the least round trip."""
_DRAWS = 2000
_SEED = 0x1A57


@dataclass(frozen=True)
class LastLink:
    """What is known of the last link's two rates.

    `is_decided` says whether they were told apart; `path` has them.
    """

    path: Path
    is_decided: bool
    is_asymmetric: bool


def separated(path: Path, end: Router, answers: Mapping[int, Sequence[float]]) -> LastLink:
    """The path with the last link's rates told apart.

    `answers` are UDP round trips in s by size; quotes of all these sizes are equally large.
    """
    undecided = LastLink(path, is_decided=False, is_asymmetric=False)
    enough = sorted(size for size, seconds in answers.items() if len(seconds) >= ENOUGH)
    if not path.links or path.links[-1].ttls[-1] != end.ttl or len(enough) < 2:
        return undecided
    small, large = enough[0], enough[-1]
    last, span = path.links[-1], large - small
    there = (min(answers[large]) - min(answers[small])) / span
    there -= math.fsum(link.slope.value for link in path.links[:-1])
    noise = sum(_above_least(end, len(answers[size])) for size in (small, large)) / span
    noise += math.sqrt(math.fsum(_half(link.slope) ** 2 for link in path.links))
    alike = last.slope.value
    if abs(there - alike) <= noise or abs(there - alike) * span <= OTHER_S:
        # Alike within the noise decides only where another rate would have shown.
        return replace(undecided, is_decided=noise < alike / 2)
    back = max(2 * alike - there, 0.0)
    told = replace(
        last,
        slope=Interval(there, there - noise, there + noise),
        rate=Interval(BITS / there, BITS / (there + noise), BITS / (there - noise))
        if there > noise
        else None,
        rate_at_least=None if there > noise else BITS / max(there + noise, noise),
        reverse_rate=BITS / back if back > noise else None,
    )
    return LastLink(replace(path, links=(*path.links[:-1], told)), is_decided=True, is_asymmetric=True)


def _above_least(end: Router, count: int) -> float:
    """How much the least of so many round trips is above the least of all, at most as a rule."""
    random = np.random.default_rng(_SEED)
    trips = [np.asarray(seconds) for seconds in end.seconds().values() if len(seconds) > count]
    if not trips:
        return OTHER_S
    drawn = [random.choice(one, (_DRAWS // len(trips), count)).min(axis=1) - one.min() for one in trips]
    return float(np.quantile(np.concatenate(drawn), UNSURE))


def _half(interval: Interval) -> float:
    return (interval.high - interval.low) / 2
