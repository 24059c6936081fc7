"""The maximum rate that links in series deliver."""

from __future__ import annotations

import math
from collections.abc import Iterable


def deliverable(links: Iterable[tuple[float, float]]) -> float:
    """Returns the maximum rate at the far end of links in series, in the unit of their rates.

    `links` are pairs of rate and loss. A link loses packets before they join its queue, so a lost packet
    takes no time on it, and with enough arrivals the link is always busy. Only losses on later links reduce
    its output: the result is the minimum over links of the rate times the product of 1 - loss of later links.

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
