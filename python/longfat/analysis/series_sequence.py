"""The time-sequence view of a flow (Stevens, TCP/IP Illustrated, vol. 1; tcptrace), from a trial's events.

The view is that of the data sender: departures of segments and arrivals of acknowledgements. Positions count
from the first byte of the stream (packets for protocols that number these).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from longfat.analysis.series_events import Event, Unit, data_range, joined, positions

_ACKS = ("ack", "update")
Kind = Literal["sent", "retransmitted", "received (SACK)", "duplicate (D-SACK)"]
SENT: Kind = "sent"
RETRANSMITTED: Kind = "retransmitted"
SACKED: Kind = "received (SACK)"
DUPLICATE: Kind = "duplicate (D-SACK)"


@dataclass(frozen=True)
class Piece:
    """A piece of the stream, [low, high), that left or was acknowledged at `time` (s).

    `until` is the time of the last piece if several are merged.
    """

    time: float
    low: int
    high: int
    kind: Kind
    until: float | None = None


@dataclass(frozen=True)
class Loss:
    """A lost, damaged or marked data segment: its departure in s, its range in the stream, and the reason."""

    time: float
    low: int
    high: int
    reason: str


@dataclass(frozen=True)
class Edge:
    """An acknowledgement: the position up to which data arrived in order, and the receive window's edge."""

    time: float
    acknowledged: int
    allowed: int | None


@dataclass(frozen=True)
class TimeSequence:
    """A flow's time-sequence view, in order of time. `marked` are segments with an ECN mark."""

    flow: str
    unit: Unit
    sent: tuple[Piece, ...]
    lost: tuple[Loss, ...]
    marked: tuple[Loss, ...]
    edges: tuple[Edge, ...]
    kept: tuple[Piece, ...]
    timeouts: tuple[float, ...]

    @property
    def retransmissions(self) -> int:
        """The number of retransmitted segments."""
        return sum(piece.kind == RETRANSMITTED for piece in self.sent)


@dataclass
class _Reader:
    flow: str
    direction: str
    host: str
    unit: Unit
    sent: dict[int, Piece] = field(default_factory=dict)
    lost: dict[int, Loss] = field(default_factory=dict)
    marked: dict[int, Loss] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    kept: list[Piece] = field(default_factory=list)
    timeouts: list[float] = field(default_factory=list)
    known: list[tuple[int, int]] = field(default_factory=list)

    def read(self, event: Event) -> None:
        what = event["what"]
        if what == "timeout":
            if event["host"] == self.host:
                self.timeouts.append(event["time"])
        elif what == "send" and event["direction"] == self.direction:
            data = data_range(event, self.unit)
            if data is not None:
                kind: Kind = RETRANSMITTED if event.get("retransmission") else SENT
                self.sent[event["id"]] = Piece(event["time"], *data, kind)
        elif what in ("drop", "corrupt", "mark") and event["id"] in self.sent:
            piece = self.sent[event["id"]]
            met = Loss(piece.time, piece.low, piece.high, str(event.get("reason") or what))
            (self.marked if what == "mark" else self.lost)[event["id"]] = met
        elif what == "receive" and event["direction"] != self.direction:
            self.acknowledge(event)

    def acknowledge(self, event: Event) -> None:
        is_ack = event["frame"] not in ("syn", "rst") if self.unit == "B" else event["frame"] in _ACKS
        if not is_ack or "acknowledgement" not in event:
            return
        # The SYN is before the first byte, a FIN after the last.
        acknowledged = max(0, event["acknowledgement"])
        window = event.get("window")
        self.edges.append(
            Edge(event["time"], acknowledged, None if window is None else acknowledged + window)
        )
        self.keep(event["time"], acknowledged, event.get("sack", ()))

    def keep(self, time: float, acknowledged: int, blocks: Sequence[tuple[int, int]]) -> None:
        """Records new SACK blocks and duplicates (RFC 2883: a D-SACK is the first block)."""
        self.known = [known for known in self.known if known[1] > acknowledged]
        for index, (low, high) in enumerate(blocks):
            inside = any(a <= low and high <= b for a, b in blocks[1:])
            if index == 0 and (high <= acknowledged or inside):
                self.kept.append(Piece(time, low, high, DUPLICATE))
                continue
            for new_low, new_high in _beyond(low, high, self.known):
                self.kept.append(Piece(time, new_low, new_high, SACKED))
            self.known = joined([*self.known, (low, high)])


def _beyond(low: int, high: int, known: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The parts of [low, high) outside the known ranges, which are sorted and disjoint."""
    parts = []
    for a, b in known:
        if b <= low or a >= high:
            continue
        if a > low:
            parts.append((low, a))
        low = max(low, b)
    return [*parts, (low, high)] if low < high else parts


def read(events: Iterable[Event], names: Mapping[int, str]) -> tuple[TimeSequence, ...]:
    """Returns the view of each named flow, in the direction with more data."""
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
            key = (event["direction"], event["host"])
            amounts[key] = amounts.get(key, 0) + event["size"]
    unit, placed = positions(events)
    if not amounts:
        return TimeSequence(flow, unit, (), (), (), (), (), ())
    direction, host = max(amounts, key=lambda key: (amounts[key], key[0]))
    reader = _Reader(flow, direction, host, unit)
    for event in placed:
        reader.read(event)
    return TimeSequence(
        flow,
        unit,
        tuple(reader.sent.values()),
        tuple(reader.lost.values()),
        tuple(reader.marked.values()),
        tuple(reader.edges),
        tuple(reader.kept),
        tuple(reader.timeouts),
    )


def cut(whole: TimeSequence, first: float | None, last: float | None) -> TimeSequence:
    """Returns the part between two times in s, inclusive."""
    begin, end = first if first is not None else -1.0, last if last is not None else float("inf")

    def inside(time: float) -> bool:
        return begin <= time <= end

    return replace(
        whole,
        sent=tuple(one for one in whole.sent if inside(one.time)),
        lost=tuple(one for one in whole.lost if inside(one.time)),
        marked=tuple(one for one in whole.marked if inside(one.time)),
        edges=tuple(one for one in whole.edges if inside(one.time)),
        kept=tuple(one for one in whole.kept if inside(one.time)),
        timeouts=tuple(time for time in whole.timeouts if inside(time)),
    )


def thinned(pieces: Iterable[Piece], apart: float) -> list[Piece]:
    """Merges adjacent pieces of a kind within `apart` seconds, for drawing.

    Every byte of every kind remains covered, so retransmissions stay visible.
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
    """Keeps the first and the last edge of every `apart` seconds, for drawing."""
    drawn: list[Edge] = []
    for edge in edges:
        if len(drawn) >= 2 and edge.time - drawn[-2].time < apart:
            drawn[-1] = edge
        else:
            drawn.append(edge)
    return drawn
