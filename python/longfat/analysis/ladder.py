"""Time-sequence (ladder) diagrams: what one trial sent, what was lost, and what its protocol did about it.

This module reads a trial's events into flights and marks and cuts out the part to be shown;
`ladder_svg` and `ladder_text` draw it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

from longfat.analysis.prediction import ARQ_HEADER, UDP_IPV4

Host = Literal["sender", "receiver"]
MarkKind = Literal["timeout", "delivered", "kept", "discarded"]

PACKETS = 44
"""Packets that a diagram shows unless asked otherwise: a loss and what follows it."""
BEFORE = 5
"""Packets of these that left before the first loss."""


@dataclass(frozen=True)
class Flight:
    """One packet: its number in the trial, when it left and what became of it.

    Times in s; `again` marks a retransmission. A packet that was duplicated arrives more than once.
    """

    number: int
    frame: str
    sequence: int
    acknowledgement: int
    sack: tuple[tuple[int, int], ...]
    again: bool
    forward: bool
    sent: float
    arrived: tuple[float, ...] = ()
    dropped: float | None = None
    reason: str = ""

    @property
    def end(self) -> float:
        """When it last arrived, was dropped, or (where the trace ends before) left."""
        return max((*self.arrived, self.dropped or self.sent))

    @property
    def label(self) -> str:
        """What it is, as short as a diagram needs: `data 7`, `ack 8 +10-12`, `open`."""
        if self.frame == "data":
            return f"data {self.sequence}"
        if self.frame in ("ack", "update"):
            kept = ", ".join(spelled(a, b - 1) for a, b in sorted(self.sack))
            return f"ack {self.acknowledgement}" + (f" +{kept}" if kept else "")
        return self.frame


@dataclass(frozen=True)
class Mark:
    """Something that happened at a host: a timeout, data delivered in order, kept for later or discarded.

    `packet` is the number of the packet whose arrival caused it, None for a timeout; `data` are the data
    packets that it concerns.
    """

    time: float
    host: Host
    kind: MarkKind
    text: str
    packet: int | None = None
    data: tuple[int, ...] = ()


@dataclass(frozen=True)
class Ladder:
    """A trial, or a part of it, in order of time. `more` counts the packets that left after those shown."""

    flights: tuple[Flight, ...]
    marks: tuple[Mark, ...]
    more: int = 0


def spelled(first: int, last: int) -> str:
    """A range of packets as people write it.

    >>> spelled(3, 3), spelled(3, 7)
    ('3', '3-7')
    """
    return str(first) if first == last else f"{first}-{last}"


def read(events: Iterable[Mapping[str, Any]]) -> Ladder:
    """The whole of a trial's events."""
    listed = list(events)
    flights: dict[int, Flight] = {}
    for event in listed:
        what = event["what"]
        if what == "send":
            flights[event["id"]] = _flight(event)
        elif what in ("receive", "drop") and event["id"] in flights:
            flight = flights[event["id"]]
            if what == "receive":
                flight = replace(flight, arrived=(*flight.arrived, event["time"]))
            else:
                flight = replace(flight, dropped=event["time"], reason=event.get("reason", ""))
            flights[event["id"]] = flight
    marks = sorted([*_timeouts(listed), *_arrivals(listed)], key=lambda mark: mark.time)
    return Ladder(tuple(sorted(flights.values(), key=lambda flight: flight.sent)), tuple(marks))


def _flight(event: Mapping[str, Any]) -> Flight:
    return Flight(
        number=event["id"],
        frame=event["frame"],
        sequence=event["sequence"],
        acknowledgement=event["acknowledgement"],
        sack=tuple((a, b) for a, b in event.get("sack", ())),
        again=bool(event.get("retransmission")),
        forward=event["direction"] == "forward",
        sent=event["time"],
    )


def _timeouts(events: Sequence[Mapping[str, Any]]) -> Iterable[Mark]:
    for event in events:
        if event["what"] != "timeout":
            continue
        again = [
            other["sequence"]
            for other in events
            if other["what"] == "send"
            and other.get("retransmission")
            and other["time"] == event["time"]
            and other["host"] == event["host"]
            and other["frame"] == "data"
        ]
        text = "timeout" + (f": {_ranges(again)} again" if again else "")
        yield Mark(event["time"], event["host"], "timeout", text)


