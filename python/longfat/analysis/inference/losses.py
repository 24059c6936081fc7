"""Loss of each link of a path, from the share of probes with replies from each router.

A probe has no reply if it or its reply is lost, or if the router limits its replies. Loss on the way to a
router also affects every router behind it, so the share of replies cannot grow along a path: a router that
replies less often than one behind it limits its replies and is left out. Differences between the others that
chance explains count as zero.

A round trip does not show the direction of a loss: the same loss is assumed in both directions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from longfat.analysis.inference.lines import Array, bounds
from longfat.analysis.inference.links import Link
from longfat.analysis.inference.samples import Router
from longfat.results import Interval

LIMITED = 0.01
"""A router that replies less often than a later one limits its replies if chance is less likely than this."""
CHANCE = 0.1
"""Two shares of replies differ if chance is less likely than this."""
_DRAWS = 4000
_SEED = 0x1055


@dataclass(frozen=True)
class LinkLoss(Interval):
    """Loss probability of a round trip over the links behind router `before` up to router `ttl`."""

    before: int
    ttl: int

    @property
    def each_way(self) -> float:
        """The loss of one direction, assuming the same loss in both."""
        return one_way(self.value)


@dataclass(frozen=True)
class _Block:
    """Neighbouring routers with a common share of replies; `first` is the TTL of the first one."""

    first: int
    last: int
    sent: int
    answered: int

    @property
    def share(self) -> float:
        return self.answered / self.sent

    def joined(self, other: _Block) -> _Block:
        return _Block(self.first, other.last, self.sent + other.sent, self.answered + other.answered)


def one_way(round_trip: float) -> float:
    """The loss of each direction, given the loss of the round trip.

    >>> round(one_way(1 - 0.98**2), 6)
    0.02
    """
    return 1 - math.sqrt(1 - min(max(round_trip, 0.0), 1.0))


def usable(routers: Sequence[Router], limited: Iterable[int] = ()) -> list[Router]:
    """Returns the routers that do not limit their replies: their unanswered probes were lost.

    Only echo replies are unlimited by default, so other replies from the routers in `limited` and from the
    end of the path do not count.
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
    """Returns the loss of the links between neighbouring `usable` routers, in order of distance."""
    random = np.random.default_rng(_SEED)
    steps = {block.first: block for block in _blocks(routers)}
    found: list[LinkLoss] = []
    before, kept, drawn = 0, 1.0, np.ones(_DRAWS)
    own = np.ones(_DRAWS)
    for router in routers:
        step = steps.get(router.ttl)
        if step is not None:
            share, now = step.share, _drawn(step.sent, step.answered, random)
            low, high = bounds(1 - now / drawn)
            found.append(LinkLoss(1 - share / kept, max(low, 0.0), max(high, 0.0), before, router.ttl))
            kept, drawn = share, now
            own = now
        else:
            # Equal to the previous router: only an upper bound.
            now = _drawn(router.sent, router.answered, random)
            high = bounds(1 - now / own)[1]
            found.append(LinkLoss(0.0, 0.0, max(high, 0.0), before, router.ttl))
            own = now
        before = router.ttl
    return tuple(found)


def by_link(links: Sequence[Link], found: Sequence[LinkLoss]) -> list[LinkLoss | None]:
    """Returns the loss of each link of a path; None if it is part of a later link's loss.

    A loss that spans several links counts for the last of them.
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
    return LinkLoss(value, low, high, parts[0].before, parts[-1].ttl)


def is_known(router: Router, absolute: float, relative: float) -> bool:
    """Whether the half-width of a router's loss is within `absolute` or within `relative` of the loss."""
    low, high = _unanswered(router.sent, router.answered)
    return (high - low) / 2 <= max(absolute, relative * router.loss)


def _unanswered(sent: int, answered: int) -> tuple[float, float]:
    """The 95 % interval of the share without reply, with the Jeffreys prior."""
    if not sent:
        return 0.0, 1.0
    shape = (sent - answered + 0.5, answered + 0.5)
    return float(special.betaincinv(*shape, 0.025)), float(special.betaincinv(*shape, 0.975))


def _blocks(routers: Sequence[Router]) -> list[_Block]:
    """Groups routers into blocks with falling shares; leaves out blocks without losses."""
    blocks: list[_Block] = []
    for router in routers:
        blocks.append(_Block(router.ttl, router.ttl, router.sent, router.answered))
        while len(blocks) > 1 and blocks[-1].share >= blocks[-2].share:
            last = blocks.pop()
            blocks[-1] = blocks[-1].joined(last)
    while len(blocks) > 1:
        chances = [
            _less((one.sent, one.answered), (two.sent, two.answered))
            for two, one in itertools.pairwise(blocks)
        ]
        likeliest = int(np.argmax(chances))
        if chances[likeliest] < CHANCE:
            break
        blocks[likeliest : likeliest + 2] = [blocks[likeliest].joined(blocks[likeliest + 1])]
    return [block for block in blocks if block.answered < block.sent]


def _chance(router: Router, later: Router) -> float:
    return _less((router.sent, router.answered), (later.sent, later.answered))


def _less(one: tuple[int, int], other: tuple[int, int]) -> float:
    """The probability of the smaller share of `one` by chance (Fisher's exact test)."""
    (sent, answered), (others, answered_too) = one, other
    total = answered + answered_too
    # The hypergeometric distribution of the answers among the first packets, given the total.
    counts = np.arange(max(0, total - others), answered + 1, dtype=np.float64)
    ways = _log_choices(sent, counts)
    ways += _log_choices(others, total - counts)
    ways -= _log_choices(sent + others, np.array([total], dtype=np.float64))
    return min(1.0, float(np.exp(ways).sum()))


def _log_choices(count: int, chosen: Array) -> Array:
    """The logarithm of the binomial coefficient."""
    found: Array = (
        special.gammaln(count + 1) - special.gammaln(chosen + 1) - special.gammaln(count - chosen + 1)
    )
    return found


def _drawn(sent: int, answered: int, random: np.random.Generator) -> Array:
    return random.beta(answered + 0.5, sent - answered + 0.5, _DRAWS)
