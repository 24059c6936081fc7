"""Ladder diagrams: the packets of a trial, losses and retransmissions.

This module converts a trial's events to flights and marks and selects a part of them;
`longfat.presentation.trace.ladder` draws it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from longfat.analysis.series_events import Event, Unit, data_range, joined, positions

Host = Literal["sender", "receiver"]
MarkKind = Literal["timeout", "delivered", "kept", "discarded"]

_VERBS = {"delivered": "delivers", "kept": "keeps", "discarded": "discards"}

PACKETS = 44
"""Default number of packets in a diagram: a loss and the packets after it."""
MOST_BLOCKS = 2
"""Maximum number of SACK blocks in the label of a TCP acknowledgement."""
BEFORE = 5
"""Number of data packets in a diagram before the first lost one."""


@dataclass(frozen=True)
class Flight:
    """One packet: its number in the trial, and the times in s at which it left, arrived or was dropped.

    A duplicated packet arrives several times. `later` are arrivals after the end of the diagram.
    """

    number: int
    frame: str
    unit: Unit
    data: tuple[int, int] | None
    acknowledgement: int | None
    sack: tuple[tuple[int, int], ...]
    is_retransmission: bool
    forward: bool
    sent: float
    arrived: tuple[float, ...] = ()
    dropped: float | None = None
    reason: str = ""
    later: tuple[float, ...] = ()

    @property
    def end(self) -> float:
        """The time of the last arrival or the drop; the departure if the trace stops earlier."""
        return max((*self.arrived, self.dropped or self.sent))

    @property
    def label(self) -> str:
        """A short label: `data 7`, `ack 8 +10-12`, `open`; for TCP `data 0-1448`."""
        if self.data is not None:
            return f"{self.frame} {spelled(*self.data, self.unit)}"
        if self.frame in ("ack", "update") and self.acknowledgement is not None:
            most = MOST_BLOCKS if self.unit == "B" else len(self.sack)
            kept = ", ".join(spelled(*block, self.unit) for block in sorted(self.sack)[:most])
            rest = f" and {len(self.sack) - most} more" if len(self.sack) > most else ""
            return f"ack {self.acknowledgement}" + (f" +{kept}{rest}" if kept else "")
        return self.frame


@dataclass(frozen=True)
class Mark:
    """An event at a host: a timeout, or data delivered in order, kept for later or discarded.

    `packet` is the number of the packet that caused it, None for a timeout; `data` are the half-open ranges
    of the stream.
    """

    time: float
    host: Host
    kind: MarkKind
    text: str
    packet: int | None = None
    unit: Unit = "packets"
    data: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Ladder:
    """A trial or a part of it, in order of time.

    A part contains everything from `begin` to `end` (s): packets that leave (`flights`), packets that left
    earlier and arrive (`arriving`), and marks. `more` is the number of packets that leave later.
    """

    flights: tuple[Flight, ...]
    marks: tuple[Mark, ...]
    more: int = 0
    begin: float = 0.0
    end: float = math.inf
    arriving: tuple[Flight, ...] = ()

    @property
    def drawn(self) -> tuple[Flight, ...]:
        """All packets of the diagram."""
        return (*self.arriving, *self.flights)


def spelled(low: int, high: int, unit: Unit) -> str:
    """A range [low, high) as text: the last packet is inclusive, the last byte exclusive.

    >>> spelled(3, 4, "packets"), spelled(3, 8, "packets"), spelled(0, 1448, "B")
    ('3', '3-7', '0-1448')
    """
    if unit == "B":
        return f"{low}-{high}"
    return str(low) if high == low + 1 else f"{low}-{high - 1}"


SETUP = (
    "open: requests a connection; challenge: returns a token, which the next open repeats to prove the "
    "sender's address; accept: opens the connection"
)
"""The handshake of ARQ protocols (`crates/transport/src/arq/handshake.rs`)."""


def legend(ladder: Ladder) -> list[str]:
    """Explanations of the labels in a diagram, a line each."""
    counted = "byte" if any(flight.unit == "B" for flight in ladder.drawn) else "packet"
    lines = [f"ack n: next expected {counted} is n; +a-b: received out of order"]
    if any(flight.frame in ("open", "challenge", "accept") for flight in ladder.drawn):
        lines.append(SETUP)
    return lines


def read(events: Iterable[Event]) -> Ladder:
    """Converts all events of a trial."""
    unit, placed = positions(events)
    flights: dict[int, Flight] = {}
    for event in placed:
        what = event["what"]
        if what == "send":
            flights[event["id"]] = _flight(event, unit)
        elif what in ("receive", "drop") and event["id"] in flights:
            flight = flights[event["id"]]
            if what == "receive":
                flight = replace(flight, arrived=(*flight.arrived, event["time"]))
            else:
                flight = replace(flight, dropped=event["time"], reason=event.get("reason", ""))
            flights[event["id"]] = flight
    marks = [*_timeouts(placed, unit), *_arrivals(placed, unit)]
    marks.sort(key=lambda mark: mark.time)
    return Ladder(tuple(sorted(flights.values(), key=lambda flight: flight.sent)), tuple(marks))


def _flight(event: Event, unit: Unit) -> Flight:
    return Flight(
        number=event["id"],
        frame=event["frame"],
        unit=unit,
        data=data_range(event, unit),
        acknowledgement=event.get("acknowledgement"),
        sack=tuple((a, b) for a, b in event.get("sack", ())),
        is_retransmission=bool(event.get("retransmission")),
        forward=event["direction"] == "forward",
        sent=event["time"],
    )


def _timeouts(events: Sequence[Event], unit: Unit) -> Iterable[Mark]:
    resent: dict[tuple[float, str], list[tuple[int, int]]] = {}
    for event in events:
        data = data_range(event, unit) if event["what"] == "send" else None
        if data is not None and event.get("retransmission"):
            resent.setdefault((event["time"], event["host"]), []).append(data)
    for event in events:
        if event["what"] == "timeout":
            ranges = resent.get((event["time"], event["host"]), [])
            text = "timeout" + (f": retransmits {listed(ranges, unit)}" if ranges else "")
            yield Mark(event["time"], event["host"], "timeout", text)


def listed(ranges: Iterable[tuple[int, int]], unit: Unit) -> str:
    """Ranges as text.

    >>> listed([(3, 4), (4, 6), (7, 8), (9, 11)], "packets"), listed([(0, 1448)], "B")
    ('3-5, 7, 9-10', '0-1448')
    """
    return ", ".join(spelled(low, high, unit) for low, high in joined(ranges))


class _Receiver:
    """Infers the actions of a receiver of packets from the number of delivered bytes."""

    def __init__(self, events: Sequence[Event]) -> None:
        # A receiver that keeps packets out of order reports them in its ACKs.
        self.keeps = any(event.get("sack") for event in events)
        # Simultaneous arrivals precede the deliveries at the same time.
        self.read: dict[float, int] = {}
        self.lengths: dict[int, int] = {}
        for event in events:
            if event["what"] == "deliver" and event["host"] == "receiver":
                self.read[event["time"]] = max(self.read.get(event["time"], 0), event["delivered"])
            elif event["what"] == "send" and event["frame"] == "data":
                self.lengths[event["sequence"]] = event["length"]
        self.kept: set[int] = set()
        self.next_in_order, self.bytes_in_order = 0, 0

    def arrive(self, event: Event, low: int, _high: int) -> MarkKind:
        limit = self.read.get(event["time"], 0)
        first = self.next_in_order
        while self.next_in_order == low or self.next_in_order in self.kept:
            if self.bytes_in_order + self.lengths[self.next_in_order] > limit:
                break
            self.bytes_in_order += self.lengths[self.next_in_order]
            self.next_in_order += 1
        if self.next_in_order > first:
            return "delivered"
        if self.keeps and low > self.next_in_order:
            self.kept.add(low)
            return "kept"
        return "discarded"


class _TcpReceiver:
    """Infers the actions of a TCP receiver: it keeps all intact segments and delivers data in order."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.corrupt = {event["id"] for event in events if event["what"] == "corrupt"}
        self.kept: list[tuple[int, int]] = []
        self.next_in_order = 0

    def arrive(self, event: Event, low: int, high: int) -> MarkKind:
        if event["id"] in self.corrupt or high <= self.next_in_order:
            return "discarded"
        self.kept = joined([*self.kept, (low, high)])
        if self.kept[0][0] > self.next_in_order:
            return "kept"
        self.next_in_order = self.kept.pop(0)[1]
        return "delivered"


