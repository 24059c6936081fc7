"""The workload of a captured sender: a file, or requests with the pauses of both applications."""

from __future__ import annotations

from itertools import pairwise
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from longfat.analysis.captures.explained import Direction

_MOST_EXCHANGES = 1000
"""Groups of objects of a workload."""
_LEAST_WRITES = 10
_MOST_ANSWERS = 2
"""Data of the peer at the start and at the end, such as a confirmation."""
_STEADY = 0.02
"""Share of the interval between writes by which one differs on average, at most, if they are regular."""


def workload(one: Direction) -> dict[str, Any] | None:
    """Returns the workload of a direction, whose sender opens the connection. None for too many exchanges.

    What the sender sends until the peer answers is a request; so is what it sends after a silence, with an
    answer of one byte. Pauses of the sender are those between an answer and the next request, and pauses of
    the peer the work of a server.
    """
    turns = one.connection["turns"]
    if turns is None:
        return None
    exchanges: list[dict[str, Any]] = []
    for turn in turns:
        is_own = turn["is_client"] == one.is_client
        if is_own:
            exchanges.append({"request": turn["bytes"], "pause": turn["pause_s"], "size": 0, "work": 0.0})
        elif exchanges:
            # More data after a silence of the peer belongs to its answer.
            exchanges[-1]["work"] += turn["pause_s"]
            exchanges[-1]["size"] += turn["bytes"]
    if len(exchanges) <= 1:
        return {"kind": "file", "size": f"{one.bytes}B"}
    if len(exchanges) > _MOST_EXCHANGES:
        return None
    # The data of this sender ends with its last request, whatever the peer does then.
    exchanges[-1] |= {"size": 0, "work": 0.0}
    objects = [
        {
            "request": f"{exchange['request']}B",
            "size": f"{max(exchange['size'], 1)}B",
            "work": f"{exchange['work'] * 1e3:.6g}ms",
            **({"after": number - 1, "pause": f"{exchange['pause'] * 1e3:.6g}ms"} if number else {}),
        }
        for number, exchange in enumerate(exchanges)
    ]
    return {"kind": "web-page", "objects": objects}


def writing_interval_s(one: Direction) -> float | None:
    """Returns the time between the writes of a sender that has no answers and writes regularly; else None.

    It does not wait for the network, although each write may end before the next one.
    """
    turns = one.connection["turns"] or []
    own = [turn for turn in turns if turn["is_client"] == one.is_client]
    if len(own) < _LEAST_WRITES or len(turns) - len(own) > _MOST_ANSWERS:
        return None
    intervals = [later["start_s"] - turn["start_s"] for turn, later in pairwise(own)]
    interval = median(intervals)
    # A write that follows an acknowledgement at once belongs to the turn before: there are several intervals.
    spread = fmean(abs(each - interval * round(each / interval)) for each in intervals)
    return interval if spread < _STEADY * interval else None
