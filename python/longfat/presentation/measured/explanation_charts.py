"""What limited a connection over time: causes, flight, RTT, throughput and sequence, as Vega-Lite."""

from __future__ import annotations

import textwrap
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from longfat.analysis.captures import bounded
from longfat.presentation.charts import theme
from longfat.presentation.charts.theme import PALETTE
from longfat.presentation.charts.vega import Row, Spec, channel, layer, tooltip
from longfat.presentation.formatting import DASH, quantity, scale_for
from longfat.presentation.measured import explanation_sequence, explanation_text
from longfat.presentation.names import with_unit
from longfat.presentation.trace.charts import zoom

if TYPE_CHECKING:
    from longfat.analysis.captures.bounded import Band, Slice
    from longfat.analysis.captures.explained import Direction

WIDTH, HEIGHT, BAND = 860, 150, 26
"""Sizes of panels in px; `BAND` is the height of the causes."""
MOST_SLICES = 600
"""Maximum number of points of a line."""
MOST_BANDS = 400
"""Maximum number of intervals."""
MOST_REFERENCE = 2.0
"""Reference in relation to the largest measured value above which it does not extend the axis."""
COLOURS = {
    "handshake": "#7F7F7F",
    "slow-start": "#56B4E9",
    "window-growth": "#3F8FA8",
    "bandwidth": "#009E73",
    "bufferbloat": "#B8A800",
    "receive-window": "#E69F00",
    "receiver-stall": "#8B5A2B",
    "application": "#CC79A7",
    "request": "#AA4499",
    "random-loss": "#D55E00",
    "queue-overflow": "#882255",
    "burst": "#C2185B",
    "policer": "#A63603",
    "reordering": "#9C6ADE",
    "path-change": "#00897B",
    "pacing": "#5E8D2E",
    "delayed-ack": "#B07AA1",
    "timeout": "#5A4FCF",
    "send-buffer": "#0072B2",
}
"""Colours of causes, visible on light and dark pages."""
RETRANSMISSIONS = "retransmissions"
# The blue of the palette is too dark on the colours of causes on a dark page.
_MEASURED, _REFERENCE, _REPEATED = "#2B83C6", PALETTE[6], PALETTE[1]
_SOLID, _DASHED = [1, 0], [6, 3]
_SHADE = 0.16
_AXIS = {"tickCount": 10, "labelFlush": False, "labelSeparation": 6}
_SLICE = {
    "when:N": "Time",
    "cause:N": "Cause",
    "frames:N": "Frames of this cause",
    "flight:N": "Bytes in flight",
    "window:N": "Receive window",
    "rtt:N": "RTT",
    "rate:N": "Throughput",
    "again:N": "Retransmissions",
}
"""Columns of the tooltip of a slice."""


@dataclass(frozen=True)
class _Line:
    """A line of a panel: a value for each slice, or one for all of them."""

    name: str
    value: Callable[[Slice], float | None]
    is_reference: bool = False

    @property
    def colour(self) -> str:
        return _REFERENCE if self.is_reference else _MEASURED

    @property
    def dashes(self) -> list[int]:
        return _DASHED if self.is_reference else _SOLID


def over_time(one: Direction) -> Spec:
    """Returns the causes with flight, RTT and throughput below them over one time axis, as Vega-Lite.

    A time-sequence graph follows if the direction has packets. Throughput is that of payload at the receiver.
    """
    slices, bands = bounded.slices(one, MOST_SLICES), bounded.bands(one, MOST_BANDS)
    end = max([*(band.end for band in bands), *(part.end for part in slices)], default=0.0)
    span = {"domain": [0, end if end > 0 else 1e-6], "nice": False}
    drawn, axes = [], []
    for panel in (_causes, _flight, _rtt, _throughput, _sequence):
        x = channel("time:Q", title=None, scale=span, axis=dict(_AXIS))
        made = panel(one, slices, x)
        if made is not None:
            drawn.append(made)
            axes.append(x)
    for x in axes[:-1]:
        x["axis"] |= {"labels": False, "ticks": False}
    axes[-1]["title"] = "Time since the first packet (s)"
    plot = {
        "datasets": {"causes": list(map(_band, bands)), "slices": _details(slices, bands)},
        "vconcat": drawn,
        "spacing": 10,
        "resolve": {"scale": {"color": "independent", "strokeDash": "independent"}},
        "params": [zoom(drawn)],
    }
    subtitle = textwrap.wrap(explanation_text.verdict(one), int(WIDTH / theme.SUBTITLE_LETTER))
    spec = theme.chart(plot, theme.heading(explanation_text.heading(one), subtitle))
    spec["config"]["legend"] |= {"orient": "top", "columns": 0, "title": None}
    spec["config"]["axisY"] = {"minExtent": 44}
    return spec


