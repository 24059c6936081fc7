"""Charts of a trial over time: window, RTT, queue, goodput and sequence, as Vega-Lite."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from longfat.analysis import series
from longfat.analysis.series import Samples, Series
from longfat.analysis.series_sequence import TimeSequence
from longfat.presentation import formatting
from longfat.presentation.charts import theme
from longfat.presentation.charts.theme import PALETTE
from longfat.presentation.charts.vega import Row, Spec, channel, layer
from longfat.presentation.names import with_unit
from longfat.presentation.trace import sequence
from longfat.presentation.trace.scope import POINTS, WIDTH, Scope

HEIGHT = 170
MEANS = 200
"""Maximum number of points of a rate, each a mean over an interval."""
MOST_SEQUENCES = 4
"""Maximum number of sequence charts below each other."""
MOST_STATES = 8
"""Maximum number of charts of a controller's state."""
MOST_LINES = 8
"""Maximum number of flows in a chart, one colour each."""

_COLOURS = {
    "congestion window": PALETTE[0],
    "slow-start threshold": PALETTE[1],
    "in flight": PALETTE[6],
    "RTT": PALETTE[5],
    "smoothed RTT": PALETTE[0],
    "goodput (read in order)": PALETTE[0],
    "received": PALETTE[1],
}
"""Colours of quantities in charts of a single flow, in the order of legends."""
_STATES = {"recovery": "#fbe3d3", "loss": "#f8ccc8", "cwr": "#e3eefb"}
_LEGEND = {"labelFontSize": 12, "title": None, "orient": "right", "symbolSize": 80, "labelLimit": 190}


Panel = Callable[[Scope], Spec | None]
"""Draws a chart for a time range; None if it is empty."""


def draw(
    shown: Series | None,
    sequences: Sequence[TimeSequence],
    parts: Sequence[str],
    title: str,
    subtitle: str,
    *,
    pointed: bool = False,
) -> Spec:
    """Returns the parts below each other over one time axis, as a Vega-Lite specification.

    `parts` are any of window, rtt, queue, goodput, controller and sequence, on the same time range. In HTML,
    zooming and panning apply to all parts; `pointed` adds points that show the values under the pointer.
    Raises ValueError if there is nothing to draw.
    """
    panels, notes = _panels(shown, sequences, parts)
    flows = [flow.name for flow in shown.flows] if shown is not None else []
    colours = dict(zip(flows, theme.repeated(PALETTE, len(flows)), strict=True))
    scope = replace(_scope(shown, sequences), colours=colours, pointed=pointed)
    span = {"domain": [scope.begin, scope.end], "nice": False}
    drawn, axes = [], []
    for part, panel in panels:
        x = channel("time:Q", title=None, scale=span, axis={"tickCount": 10})
        made = panel(replace(scope, x=x))
        if made is not None:
            drawn.append(made)
            axes.append(x)
        elif part == "queue":
            notes.append("the queue is always empty")
    if not drawn:
        raise ValueError(f"this trial has nothing to draw for {', '.join(parts)}")
    axes[-1]["title"] = "Time (s)"
    plot = {
        "vconcat": drawn,
        "spacing": 14,
        "resolve": {"scale": {"color": "independent", "strokeDash": "independent"}},
        "params": [zoom(drawn)],
    }
    spec = theme.chart(plot, theme.heading(title, [subtitle, *notes], offset=12))
    spec["config"]["legend"] = dict(_LEGEND)
    return spec


def zoom(panels: Sequence[Spec]) -> Spec:
    """Returns the common zooming and panning of the time axis, for HTML pages. Names the views."""
    views = []
    for number, panel in enumerate(panels):
        view = panel
        while "layer" in view:
            view = view["layer"][0]
        view["name"] = f"part_{number}"
        views.append(view["name"])
    # The wheel alone scrolls the page.
    zoom = "wheel![event.ctrlKey || event.shiftKey]"
    select = {"type": "interval", "encodings": ["x"], "zoom": zoom}
    return {"name": "zoom", "select": select, "bind": "scales", "views": views}


