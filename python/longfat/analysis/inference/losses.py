"""Loss of each link of a path, from the share of probes with replies from each router.

A probe has no reply if it or its reply is lost, or if the router limits its replies. Loss on the way to a
router also affects every router behind it, so the share of replies cannot grow along a path: a router that
replies less often than one behind it limits its replies and is left out. Differences between the others that
chance explains count as one loss, on the link that fits best. If the replies fit several links, the loss is
that of these links together.

A round trip does not show the direction of a loss: the same loss is assumed in both directions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from longfat.analysis.inference.lines import Array, bounds
from longfat.analysis.inference.links import Link
from longfat.analysis.inference.samples import Router
from longfat.results.run import Interval

LIMITED = 0.01
"""A router that replies less often than a later one limits its replies if chance is less likely than this."""
CHANCE = 0.1
"""Two shares of replies differ if chance is less likely than this."""
PLAUSIBLE = 1.92
"""A link may be the one that loses up to this distance in log-likelihood from the best one: half of the 95 %
quantile of chi-squared with one degree of freedom (Wilks, Annals of Mathematical Statistics 9, 1938)."""
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
    """Neighbouring routers whose shares of replies differ by chance only."""

    routers: tuple[Router, ...]

    @property
    def sent(self) -> int:
        return sum(router.sent for router in self.routers)

    @property
    def answered(self) -> int:
        return sum(router.answered for router in self.routers)

    @property
    def share(self) -> float:
        return self.answered / self.sent

    def joined(self, other: _Block) -> _Block:
        return _Block((*self.routers, *other.routers))

    def since(self, number: int) -> _Block:
        """Returns the part from a router on."""
        return _Block(self.routers[number:])


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
    """Returns the loss of the links between neighbouring `usable` routers, in order of distance.

    Links that cannot be told apart are one loss, from `before` of the first to `ttl` of the last.
    """
    random = np.random.default_rng(_SEED)
    found: list[LinkLoss] = []
    before, kept, level = 0, 1.0, np.ones(_DRAWS)
    own = level
    for block in _blocks(routers):
        first, last = _location(block, kept)
        for number, router in enumerate(block.routers):
            now = _drawn(router.sent, router.answered, random)
            if first <= number < last:
                continue
            if number == last:
                behind = block.since(last)
                drawn = _drawn(behind.sent, behind.answered, random)
                low, high = bounds(1 - drawn / level)
                # Later routers may miss more replies than this one, because later links lose packets, too.
                low = min(low, bounds(1 - now / level)[0])
                value = max(1 - behind.share / kept, 0.0)
                found.append(LinkLoss(value, max(low, 0.0), max(high, 0.0), before, router.ttl))
                kept, level, own = behind.share, drawn, drawn
            else:
                # Equal to the previous router: only an upper bound.
                high = bounds(1 - now / own)[1]
                found.append(LinkLoss(0.0, 0.0, max(high, 0.0), before, router.ttl))
                own = now
            before = router.ttl
    return tuple(found)


def _location(block: _Block, level: float) -> tuple[int, int]:
    """Returns the first and the last router of a block whose link may be the one that loses.

    `level` is the share of replies before the block. A block without a loss has the number of its routers.
    """
    if block.answered == block.sent:
        return len(block.routers), len(block.routers)
    fits = [
        sum(_fit(router, level) for router in block.routers[:number])
        + sum(_fit(router, block.since(number).share) for router in block.routers[number:])
        for number in range(len(block.routers))
    ]
    plausible = [number for number, fit in enumerate(fits) if fit >= max(fits) - PLAUSIBLE]
    return plausible[0], plausible[-1]


def _fit(router: Router, share: float) -> float:
    """Returns the log-likelihood of a router's replies, without the binomial coefficient."""
    lost = router.sent - router.answered
    return float(special.xlogy(router.answered, share) + special.xlogy(lost, 1 - share))


def by_link(links: Sequence[Link], found: Sequence[LinkLoss]) -> list[LinkLoss | None]:
    """Returns the loss of each link of a path; None if it is unknown or part of a later link's loss.

    The loss of several links together is at the last of them.
    """
    parts: list[list[LinkLoss]] = [[] for _ in links]
    for loss in found:
        behind = (number for number, link in enumerate(links) if link.ttls[-1] >= loss.ttl)
        if links:
            parts[next(behind, len(links) - 1)].append(loss)
    return [(part[0] if len(part) == 1 else _together(part)) if part else None for part in parts]


def is_shared(link: Mapping[str, Any]) -> bool:
    """Whether the loss of a link is that of earlier links together with it.

    `link` has the times to live `ttls` of its routers, and `loss_ttls` of the first and the last link with
    this loss, if it has one.
    """
    lossy = link.get("loss_ttls")
    return lossy is not None and bool(lossy[0] < link["ttls"][0])


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
    """Groups routers into blocks with falling shares."""
    blocks: list[_Block] = []
    for router in routers:
        blocks.append(_Block((router,)))
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
    return blocks


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