def _band(band: Band) -> Row:
    return {
        "time": band.start,
        "until": band.end,
        "cause": explanation_text.CAUSES[band.cause],
        "frames": _frames(band),
        "when": _when(band.start, band.end),
    }


def _details(slices: Sequence[Slice], bands: Sequence[Band]) -> list[Row]:
    """The figures of each slice as text, for tooltips."""
    starts = [band.start for band in bands]
    rows = []
    for part in slices:
        place = bisect_right(starts, (part.start + part.end) / 2) - 1
        band = bands[place] if place >= 0 else None
        rows.append(
            {
                "time": part.start,
                "until": part.end,
                "when": _when(part.start, part.end),
                "cause": DASH if band is None else explanation_text.CAUSES[band.cause],
                "frames": DASH if band is None else _frames(band),
                "flight": quantity(part.flight, "B"),
                "window": DASH if part.window is None else quantity(part.window, "B"),
                "rtt": DASH if part.rtt is None else quantity(part.rtt, "s"),
                "rate": quantity(part.rate, "bit/s"),
                "again": part.retransmissions,
            }
        )
    return rows


def _when(start: float, end: float) -> str:
    return f"{start:.4f} s to {end:.4f} s ({quantity(end - start, 's')})"


def _frames(band: Band) -> str:
    return f"{band.frames[0]} to {band.frames[1]}" if band.frames[0] else DASH


def _cause_color(one: Direction, legend: Spec | None) -> Spec:
    present = {row["cause"] for row in one.document["intervals"]}
    causes = [cause for cause in COLOURS if cause in present]
    names = [explanation_text.CAUSES[cause] for cause in causes]
    scale = {"domain": names, "range": [COLOURS[cause] for cause in causes]}
    return channel("cause:N", scale=scale, sort=names, legend=legend)


def _causes(one: Direction, _: Sequence[Slice], x: Spec) -> Spec:
    encoding = {
        "x": x,
        "x2": {"field": "until"},
        "color": _cause_color(one, {"symbolType": "square"}),
        "tooltip": tooltip({"cause:N": "Cause", "when:N": "Time", "frames:N": "Frames"}),
    }
    return _named("causes", layer("rect", encoding, clip=True, aria=False)) | {"width": WIDTH, "height": BAND}


def _named(data: str, made: Spec) -> Spec:
    return {"data": {"name": data}, **made}


def _panel(one: Direction, x: Spec, layers: Sequence[Spec], height: int = HEIGHT) -> Spec:
    """Layers on the colours of the causes."""
    at = {"x": x, "x2": {"field": "until"}}
    shade = at | {"color": _cause_color(one, None)}
    return {
        "layer": [
            _named("causes", layer("rect", shade, opacity=_SHADE, clip=True, aria=False)),
            {"layer": list(layers)},
        ],
        "resolve": {"scale": {"color": "independent", "strokeDash": "independent"}},
        "width": WIDTH,
        "height": height,
    }


