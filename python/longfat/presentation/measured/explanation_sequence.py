"""The time-sequence graph of a captured direction: its packets with their frames, as layers of Vega-Lite.

`packets` of a direction lists {"time_s", "kind", "from", "to", "frame"} in order of time, with positions in
bytes from the start of the data, `to` exclusive. Kinds: "data"; "again", a retransmission; "ack", which
acknowledges everything up to `to`; "sack", a SACK block; "window", the right edge of the window at `to`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from longfat.analysis.series_sequence import (
    RETRANSMITTED,
    SACKED,
    SENT,
    Edge,
    Kind,
    Piece,
    thinned,
    thinned_edges,
)
from longfat.presentation.charts.theme import PALETTE
from longfat.presentation.charts.vega import Row, Spec, channel, layer, tooltip
from longfat.presentation.formatting import quantity, scale_for
from longfat.presentation.names import with_unit

if TYPE_CHECKING:
    from longfat.analysis.captures.explained import Direction

Item = TypeVar("Item")
HEIGHT = 320
APART = 1200
"""Packets of one kind are merged within this part of the whole time."""
MOST = 1000
"""Maximum number of marks of one kind."""
HIGHEST_WINDOW = 1.1
"""Position in relation to the highest data above which the receive window is not drawn."""
ACKNOWLEDGED, WINDOW = "acknowledged", "receive window"
_PIECES: dict[str, Kind] = {"data": SENT, "again": RETRANSMITTED, "sack": SACKED}
_TOOLTIP = {"what:N": "Packet", "when:N": "Time", "bytes:N": "Bytes", "frame:N": "Frame"}
_COLOURS = {
    RETRANSMITTED: PALETTE[1],
    ACKNOWLEDGED: PALETTE[2],
    SACKED: PALETTE[3],
    WINDOW: PALETTE[6],
}


def layers(one: Direction, x: Spec, colour: str) -> list[Spec]:
    """Returns segments as ticks of their length, with lines for ACKs and windows; empty without packets.

    `colour` is that of new data.
    """
    # Without a list of packets, as of standard input, this is their number.
    packets = one.document.get("packets")
    if not isinstance(packets, list) or not any(packet["kind"] == "data" for packet in packets):
        return []
    highest = max(packet["to"] for packet in packets if packet["kind"] in _PIECES)
    scale, unit = scale_for([highest], "B")
    apart = (packets[-1]["time_s"] - packets[0]["time_s"]) / APART
    pieces = _pieces(packets, apart, scale)
    acks = _line(packets, "ack", ACKNOWLEDGED, apart, scale)
    windows = _line(packets, "window", WINDOW, apart, scale)
    lines = [*acks, *(row for row in windows if row["y"] * scale <= HIGHEST_WINDOW * highest)]
    present = {row["what"] for row in (*pieces, *lines)}
    known = {SENT: colour, **_COLOURS}
    kinds = [kind for kind in known if kind in present]
    colours = {"domain": kinds, "range": [known[kind] for kind in kinds]}
    legend = {"symbolType": "stroke", "symbolStrokeWidth": 2, "symbolSize": 300}
    span = {"domain": [0, highest / scale * 1.02], "nice": False}
    at = {
        "x": x,
        "y": channel("y:Q", title=with_unit("Sequence", unit), scale=span, axis={"tickCount": 8}),
        "color": channel("what:N", scale=colours, sort=kinds, legend=legend),
    }
    about = at | {"tooltip": tooltip(_TOOLTIP)}
    ticks = about | {"x2": {"field": "until"}, "y2": {"field": "high"}}
    again = [row for row in pieces if row["what"] == RETRANSMITTED]
    style: Spec = {"clip": True, "aria": False}
    made = [
        layer("line", at, rows=lines, interpolate="step-after", strokeWidth=1.3, **style),
        layer("point", about, rows=acks, opacity=0, filled=True, size=40, **style),
        # A segment's tick is less than a pixel high in a long transfer: its cap shows it.
        layer("rule", ticks, rows=pieces, strokeWidth=1.8, strokeCap="square", **style),
        layer("point", about, rows=again, shape="triangle-up", filled=True, size=34, opacity=1, **style),
    ]
    return [one for one in made if one["data"]["values"]]


def _pieces(packets: Sequence[Mapping[str, Any]], apart: float, scale: float) -> list[Row]:
    frames: dict[tuple[Kind, float, int], int] = {}
    found: dict[Kind, list[Piece]] = {}
    for packet in packets:
        kind = _PIECES.get(packet["kind"])
        if kind is not None:
            piece = Piece(packet["time_s"], packet["from"], packet["to"], kind)
            frames[kind, piece.time, piece.low] = packet["frame"]
            found.setdefault(kind, []).append(piece)
    return [
        {
            "time": piece.time,
            "until": piece.until or piece.time,
            "y": piece.low / scale,
            "high": piece.high / scale,
            "what": kind,
            "when": quantity(piece.time, "s"),
            "bytes": f"{piece.low:,} to {piece.high:,}",
            "frame": frames[kind, piece.time, piece.low],
        }
        for kind, listed in found.items()
        for piece in _some(thinned(listed, apart))
    ]


def _line(
    packets: Sequence[Mapping[str, Any]], kind: str, name: str, apart: float, scale: float
) -> list[Row]:
    """The upper positions of packets of a kind."""
    chosen = [packet for packet in packets if packet["kind"] == kind]
    frames = {(packet["time_s"], packet["to"]): packet["frame"] for packet in chosen}
    edges = thinned_edges([Edge(packet["time_s"], packet["to"], None) for packet in chosen], apart)
    return [
        {
            "time": edge.time,
            "y": edge.acknowledged / scale,
            "what": name,
            "when": quantity(edge.time, "s"),
            "bytes": f"up to {edge.acknowledged:,}",
            "frame": frames[edge.time, edge.acknowledged],
        }
        for edge in _some(edges)
    ]


def _some(items: Sequence[Item]) -> Sequence[Item]:
    """At most `MOST` items, evenly spread."""
    return items[:: -(-len(items) // MOST)] if items else items