def _panels(
    shown: Series | None, sequences: Sequence[TimeSequence], parts: Sequence[str]
) -> tuple[list[tuple[str, Panel]], list[str]]:
    """The functions that draw each part, and notes for the subtitle."""
    panels: list[tuple[str, Panel]] = []
    notes: list[str] = []
    if shown is not None and len(shown.flows) > MOST_LINES and set(parts) - {"queue", "sequence"}:
        notes.append(f"first {MOST_LINES} of {len(shown.flows)} flows (see --flow)")
        shown = replace(shown, flows=_measured_first(shown.flows)[:MOST_LINES])
    for part in parts:
        if part == "sequence":
            drawn = [one for one in sequences if one.sent]
            named = len(drawn) > 1
            panels += [(part, partial(sequence.draw, one, named=named)) for one in drawn[:MOST_SEQUENCES]]
            if len(drawn) > MOST_SEQUENCES:
                notes.append(f"sequences of the first {MOST_SEQUENCES} of {len(drawn)} flows (see --flow)")
        elif part == "controller" and shown is not None:
            states = _states_of_controllers(shown.flows)
            panels += [(part, partial(_controller, shown, *state)) for state in states[:MOST_STATES]]
            if len(states) > MOST_STATES:
                rest = ", ".join(_named(shown, *state) for state in states[MOST_STATES:])
                notes.append(f"not drawn of the controller: {rest}")
        elif shown is not None:
            panels.append((part, partial(_PARTS[part], shown)))
    return panels, notes


def _scope(shown: Series | None, sequences: Iterable[TimeSequence]) -> Scope:
    times = [time for one in sequences for time in _times(one)]
    if shown is not None and shown.flows:
        times += [shown.begin, shown.end]
    begin, end = min(times, default=0.0), max(times, default=0.0)
    return Scope(begin, end if end > begin else begin + 1e-6)


def _times(one: TimeSequence) -> Iterable[float]:
    for listed in (one.sent, one.edges):
        if listed:
            yield from (listed[0].time, listed[-1].time)


def _lines(flows: Iterable[Samples], columns: dict[str, str], *, means: bool = False) -> list[Row]:
    """Rows of several columns, reduced to means if `means`; a gap interrupts a line."""
    rows: list[Row] = []
    for flow in flows:
        for column, quantity in columns.items():
            line = {"flow": flow.name, "quantity": quantity}
            piece = 0
            drawn = series.averaged(flow, column, MEANS) if means else series.points(flow, column, POINTS)
            for time, value in drawn:
                if value is None:
                    piece += 1
                else:
                    rows.append({"time": round(time, 9), "y": value, **line, "piece": f"{flow.name} {piece}"})
    return rows


def _quantities(
    flows: Iterable[Samples],
    columns: dict[str, str],
    title: str,
    unit: str,
    scope: Scope,
    *,
    means: bool = False,
    **style: Any,
) -> Spec | None:
    """Quantities of flows over time in the multiple of `unit` that fits; `style` is that of `_plot`."""
    rows = _lines(flows, columns, means=means)
    if not rows:
        return None
    scale, unit = formatting.scale_for([row["y"] for row in rows], unit)
    for row in rows:
        # Digits that a chart cannot show would make files larger.
        row["y"] = float(f"{row['y'] / scale:.7g}")
    return _plot(rows, scope, with_unit(title, unit), **style)


def _plot(
    rows: list[Row],
    scope: Scope,
    title: str,
    *,
    step: bool = True,
    zero: bool = True,
    behind: Spec | None = None,
    by_flow: bool = False,
) -> Spec:
    """Lines over time: colours for flows and dashes for quantities; for one flow, colours for quantities.

    With `by_flow`, colours are for flows also if there is one.
    """
    flows = list(dict.fromkeys(row["flow"] for row in rows))
    present = dict.fromkeys(row["quantity"] for row in rows)
    quantities = [one for one in _COLOURS if one in present] or list(present)
    several = by_flow or len(flows) > 1
    names, known = (flows, scope.colours) if several else (quantities, _COLOURS)
    colours = {"domain": names, "range": [known.get(name, PALETTE[0]) for name in names]}
    encoding = {
        "x": scope.x,
        "y": channel("y:Q", title=title, scale={"zero": zero}, axis={"tickCount": 5}),
        "color": channel("flow:N" if several else "quantity:N", scale=colours, sort=names),
        "detail": channel("piece:N"),
        "tooltip": [
            channel("flow:N"),
            channel("quantity:N"),
            channel("time:Q", title="Time (s)", format=".6~g"),
            channel("y:Q", title=title, format=".4~g"),
        ],
    }
    dashes = {}
    if several and len(quantities) > 1:
        scale = {"domain": quantities, "range": [[1, 0], [6, 3], [2, 2]][: len(quantities)]}
        dashes["strokeDash"] = channel("quantity:N", scale=scale, sort=quantities)
    interpolate = "step-after" if step else "linear"
    layers = [layer("line", encoding | dashes, strokeWidth=1.4, interpolate=interpolate, clip=True)]
    if scope.pointed:
        layers.append(layer("point", encoding, opacity=0, filled=True, size=90, clip=True))
    plot = {"data": {"values": rows}, "layer": layers}
    if behind is not None:
        plot = {"layer": [behind, plot], "resolve": {"scale": {"color": "independent"}}}
    return {**plot, "width": WIDTH, "height": HEIGHT}


