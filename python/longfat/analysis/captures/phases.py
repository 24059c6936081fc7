"""The phases of a transfer: a few long intervals with one limit each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from longfat.analysis.captures.explained import GROUPS

if TYPE_CHECKING:
    from longfat.analysis.captures.explained import Direction

MOST = 4
"""Maximum number of phases."""
LEAST = 0.05
"""Share of the time below which a phase is part of a neighbour."""


@dataclass(frozen=True)
class Phase:
    """A part of a transfer with one main limit; times in s since the first packet."""

    start: float
    end: float
    limit: str

    @property
    def time(self) -> float:
        """Duration in s."""
        return self.end - self.start


def phases(one: Direction) -> list[Phase]:
    """Returns the phases in order, without gaps.

    The shortest phase is merged with its neighbours until at most `MOST` remain, each with at least `LEAST`
    of the time. It gets the limit of the longer neighbour.
    """
    rows = one.document["intervals"]
    found = _joined([Phase(row["start_s"], row["end_s"], GROUPS[row["cause"]]) for row in rows])
    while len(found) > 1:
        place = min(range(len(found)), key=lambda place: found[place].time)
        total = found[-1].end - found[0].start
        if len(found) <= MOST and found[place].time >= LEAST * total:
            break
        neighbours = [other for other in (place - 1, place + 1) if 0 <= other < len(found)]
        longest = max(neighbours, key=lambda other: found[other].time)
        found[place] = replace(found[place], limit=found[longest].limit)
        found = _joined(found)
    return found


def _joined(parts: list[Phase]) -> list[Phase]:
    found: list[Phase] = []
    for part in parts:
        if found and found[-1].limit == part.limit:
            found[-1] = replace(found[-1], end=part.end)
        else:
            found.append(part)
    return found