def _arrivals(events: Sequence[Event], unit: Unit) -> Iterable[Mark]:
    """The action of the receiver for each data packet."""
    receiver = _TcpReceiver(events) if unit == "B" else _Receiver(events)
    for event in events:
        if event["what"] != "receive" or event["direction"] != "forward":
            continue
        data = data_range(event, unit)
        if data is None:
            continue
        first = receiver.next_in_order
        kind = receiver.arrive(event, *data)
        known = kind == "discarded" and data[1] <= receiver.next_in_order
        concerned = (first, receiver.next_in_order) if kind == "delivered" else data
        place = spelled(*concerned, unit)
        text = f"has {place} already" if known else f"{_VERBS[kind]} {place}"
        yield Mark(event["time"], "receiver", kind, text, event["id"], unit, (concerned,))


def together(marks: Iterable[Mark]) -> list[Mark]:
    """Merges marks of the same kind, time and host for a drawing."""
    groups: dict[tuple[float, Host, MarkKind], list[Mark]] = {}
    for mark in marks:
        groups.setdefault((mark.time, mark.host, mark.kind), []).append(mark)
    merged = []
    for group in groups.values():
        first, data = group[0], tuple(piece for mark in group for piece in mark.data)
        if len(group) > 1 and data:
            verb = first.text.partition(" ")[0]
            text = f"{verb} {listed(data, first.unit)}" + (" already" if verb == "has" else "")
            first = replace(first, text=text, packet=None, data=data)
        merged.append(first)
    return merged


