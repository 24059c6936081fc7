"""The rates of the last link in both directions, from replies to UDP.

An echo returns every byte of the probe, so its round trip contains the sum of the last link's transmission
times in both directions. A host replies to UDP on a closed port with a quote of the same size for all large
packets (RFC 1812, section 4.3.2.3): the slope over those sizes is that of the forward direction, and the rest
of the echo's slope that of the reverse direction.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from longfat.analysis.inference.links import BITS, OTHER_S, Path
from longfat.analysis.inference.samples import Router
from longfat.results.run import Interval

ENOUGH = 4
"""Required UDP replies per size."""
UNSURE = 0.99
"""The quantile of the excess over the smallest round trip."""
_DRAWS = 2000
_SEED = 0x1A57


@dataclass(frozen=True)
class LastLink:
    """The rates of the last link in both directions.

    `path` contains them; `is_decided` is whether the replies suffice to separate them.
    """

    path: Path
    is_decided: bool
    is_asymmetric: bool


def separated(path: Path, end: Router, answers: Mapping[int, Sequence[float]]) -> LastLink:
    """Returns the path with separate rates for the two directions of the last link.

    `answers` are UDP round trips in s by size; the quotes for all these sizes have the same length.
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
    noise += math.sqrt(math.fsum(link.slope.half_width**2 for link in path.links))
    alike = last.slope.value
    if abs(there - alike) <= noise or abs(there - alike) * span <= OTHER_S:
        # Equal rates within the noise are decisive only if a different rate would be visible.
        return replace(undecided, is_decided=noise < alike / 2)
    back = max(2 * alike - there, 0.0)
    split = replace(
        last,
        slope=Interval(there, there - noise, there + noise),
        rate=Interval(BITS / there, BITS / (there + noise), BITS / (there - noise))
        if there > noise
        else None,
        rate_at_least=None if there > noise else BITS / max(there + noise, noise),
        reverse_rate=BITS / back if back > noise else None,
    )
    return LastLink(replace(path, links=(*path.links[:-1], split)), is_decided=True, is_asymmetric=True)


def _above_least(end: Router, count: int) -> float:
    """The usual maximum excess of the smallest of `count` round trips over the smallest of all."""
    random = np.random.default_rng(_SEED)
    trips = [np.asarray(seconds) for seconds in end.seconds().values() if len(seconds) > count]
    if not trips:
        return OTHER_S
    drawn = [random.choice(one, (_DRAWS // len(trips), count)).min(axis=1) - one.min() for one in trips]
    return float(np.quantile(np.concatenate(drawn), UNSURE))