def _window(shown: Series, scope: Scope) -> Spec | None:
    columns = {"ssthresh_bytes": "slow-start threshold", "cwnd_bytes": "congestion window"}
    flows = [flow for flow in shown.flows if flow.known("cwnd_bytes")]
    if len(flows) != 1:
        return _quantities(flows, columns, "Window", "B", scope)
    # Drawn first, below the window. With several flows it would hide the windows.
    columns = {"in_flight_bytes": "in flight", **columns}
    return _quantities(flows, columns, "Window", "B", scope, behind=_states(flows[0], scope))


def _states(flow: Samples, scope: Scope) -> Spec | None:
    """The states of a sender as bands."""
    bands = [
        {"time": begin, "until": end, "state": state}
        for state, begin, end in series.spans(flow)
        if state in _STATES
    ]
    if not bands:
        return None
    states = [state for state in _STATES if any(band["state"] == state for band in bands)]
    color = channel("state:N", scale={"domain": states, "range": [_STATES[state] for state in states]})
    return layer("rect", {"x": scope.x, "x2": {"field": "until"}, "color": color}, rows=bands, clip=True)


def _rtt(shown: Series, scope: Scope) -> Spec | None:
    columns = {"rtt_s": "RTT", "srtt_s": "smoothed RTT"}
    flows = [flow for flow in shown.flows if any(flow.known(column) for column in columns)]
    # Kernels report no individual RTT samples.
    if not any(flow.known("rtt_s") for flow in flows) or (
        len(flows) > 1 and any(flow.known("srtt_s") for flow in flows)
    ):
        del columns["rtt_s"]
    title = "RTT" if len(columns) > 1 else "Smoothed RTT"
    return _quantities(flows, columns, title, "s", scope, step=False, zero=False)


def _queue(shown: Series, scope: Scope) -> Spec | None:
    queues = [queue for queue in shown.queues if queue.known("packets")]
    if not any(any(queue.known("packets")) for queue in queues):
        return None
    colours = dict(scope.colours)
    for queue in queues:
        colours.setdefault(f"queue of {queue.name}", _colour(queue.name, colours))
    named = (replace(queue, name=f"queue of {queue.name}") for queue in queues)
    return _quantities(named, {"packets": "queue"}, "Queue", "packets", replace(scope, colours=colours))


def _colour(queue: str, colours: Mapping[str, str]) -> str:
    """The colour of a queue: that of the only flow of the same trial, else one that no flow has."""
    label = queue[queue.find(" (") :] if " (" in queue else None
    same = [colour for flow, colour in colours.items() if label and flow.endswith(label)]
    if len(same) == 1:
        return same[0]
    free = [colour for colour in PALETTE if colour not in colours.values()]
    return free[0] if free else PALETTE[0]


def _goodput(shown: Series, scope: Scope) -> Spec | None:
    columns = {"goodput_bps": "goodput (read in order)", "received_bps": "received"}
    return _quantities(shown.flows, columns, "Rate", "bit/s", scope, means=True)


def _measured_first(flows: Sequence[Samples]) -> tuple[Samples, ...]:
    """The flows of the workload, then those of traffic."""
    return tuple(sorted(flows, key=lambda flow: flow.is_traffic))


def _states_of_controllers(flows: Sequence[Samples]) -> list[tuple[str, tuple[Samples, ...]]]:
    """The columns of controllers, each with its flows: those whose controllers have the same state."""
    kinds: dict[tuple[str, ...], list[Samples]] = {}
    for flow in _measured_first(flows):
        kinds.setdefault(series.controller_kind(flow), []).append(flow)
    return [(column, tuple(alike)) for alike in kinds.values() for column in series.controller_columns(alike)]


def _named(shown: Series, column: str, flows: Sequence[Samples]) -> str:
    """A value of the state of controllers, with its flows unless all flows have it."""
    label = series.controller_label(column)[0]
    return label if len(flows) == len(shown.flows) else f"{label} of {', '.join(one.name for one in flows)}"


def _controller(shown: Series, column: str, flows: Sequence[Samples], scope: Scope) -> Spec | None:
    """One value of the state of the controllers of flows, whose names are in the legend if others exist."""
    label, unit = series.controller_label(column)
    title = f"Controller: {label}"
    return _quantities(flows, {column: label}, title, unit, scope, by_flow=len(shown.flows) > 1)


_PARTS = {"window": _window, "rtt": _rtt, "queue": _queue, "goodput": _goodput}
