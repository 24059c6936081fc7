"""Stream positions of a trial's events: counted from the first byte, without wrapping."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

Event = Mapping[str, Any]
Unit = Literal["B", "packets"]


class _Space:
    """The sequence numbers of one direction, which wrap at 2^32 (RFC 9293, section 3.4)."""

    def __init__(self) -> None:
        self.base: int | None = None
        self.latest = 0

    def at(self, number: int) -> int:
        """Returns the position for a sequence number: the closest one to the latest position."""
        ahead = (number - (self.base or 0) - self.latest + 2**31) % 2**32 - 2**31
        return self.latest + ahead

    def learn(self, event: Event) -> int:
        """Returns the position of a departing segment."""
        if self.base is None:
            # A SYN occupies one number (RFC 9293, section 3.4); the stream starts after it.
            self.base = event["sequence"] + int(event["frame"] in ("syn", "syn-ack"))
        position = self.at(event["sequence"])
        self.latest = max(self.latest, position)
        return position


def positions(events: Iterable[Event]) -> tuple[Unit, list[Event]]:
    """Returns one flow's events with positions instead of sequence numbers, and the unit of positions.

    Protocols that number packets already use positions. In TCP, the SYN is at -1 and the first byte at 0.
    """
    listed = list(events)
    if not any(event.get("frame") == "syn" for event in listed):
        return "packets", listed
    spaces = {"forward": _Space(), "reverse": _Space()}
    return "B", [_positioned(event, spaces) for event in listed]


def _positioned(event: Event, spaces: Mapping[str, _Space]) -> Event:
    if "sequence" not in event:
        return event
    forward = event["direction"] == "forward"
    own, peer = (spaces["forward" if forward == to else "reverse"] for to in (True, False))
    placed = {**event, "sequence": own.learn(event)}
    if "acknowledgement" in event and peer.base is not None:
        placed["acknowledgement"] = peer.at(event["acknowledgement"])
        if event.get("sack"):
            placed["sack"] = [(peer.at(low), peer.at(high)) for low, high in event["sack"]]
    else:
        placed.pop("acknowledgement", None)
    return placed


def data_range(event: Event, unit: Unit) -> tuple[int, int] | None:
    """Returns the positions of a packet's data, [low, high); None without data."""
    length = event.get("length", 0) if unit == "B" else int(event.get("frame") == "data")
    return (event["sequence"], event["sequence"] + length) if length else None


def joined(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Sorts and merges half-open ranges.

    >>> joined([(5, 9), (0, 2), (2, 3), (6, 7)])
    [(0, 3), (5, 9)]
    """
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return found
