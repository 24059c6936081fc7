"""What links in a row deliver at most."""

from __future__ import annotations

import math
from collections.abc import Iterable


def deliverable(links: Iterable[tuple[float, float]]) -> float:
    """The most that reaches the far end of links in a row, in the unit of their rates.

    Each link is its rate and the share of packets that it loses. A link loses packets before they join its
    queue, so a lost packet takes no time on it: with enough arrivals the link is busy whatever it loses. Only
    the links behind it take from what it sends: the least over links of rate times the product of 1 - loss
    of those behind.

    >>> deliverable([(100.0, 0.1)])
    100.0
    >>> deliverable([(100.0, 0.1), (200.0, 0.2)])
    80.0
    """
    most, passed = math.inf, 1.0
    for rate, loss in reversed(list(links)):
        most = min(most, rate * passed)
        passed *= 1 - loss
    return most
