"""The time-sequence view of a flow (Stevens, TCP/IP Illustrated, vol. 1; tcptrace), from a trial's events.

It is that of the host that sends the data: segments when they left, acknowledgements when they arrived.
Positions count from the first byte of the stream (packets, for protocols that number those).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Event = Mapping[str, Any]
Kind = Literal["sent", "sent again", "kept (SACK)", "had already (D-SACK)"]


@dataclass(frozen=True)
class Piece:
    """A piece of the stream, [low, high), that left or was acknowledged at `time` (s).

    Where several are drawn as one, the last of them stands at `until`.
    """

    time: float
    low: int
    high: int
    kind: Kind
    until: float | None = None


@dataclass(frozen=True)
class Loss:
    """A data segment that did not arrive whole: when it left, where it stands in the stream, and why."""

    time: float
    low: int
    high: int
    reason: str


@dataclass(frozen=True)
class Edge:
    """What an acknowledgement moved: bytes in order so far, and up to where the receiver has room."""

    time: float
    acknowledged: int
    allowed: int | None


@dataclass(frozen=True)
class TimeSequence:
    """A flow's time-sequence view, in order of time."""

    flow: str
    unit: Literal["B", "packets"]
    sent: tuple[Piece, ...]
    lost: tuple[Loss, ...]
    edges: tuple[Edge, ...]
    kept: tuple[Piece, ...]
    timeouts: tuple[float, ...]

    @property
    def again(self) -> int:
        """How many segments were sent again."""
        return sum(piece.kind == "sent again" for piece in self.sent)


@dataclass
class _Unwrapped:
    """Positions of one direction, modulo 2^32 on the wire (RFC 9293, 3.4), counted on without end."""

    base: int | None = None
    latest: int = 0

    def __call__(self, number: int) -> int:
        if self.base is None:
            self.base = number
        # The position closest to the latest one, on either side of it.
        ahead = (number - self.base - self.latest + 2**31) % 2**32 - 2**31
        position = self.latest + ahead
        self.latest = max(self.latest, position)
        return position


@dataclass
class _Reader:
    flow: str
    direction: str
    host: str
    bytes_: bool
    sent: dict[int, Piece] = field(default_factory=dict)
    lost: dict[int, Loss] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    kept: list[Piece] = field(default_factory=list)
    timeouts: list[float] = field(default_factory=list)
    known: list[tuple[int, int]] = field(default_factory=list)
    unwrap: _Unwrapped = field(default_factory=_Unwrapped)

    def read(self, event: Event) -> None:
        what = event["what"]
        if what == "timeout":
            if event["host"] == self.host:
                self.timeouts.append(event["time"])
        elif what == "send" and event["direction"] == self.direction:
            self.leave(event)
        elif what in ("drop", "corrupt") and event["id"] in self.sent:
            piece = self.sent[event["id"]]
            reason = str(event.get("reason") or "corrupt")
            self.lost[event["id"]] = Loss(piece.time, piece.low, piece.high, reason)
        elif what == "receive" and event["direction"] != self.direction:
            self.acknowledge(event)

    def leave(self, event: Event) -> None:
        if self.bytes_ and self.unwrap.base is None and "syn" in event["frame"]:
            # A SYN takes one number (RFC 9293, 3.4); the stream begins behind it.
            self.unwrap.base = (event["sequence"] + 1) % 2**32
            return
        length = event.get("length", 0) if self.bytes_ else int(event["frame"] == "data")
        if length:
            low = self.unwrap(event["sequence"])
            kind: Kind = "sent again" if event.get("retransmission") else "sent"
            self.sent[event["id"]] = Piece(event["time"], low, low + length, kind)

    def acknowledge(self, event: Event) -> None:
        if self.unwrap.base is None or (not self.bytes_ and event["frame"] not in ("ack", "update")):
            return
        if "acknowledgement" not in event or event["frame"] == "rst":
            return
        latest = self.unwrap.latest
        acknowledged = max(0, self.unwrap(event["acknowledgement"]))
        window = event.get("window")
        allowed = None if window is None else acknowledged + window
        blocks = [(self.unwrap(low), self.unwrap(high)) for low, high in event.get("sack", ())]
        # An acknowledgement reaches no further than what was sent (and the FIN, which takes one number).
        self.unwrap.latest = latest
        self.edges.append(Edge(event["time"], acknowledged, allowed))
        self.keep(event["time"], acknowledged, blocks)

    def keep(self, time: float, acknowledged: int, blocks: Sequence[tuple[int, int]]) -> None:
        """What is new in the blocks, or tells of a duplicate (RFC 2883: the first block then)."""
        self.known = [known for known in self.known if known[1] > acknowledged]
        for index, (low, high) in enumerate(blocks):
            inside = any(a <= low and high <= b for a, b in blocks[1:])
            if index == 0 and (high <= acknowledged or inside):
                self.kept.append(Piece(time, low, high, "had already (D-SACK)"))
                continue
            for new_low, new_high in _beyond(low, high, self.known):
                self.kept.append(Piece(time, new_low, new_high, "kept (SACK)"))
            self.known = _joined([*self.known, (low, high)])


