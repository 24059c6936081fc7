"""Queues of a path: the longest wait at each link and a lower bound of the queue's limit.

A probe that takes longer than the smallest round trip of its size waited in a queue. Waits add up along the
path, so the difference of two routers' longest waits is that of the link between them. Single probes do not
fill queues: without other traffic nothing waits, and a queue's limit is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from longfat.analysis.inference.links import BITS, Link
from longfat.analysis.inference.samples import Router

LONGEST = 0.95
"""The quantile of waits that counts as the longest; clocks and schedulers cause the few above it."""
FULL_PACKET = 1500
"""Bytes of a full packet."""
LEAST_SEEN = 2 * FULL_PACKET
"""Shorter waits, in bytes at the link's rate, are noise."""
LEAST_ASSUMED = 20 * FULL_PACKET
"""The smallest assumed queue limit in bytes."""


def waits(routers: Sequence[Router], links: Sequence[Link]) -> list[float]:
    """Returns the longest wait at each link in s, both directions together."""
    by_ttl = {router.ttl: _longest(router) for router in routers}
    found: list[float] = []
    before = 0.0
    for link in links:
        now = max(before, by_ttl.get(link.ttls[-1], 0.0))
        found.append(now - before)
        before = now
    return found


def queued_bytes(wait: float, rate: float) -> float | None:
    """Returns the bytes that a link of `rate` bit/s sends during a wait in s; None if that is noise.

    >>> queued_bytes(0.01, 10e6), queued_bytes(0.0001, 10e6)
    (12500.0, None)
    """
    found = wait * rate / BITS
    return found if found >= LEAST_SEEN else None


def assumed(rate: float, round_trip: float) -> float:
    """Returns the assumed queue limit in bytes: what the link sends in a round trip of the path.

    A queue of one bandwidth-delay product keeps the link of a Reno flow busy (Villamizar and Song, CCR 24(5),
    1994).

    >>> assumed(20e6, 0.04), assumed(20e6, 0.001)
    (100000.0, 30000.0)
    """
    return max(rate * round_trip / BITS, float(LEAST_ASSUMED))


def _longest(router: Router) -> float:
    trips = router.seconds()
    extra = [second - min(seconds) for seconds in trips.values() for second in seconds]
    return float(np.quantile(extra, LONGEST)) if extra else 0.0