def cut(
    whole: Ladder, first: float | None = None, last: float | None = None, packets: int | None = None
) -> Ladder:
    """Returns the part of a trial between two times in s, inclusive.

    By default, it starts with the `BEFORE`-th data packet before the first lost one (at the start of the
    trial without loss, or with fewer data packets before it).
    It stops at `last` or after `packets` departures, whichever is first; by default after `PACKETS`. Raises
    ValueError if the part is empty.
    """
    (part,) = cut_alike([whole], first, last, packets)
    return part


def cut_alike(
    wholes: Sequence[Ladder],
    first: float | None = None,
    last: float | None = None,
    packets: int | None = None,
) -> list[Ladder]:
    """Returns the same period of several trials, like `cut`.

    The period starts and stops at the earliest start and stop of the individual trials.
    """
    begin = min(map(_start, wholes)) if first is None else first
    if packets is None and last is None:
        packets = PACKETS
    end = min(_end(whole, begin, packets) for whole in wholes)
    end = end if last is None else min(end, last)
    parts = [_part(whole, begin, end) for whole in wholes]
    if not any(part.drawn for part in parts):
        raise ValueError("no packets in this period: choose another --from and --to")
    return parts


def _start(whole: Ladder) -> float:
    """The time a few data packets before the first lost one."""
    left: list[float] = []
    for flight in whole.flights:
        if flight.data is None:
            continue
        if flight.dropped is not None:
            return left[-BEFORE] if len(left) >= BEFORE else whole.flights[0].sent
        left.append(flight.sent)
    return whole.flights[0].sent if whole.flights else 0.0


def _end(whole: Ladder, begin: float, packets: int | None) -> float:
    """The last moment before packet number `packets` + 1 leaves; simultaneous departures stay together."""
    after = [flight.sent for flight in whole.flights if flight.sent >= begin]
    if packets is None or len(after) <= packets:
        return math.inf
    following = next((sent for sent in after[packets:] if sent > after[packets - 1]), math.inf)
    return math.nextafter(following, -math.inf)


def _part(whole: Ladder, begin: float, end: float) -> Ladder:
    flights = [_until(flight, end) for flight in whole.flights if begin <= flight.sent <= end]
    before = [flight for flight in whole.flights if flight.sent < begin]
    arriving = [_until(flight, end) for flight in before if any(begin <= t <= end for t in flight.arrived)]
    marks = tuple(mark for mark in whole.marks if begin <= mark.time <= end)
    more = sum(flight.sent > end for flight in whole.flights)
    return Ladder(tuple(flights), marks, more, begin, end, tuple(arriving))


def _until(flight: Flight, end: float) -> Flight:
    """Moves arrivals after the end to `later`."""
    later = tuple(time for time in flight.arrived if time > end)
    return (
        replace(flight, arrived=tuple(t for t in flight.arrived if t <= end), later=later)
        if later
        else flight
    )