def _ranges(numbers: Iterable[int]) -> str:
    ordered = sorted(set(numbers))
    starts = [
        n for n, before in zip(ordered, [None, *ordered], strict=False) if before is None or n != before + 1
    ]
    ends = [n for n, after in pairwise([*ordered, None]) if after is None or after != (n or 0) + 1]
    return ", ".join(spelled(a, b or a) for a, b in zip(starts, ends, strict=True))


def _arrivals(events: Sequence[Mapping[str, Any]]) -> Iterable[Mark]:
    """What the receiver did with each data packet: the bytes it has delivered tell how far it got."""
    lengths = {
        event["sequence"]: event["size"] - ARQ_HEADER - UDP_IPV4
        for event in events
        if event["what"] == "send" and event["frame"] == "data"
    }
    # A receiver that keeps what comes out of order says so in its ACKs.
    keeps = any(event.get("sack") for event in events)
    # Packets that arrive at one time all come before what is delivered then.
    read: dict[float, int] = {}
    for event in events:
        if event["what"] == "deliver" and event["host"] == "receiver":
            read[event["time"]] = max(read.get(event["time"], 0), event["delivered"])
    kept: set[int] = set()
    next_in_order, bytes_in_order = 0, 0
    for event in events:
        if event["what"] != "receive" or event.get("frame") != "data":
            continue
        number, first = event["sequence"], next_in_order
        limit = read.get(event["time"], 0)
        while next_in_order == number or next_in_order in kept:
            if bytes_in_order + lengths[next_in_order] > limit:
                break
            bytes_in_order += lengths[next_in_order]
            next_in_order += 1
        concerned = tuple(range(first, next_in_order)) or (number,)
        kind: MarkKind
        if next_in_order > first:
            kind, template = "delivered", "delivers {}"
        elif keeps and number > next_in_order:
            kind, template = "kept", "keeps {}"
            kept.add(number)
        else:
            kind, template = "discarded", "has {} already" if number < next_in_order else "discards {}"
        text = template.format(_ranges(concerned))
        yield Mark(event["time"], "receiver", kind, text, event["id"], concerned)


def together(marks: Iterable[Mark]) -> list[Mark]:
    """Marks as a drawing to scale has room for them: one for all of a kind at one time and host."""
    groups: dict[tuple[float, Host, MarkKind], list[Mark]] = {}
    for mark in marks:
        groups.setdefault((mark.time, mark.host, mark.kind), []).append(mark)
    merged = []
    for group in groups.values():
        first, data = group[0], tuple(number for mark in group for number in mark.data)
        if len(group) > 1 and data:
            verb = first.text.partition(" ")[0]
            told = f"{verb} {_ranges(data)}" + (" already" if verb == "has" else "")
            first = replace(first, text=told, packet=None, data=data)
        merged.append(first)
    return merged


def cut(
    whole: Ladder, first: float | None = None, last: float | None = None, packets: int | None = None
) -> Ladder:
    """The part of a trial that left between two times (in s).

    Without a start it begins shortly before the first data packet that was lost (at the beginning where none
    was). It ends after `packets` packets, or `last`, whichever comes first; without both after `PACKETS`.
    """
    flights = list(whole.flights)
    if first is None:
        lost = next((i for i, f in enumerate(flights) if f.frame == "data" and f.dropped is not None), None)
        data_before = (
            [i for i, f in enumerate(flights[:lost]) if f.frame == "data"] if lost is not None else []
        )
        start = data_before[-BEFORE] if len(data_before) >= BEFORE else 0
    else:
        start = next((i for i, f in enumerate(flights) if f.sent >= first), len(flights))
    if packets is None and last is None:
        packets = PACKETS
    shown = [f for f in flights[start:] if last is None or f.sent <= last]
    shown = shown[:packets] if packets is not None else shown
    if not shown:
        raise ValueError("no packet left in that time: choose another --from and --to")
    begin, end = shown[0].sent, max(flight.end for flight in shown)
    kept = {flight.number for flight in shown}
    marks = [
        mark
        for mark in whole.marks
        if (mark.kind == "timeout" and begin <= mark.time <= end) or mark.packet in kept
    ]
    return Ladder(tuple(shown), tuple(marks), more=len(flights) - start - len(shown))
