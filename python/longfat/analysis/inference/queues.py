"""Queues of a path: how long probes waited at each link, and how much a queue holds at least.

A probe that takes longer than the least round trip of its size waited in a queue. Waits add up along the
path, so the difference of two routers' longest waits is that of the link between them. Only other traffic
fills queues while single probes are sent: without it nothing waits, and a queue's limit is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from longfat.analysis.inference.links import BITS, Link
from longfat.analysis.inference.samples import Router

LONGEST = 0.95
"""The quantile of waits that counts as the longest: clocks and schedulers cause the few above it."""
FULL_PACKET = 1500
"""Bytes of a full packet."""
LEAST_SEEN = 2 * FULL_PACKET
"""Shorter waits, in bytes of the link's rate, are not told from noise."""
LEAST_ASSUMED = 20 * FULL_PACKET
"""No queue is assumed to hold fewer bytes."""


def waits(routers: Sequence[Router], links: Sequence[Link]) -> list[float]:
    """The longest wait at each link in s, there and back together."""
    by_ttl = {router.ttl: _longest(router) for router in routers}
    found: list[float] = []
    before = 0.0
    for link in links:
        now = max(before, by_ttl.get(link.ttls[-1], 0.0))
        found.append(now - before)
        before = now
    return found


def held(wait: float, rate: float) -> float | None:
    """The bytes that waited for so many seconds at a rate in bit/s; None where that is no more than noise.

    >>> held(0.01, 10e6), held(0.0001, 10e6)
    (12500.0, None)
    """
    found = wait * rate / BITS
    return found if found >= LEAST_SEEN else None


def assumed(rate: float, round_trip: float) -> float:
    """The bytes that a queue is assumed to hold: what its link sends in a round trip of the path.

    One bandwidth-delay product keeps the link of a Reno flow busy (Villamizar and Song, CCR 24(5), 1994).

    >>> assumed(20e6, 0.04), assumed(20e6, 0.001)
    (100000.0, 30000.0)
    """
    return max(rate * round_trip / BITS, float(LEAST_ASSUMED))


def _longest(router: Router) -> float:
    trips = router.seconds()
    extra = [second - min(seconds) for seconds in trips.values() for second in seconds]
    return float(np.quantile(extra, LONGEST)) if extra else 0.0
