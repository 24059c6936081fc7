"""The sequence of a flow over time, as Vega-Lite."""

from __future__ import annotations

from longfat.analysis import series_sequence
from longfat.analysis.series_sequence import DUPLICATE, RETRANSMITTED, SACKED, Loss, TimeSequence
from longfat.presentation import formatting
from longfat.presentation.charts.vega import Row, Spec, channel, layer
from longfat.presentation.trace.scope import WIDTH, Scope

HEIGHT = 340
_COLOURS = {
    "sent": "#0072B2",
    RETRANSMITTED: "#D55E00",
    "lost": "#B42318",
    "acknowledged": "#009E73",
    SACKED: "#CC79A7",
    DUPLICATE: "#7F5AA2",
    "receive window": "#7F7F7F",
    "marked (ECN)": "#E69F00",
    "timeout": "#111111",
}


def _met(loss: Loss, what: str, divisor: float) -> Row:
    middle = (loss.low + loss.high) / 2 / divisor
    return {"time": round(loss.time, 9), "y": middle, "what": what, "reason": loss.reason}


def draw(one: TimeSequence, scope: Scope, *, named: bool) -> Spec:
    """Segments as vertical ticks of their length, with lines for the acknowledged and allowed positions."""
    highest = max(piece.high for piece in one.sent)
    divisor, unit = formatting.scale_for([highest], "B") if one.unit == "B" else (1.0, "packets")
    ticks: list[Row] = [
        {
            "time": round(piece.time, 9),
            "until": round(piece.until or piece.time, 9),
            "y": piece.low / divisor,
            "high": piece.high / divisor,
            "what": piece.kind,
        }
        for piece in series_sequence.thinned([*one.sent, *one.kept], scope.apart)
    ]
    lost = [_met(loss, "lost", divisor) for loss in one.lost]
    marked = [_met(mark, "marked (ECN)", divisor) for mark in one.marked]
    edges = series_sequence.thinned_edges(one.edges, scope.apart)
    lines: list[Row] = [
        {"time": round(edge.time, 9), "y": edge.acknowledged / divisor, "what": "acknowledged"}
        for edge in edges
    ]
    # A receive window far above the data would compress everything else.
    lines += [
        {"time": round(edge.time, 9), "y": edge.allowed / divisor, "what": "receive window"}
        for edge in edges
        if edge.allowed is not None and edge.allowed <= highest * 1.1
    ]
    rules: list[Row] = [{"time": time, "what": "timeout"} for time in one.timeouts]
    present = {row["what"] for row in (*ticks, *lost, *marked, *lines, *rules)}
    kinds = [kind for kind in _COLOURS if kind in present]
    bottom = min((row["y"] for row in (*ticks, *lines)), default=0.0)
    span = {"domain": [bottom, highest / divisor * 1.02], "nice": False}
    title = f"{one.flow}: sequence ({unit})" if named and one.flow else f"Sequence ({unit})"
    color = channel(
        "what:N",
        scale={"domain": kinds, "range": [_COLOURS[kind] for kind in kinds]},
        sort=kinds,
        legend={"symbolType": "stroke", "symbolStrokeWidth": 2},
    )
    at = {"x": scope.x, "y": channel("y:Q", title=title, scale=span), "color": color}
    time = channel("time:Q")
    about = [channel("what:N"), time | {"title": "s"}, channel("y:Q"), channel("high:Q")]
    piece = at | {"tooltip": about}
    spans = piece | {"x2": {"field": "until"}, "y2": {"field": "high"}}
    loss = at | {"tooltip": [channel("reason:N"), time]}
    # A segment's tick is less than a pixel high in a long trace.
    again = [row for row in ticks if row["what"] == RETRANSMITTED]
    layers = [
        layer("rule", {"x": at["x"], "color": color}, rows=rules, strokeDash=[3, 3]),
        layer("line", at, rows=lines, interpolate="step-after", strokeWidth=1.1),
        layer("rule", spans, rows=ticks, strokeWidth=1.8),
        layer("point", at | {"tooltip": [time]}, rows=marked, filled=False, size=46, strokeWidth=1.6),
        layer("point", loss, rows=lost, shape="cross", angle=45, filled=True, size=36),
        layer("point", piece, rows=again, shape="triangle-up", filled=True, size=34),
    ]
    drawn = [drawn | {"mark": drawn["mark"] | {"clip": True}} for drawn in layers if drawn["data"]["values"]]
    return {"layer": drawn, "width": WIDTH, "height": HEIGHT}
