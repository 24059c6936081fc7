"""The workload of a captured sender: a file, or requests with the pauses of both applications."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from longfat.analysis.captures.explained import Direction

_MOST_EXCHANGES = 1000
"""Groups of objects of a workload."""


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