def _beyond(low: int, high: int, known: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The parts of [low, high) outside the known ranges, which are in order and apart."""
    parts = []
    for a, b in known:
        if b <= low or a >= high:
            continue
        if a > low:
            parts.append((low, a))
        low = max(low, b)
    return [*parts, (low, high)] if low < high else parts


def _joined(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if joined and low <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], high))
        else:
            joined.append((low, high))
    return joined


def read(events: Iterable[Event], names: Mapping[int, str]) -> tuple[TimeSequence, ...]:
    """The view of each flow with a name, by number, in the direction that carries more data."""
    by_flow: dict[int, list[Event]] = {number: [] for number in names}
    for event in events:
        listed = by_flow.get(event.get("flow", 0))
        if listed is not None:
            listed.append(event)
    return tuple(_read(names[number], listed) for number, listed in by_flow.items())


def _read(flow: str, events: Sequence[Event]) -> TimeSequence:
    amounts: dict[tuple[str, str], int] = {}
    for event in events:
        if event["what"] == "send":
            amount = event.get("length", event["size"])
            key = (event["direction"], event["host"])
            amounts[key] = amounts.get(key, 0) + amount
    if not amounts:
        return TimeSequence(flow, "B", (), (), (), (), ())
    direction, host = max(amounts, key=lambda key: (amounts[key], key[0]))
    bytes_ = any("length" in event for event in events)
    reader = _Reader(flow, direction, host, bytes_)
    if not bytes_:
        reader.unwrap.base = 0
    for event in events:
        reader.read(event)
    return TimeSequence(
        flow,
        "B" if bytes_ else "packets",
        tuple(reader.sent.values()),
        tuple(reader.lost.values()),
        tuple(reader.edges),
        tuple(reader.kept),
        tuple(reader.timeouts),
    )


def cut(whole: TimeSequence, first: float | None, last: float | None) -> TimeSequence:
    """The part between two times in s, ends included."""
    begin, end = first if first is not None else -1.0, last if last is not None else float("inf")

    def inside(time: float) -> bool:
        return begin <= time <= end

    return replace(
        whole,
        sent=tuple(one for one in whole.sent if inside(one.time)),
        lost=tuple(one for one in whole.lost if inside(one.time)),
        edges=tuple(one for one in whole.edges if inside(one.time)),
        kept=tuple(one for one in whole.kept if inside(one.time)),
        timeouts=tuple(time for time in whole.timeouts if inside(time)),
    )


def thinned(pieces: Iterable[Piece], apart: float) -> list[Piece]:
    """Pieces for drawing: those of a kind that continue each other within `apart` seconds become one.

    Nothing disappears: every byte of every kind is still covered, so a retransmission is never hidden.
    """
    drawn: list[Piece] = []
    open_: dict[Kind, int] = {}
    for piece in pieces:
        index = open_.get(piece.kind)
        before = drawn[index] if index is not None else None
        if (
            index is not None
            and before is not None
            and piece.low == before.high
            and piece.time - before.time < apart
        ):
            drawn[index] = replace(before, high=piece.high, until=piece.until or piece.time)
        else:
            open_[piece.kind] = len(drawn)
            drawn.append(piece)
    return drawn


def thinned_edges(edges: Sequence[Edge], apart: float) -> list[Edge]:
    """Edges for drawing: the first and the last of every `apart` seconds."""
    drawn: list[Edge] = []
    for edge in edges:
        if len(drawn) >= 2 and edge.time - drawn[-2].time < apart:
            drawn[-1] = edge
        else:
            drawn.append(edge)
    return drawn
