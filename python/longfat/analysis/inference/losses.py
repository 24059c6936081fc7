"""Loss of each link of a path, from the share of probes that each router answered.

A probe is unanswered if it or its answer was lost, or if the router limits its answers. Loss on the way to a
router also affects every router behind it, so the share of answers cannot grow along a path: a router that
answers less often than one behind it limits its answers and is left out. Differences between the others that
chance explains count as none.

A round trip does not show on which way a packet was lost: half of the loss is assumed on each.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from longfat.analysis.inference.lines import Array, bounds
from longfat.analysis.inference.links import Link
from longfat.analysis.inference.samples import Router

LIMITED = 0.01
"""A router that answers less often than a later one limits its answers if chance explains it less likely."""
CHANCE = 0.1
"""Two shares of answers are different if chance explains the difference less likely."""
_DRAWS = 4000
_SEED = 0x1055


@dataclass(frozen=True)
class LinkLoss:
    """Loss of the links behind router `before` up to router `ttl`, there and back together.

    Probabilities of a round trip: the figure and its interval of 95 % confidence.
    """

    before: int
    ttl: int
    value: float
    low: float
    high: float

    @property
    def each_way(self) -> float:
        """The loss of one way, with the same loss assumed there and back."""
        return one_way(self.value)


@dataclass(frozen=True)
class _Block:
    """Neighbouring routers with one share of answers; `first` is the time to live of the first one."""

    first: int
    last: int
    asked: int
    answered: int

    @property
    def share(self) -> float:
        return self.answered / self.asked

    def joined(self, other: _Block) -> _Block:
        return _Block(self.first, other.last, self.asked + other.asked, self.answered + other.answered)


def one_way(round_trip: float) -> float:
    """The loss of each way that together have the loss of a round trip.

    >>> round(one_way(1 - 0.98**2), 6)
    0.02
    """
    return 1 - math.sqrt(1 - min(max(round_trip, 0.0), 1.0))


def usable(routers: Sequence[Router], limited: Iterable[int] = ()) -> list[Router]:
    """The routers whose unanswered probes were lost: those that do not limit their answers.

    Only echo replies are never limited by default, so that other answers of the routers in `limited`, and of
    the end of the path, do not count.
    """
    left_out = set(limited)
    kept = [
        router
        for router in routers
        if router.answered and (router.is_echo or not (router.is_end or router.ttl in left_out))
    ]
    return [
        router
        for number, router in enumerate(kept)
        if all(_chance(router, later) >= LIMITED for later in kept[number + 1 :])
    ]


def losses(routers: Sequence[Router]) -> tuple[LinkLoss, ...]:
    """Loss of the links between neighbours of `usable` routers, in order from here."""
    random = np.random.default_rng(_SEED)
    steps = {block.first: block for block in _blocks(routers)}
    found: list[LinkLoss] = []
    before, kept, drawn = 0, 1.0, np.ones(_DRAWS)
    own = np.ones(_DRAWS)
    for router in routers:
        step = steps.get(router.ttl)
        if step is not None:
            share, now = step.share, _drawn(step.asked, step.answered, random)
            low, high = bounds(1 - now / drawn)
            found.append(LinkLoss(before, router.ttl, 1 - share / kept, max(low, 0.0), max(high, 0.0)))
            kept, drawn = share, now
            own = now
        else:
            # No difference to the router before: what there may be nevertheless.
            now = _drawn(router.asked, router.answered, random)
            high = bounds(1 - now / own)[1]
            found.append(LinkLoss(before, router.ttl, 0.0, 0.0, max(high, 0.0)))
            own = now
        before = router.ttl
    return tuple(found)


def by_link(links: Sequence[Link], found: Sequence[LinkLoss]) -> list[LinkLoss | None]:
    """The loss of each link of a path; None where it is part of a later link's.

    A loss that routers on both sides of several links bound counts for the last of them.
    """
    parts: list[list[LinkLoss]] = [[] for _ in links]
    for loss in found:
        behind = (number for number, link in enumerate(links) if link.ttls[-1] >= loss.ttl)
        if links:
            parts[next(behind, len(links) - 1)].append(loss)
    return [_together(part) if part else None for part in parts]


def _together(parts: Sequence[LinkLoss]) -> LinkLoss:
    value, low, high = (
        1 - math.prod(1 - getattr(part, name) for part in parts) for name in ("value", "low", "high")
    )
    return LinkLoss(parts[0].before, parts[-1].ttl, value, low, high)


def is_known(router: Router, absolute: float, relative: float) -> bool:
    """Whether half of the interval of a router's loss is within `absolute`, or that share of the loss."""
    low, high = _unanswered(router.asked, router.answered)
    return (high - low) / 2 <= max(absolute, relative * router.loss)


def _unanswered(asked: int, answered: int) -> tuple[float, float]:
    """95 % confidence by the prior of Jeffreys."""
    if not asked:
        return 0.0, 1.0
    shape = (asked - answered + 0.5, answered + 0.5)
    return float(stats.beta.ppf(0.025, *shape)), float(stats.beta.ppf(0.975, *shape))


def _blocks(routers: Sequence[Router]) -> list[_Block]:
    """Routers as blocks of falling shares; none for those of which every probe came back."""
    blocks: list[_Block] = []
    for router in routers:
        blocks.append(_Block(router.ttl, router.ttl, router.asked, router.answered))
        while len(blocks) > 1 and blocks[-1].share >= blocks[-2].share:
            last = blocks.pop()
            blocks[-1] = blocks[-1].joined(last)
    while len(blocks) > 1:
        chances = [
            _less((one.asked, one.answered), (two.asked, two.answered))
            for two, one in itertools.pairwise(blocks)
        ]
        likeliest = int(np.argmax(chances))
        if chances[likeliest] < CHANCE:
            break
        blocks[likeliest : likeliest + 2] = [blocks[likeliest].joined(blocks[likeliest + 1])]
    return [block for block in blocks if block.answered < block.asked]


def _chance(router: Router, later: Router) -> float:
    return _less((router.asked, router.answered), (later.asked, later.answered))


def _less(one: tuple[int, int], other: tuple[int, int]) -> float:
    """How likely `one` has so much smaller a share of answers by chance (Fisher's exact test)."""
    (asked, answered), (others, answered_too) = one, other
    return float(stats.hypergeom.cdf(answered, asked + others, answered + answered_too, asked))


def _drawn(asked: int, answered: int, random: np.random.Generator) -> Array:
    return random.beta(answered + 0.5, asked - answered + 0.5, _DRAWS)