def _lines(
    one: Direction,
    slices: Sequence[Slice],
    x: Spec,
    title: str,
    unit: str,
    lines: Sequence[_Line],
    *,
    top: float,
    has_marks: bool = False,
) -> Spec:
    """Lines over slices, which show all figures of a slice under the pointer."""
    rows = [row for line in lines for row in _steps(slices, line)]
    scale, unit = scale_for([top], unit)
    for row in rows:
        row["y"] = float(f"{row['y'] / scale:.5g}")
    limits = {"domain": [0, top / scale], "nice": False}
    names = [line.name for line in lines] + [RETRANSMISSIONS] * has_marks
    colours = {"domain": names, "range": [line.colour for line in lines] + [_REPEATED] * has_marks}
    dashes = {"domain": names, "range": [line.dashes for line in lines] + [_SOLID] * has_marks}
    legend = {"symbolType": "stroke", "symbolStrokeWidth": 2, "symbolSize": 300}
    color = channel("quantity:N", scale=colours, sort=names, legend=legend)
    at = {
        "x": x,
        "y": channel("y:Q", title=with_unit(title, unit), scale=limits, axis={"tickCount": 4}),
        "color": color,
        "strokeDash": channel("quantity:N", scale=dashes, sort=names, legend=legend),
        "detail": channel("piece:N"),
    }
    layers = [layer("line", at, rows=rows, interpolate="step-after", strokeWidth=1.6, clip=True, aria=False)]
    if has_marks:
        marks = {"x": x, "y": {"value": HEIGHT - 5}, "color": color}
        again = [
            {"time": (part.start + part.end) / 2, "quantity": RETRANSMISSIONS}
            for part in slices
            if part.retransmissions
        ]
        style: Spec = {"shape": "triangle-up", "filled": True, "size": 42, "opacity": 1, "aria": False}
        layers.append(layer("point", marks, rows=again, clip=True, **style))
    about = {"x": x, "x2": {"field": "until"}, "tooltip": tooltip(_SLICE)}
    layers.append(_named("slices", layer("rect", about, opacity=0, clip=True, aria=False)))
    return _panel(one, x, layers)


def _steps(slices: Iterable[Slice], line: _Line) -> Iterator[Row]:
    """Rows of a line of steps; a slice without a value interrupts it."""
    last: Row | None = None
    piece = 0
    for part in slices:
        value = line.value(part)
        if last is not None and value is None:
            yield last
            last = None
            piece += 1
        if value is not None:
            about = {"y": value, "quantity": line.name, "piece": f"{line.name} {piece}"}
            yield {"time": part.start, **about}
            last = {"time": part.end, **about}
    if last is not None:
        yield last


def _flight(one: Direction, slices: Sequence[Slice], x: Spec) -> Spec | None:
    if not slices:
        return None
    windows = [part.window for part in slices if part.window is not None]
    top, least = _top((part.flight for part in slices), windows), min(windows, default=0)
    name = "receive window" if least <= top else f"receive window, above: {quantity(least, 'B')} or more"
    lines = [
        _Line("bytes in flight", lambda part: part.flight),
        _Line(name, lambda part: part.window, is_reference=True),
    ]
    return _lines(one, slices, x, "Window", "B", lines, top=top)


def _rtt(one: Direction, slices: Sequence[Slice], x: Spec) -> Spec | None:
    measured = [part.rtt for part in slices if part.rtt is not None]
    if not measured:
        return None
    base = one.path["base_rtt_s"]
    lines = [_Line("RTT", lambda part: part.rtt)]
    if base:
        lines.append(_Line(f"idle RTT {quantity(base, 's')}", lambda _: base, is_reference=True))
    return _lines(one, slices, x, "RTT", "s", lines, top=_top(measured, [base or 0.0]))


def _throughput(one: Direction, slices: Sequence[Slice], x: Spec) -> Spec | None:
    if not slices:
        return None
    rate = one.path["rate_bps"]
    top = _top((part.rate for part in slices), [rate or 0.0])
    lines = [_Line("throughput", lambda part: part.rate)]
    if rate:
        above = "" if rate <= top else ", above:"
        name = f"bottleneck{above} {quantity(rate, 'bit/s')} of payload"
        lines.append(_Line(name, lambda _: rate, is_reference=True))
    has_marks = any(part.retransmissions for part in slices)
    return _lines(one, slices, x, "Throughput", "bit/s", lines, top=top, has_marks=has_marks)


def _top(measured: Iterable[float], references: Iterable[float]) -> float:
    """The end of an axis. References far above the measured values would hide their changes."""
    most, reference = max(measured), max(references, default=0.0)
    return (1.05 * max(most, reference) if reference <= MOST_REFERENCE * most else 1.25 * most) or 1.0


def _sequence(one: Direction, _: Sequence[Slice], x: Spec) -> Spec | None:
    layers = explanation_sequence.layers(one, x, _MEASURED)
    return _panel(one, x, layers, explanation_sequence.HEIGHT) if layers else None
