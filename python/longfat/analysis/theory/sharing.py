"""How flows that share links would share them fairly: max-min shares.

Sources: Bertsekas and Gallager, Data Networks (2nd ed.), section 6.5.2; Jain, Chiu and Hawe, A quantitative
measure of fairness and discrimination (DEC TR-301, 1984).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeVar

_Link = TypeVar("_Link")

NEARLY = 1e-12
"""What rounding leaves of a link that is full, relative to its capacity."""


def max_min(
    capacities: Mapping[_Link, float],
    routes: Sequence[Sequence[_Link]],
    demands: Sequence[float] | None = None,
) -> list[float]:
    """The max-min fair rate of each flow, by water-filling.

    All flows rise together; whoever crosses a link that is full, or has all it asks for, stays where it is
    (Bertsekas and Gallager, 6.5.2). Then no flow can have more without one that has less losing something.

    Args:
        capacities: The rate of each link.
        routes: The links that each flow crosses.
        demands: What each flow asks for at most; no limit where None.

    Returns:
        The flows' rates, infinite for one that crosses no link of a finite rate and asks for no limit.

    >>> max_min({"shared": 10.0, "thin": 2.0}, [["shared"], ["shared", "thin"], ["shared"]])
    [4.0, 2.0, 4.0]
    >>> max_min({"shared": 10.0}, [["shared"], ["shared"]], [3.0, math.inf])
    [3.0, 7.0]
    """
    asked = list(demands) if demands is not None else [math.inf] * len(routes)
    rates = [0.0] * len(routes)
    rising = {flow for flow in range(len(routes)) if asked[flow] > 0}
    left = {link: capacity for link, capacity in capacities.items() if math.isfinite(capacity)}
    level = 0.0
    while rising:
        crossing = {link: sum(link in routes[flow] for flow in rising) for link in left}
        room = min((left[link] / count for link, count in crossing.items() if count), default=math.inf)
        wish = min(asked[flow] for flow in rising) - level
        step = max(0.0, min(room, wish))
        if math.isinf(step):
            for flow in rising:
                rates[flow] = math.inf
            break
        level += step
        full = set()
        for link, count in crossing.items():
            left[link] -= step * count
            if count and left[link] <= NEARLY * capacities[link]:
                full.add(link)
        for flow in rising:
            rates[flow] = level
        rising = {
            flow
            for flow in rising
            if asked[flow] > level * (1 + NEARLY) and not any(link in full for link in routes[flow])
        }
    return rates


def jain(rates: Sequence[float]) -> float:
    """Jain's index of fairness: 1 where all have the same, 1 / n where one has all.

    >>> jain([1, 1, 1, 1]), jain([1, 0, 0, 0])
    (1.0, 0.25)
    """
    squares = sum(rate * rate for rate in rates)
    return sum(rates) ** 2 / (len(rates) * squares) if squares else math.nan
