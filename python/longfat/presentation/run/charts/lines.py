"""The chart of a metric over the sweep: measured means with intervals, theory, and the source's figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from longfat.analysis.statistics import method
from longfat.presentation import formatting, names
from longfat.presentation.charts import theme
from longfat.presentation.charts.vega import channel, layer, tooltip
from longfat.presentation.run import notes
from longfat.presentation.run.charts import data as chart_data
from longfat.presentation.run.charts import panels
from longfat.presentation.run.charts.data import BOUND, FAIR, MEASURED, SOURCE, THEORY, ChartData
from longfat.presentation.run.charts.options import USUAL

if TYPE_CHECKING:
    from longfat.presentation.charts.vega import Spec
    from longfat.presentation.run.charts.options import Options
    from longfat.results.run import RunResult

MOST_ACROSS = 3
"""Maximum number of panels side by side."""
_CHOSEN = "chosen"
FIGURES = {THEORY: "theory", FAIR: "fair share", BOUND: "upper bound (≤)"}
"""The entries of the legend for figures that are not measured."""
DASHED = {THEORY: "dashed", FAIR: "dash-dotted", BOUND: "dotted"}
_DASHES = {THEORY: [7, 5], FAIR: [8, 3, 2, 3], BOUND: [1.5, 3.5]}
_TICK_DASHES = {THEORY: [5, 2.5], FAIR: [5, 2, 1.5, 2], BOUND: [1.5, 2.5]}
"""Shorter: a tick shows several of them."""
_TICK = 26
"""Width of a tick in px: wider than a point with its interval, so that both are visible if they coincide."""
# Numbers in full: the default formats round to the digits in which the ticks differ.
_PLAIN = "format(datum.value, '~f')"


def chart(run: RunResult, metric: str = "goodput_bps", *, width: int = 620) -> Spec:
    """The chart of one metric over the sweep, as a Vega-Lite specification with inline data.

    Lines connect measured means, bars show their intervals, dashes are theory, dots upper bounds, and hollow
    points the source's figures. Worlds are side by side, further swept keys below each other. `width` is in
    px for all worlds together. Raises ValueError if the run did not measure the metric.
    """
    data = chart_data.collect(run, metric)
    title = theme.run_heading(names.metric_title(metric), run, _caption(run, data), width)
    return theme.chart(plot(data, metric, width), title)


def plot(
    data: ChartData, metric: str, width: int, height: int | None = None, options: Options = USUAL
) -> Spec:
    """The chart without its title; `height` is that of each plot in px."""
    if not data.rows:
        raise ValueError(f"this run measured no {metric}")
    if options.facet is not None or _needs_rows(data, options):
        columns = panels.across(data.panels, options.px or width)
        each = panels.width_of_each(columns, width)
        tall = panels.height_of_each(each, height, options, 200)
        drawn = panels.wrapped(_plot(data, each, tall, width), data.panels, columns)
    else:
        # With one world, panels of the other swept key are side by side if they fit.
        across = "panel" if len(data.worlds) == 1 and 1 < len(data.panels) <= MOST_ACROSS else "world"
        beside, rows = (data.panels, []) if across == "panel" else (data.worlds, data.panels)
        each = max(220 if options.size is None else 40, panels.width_of_each(len(beside), width))
        tall = panels.height_of_each(each, height, options, 200 if len(rows) > 1 else 300)
        style = {"labelFontSize": theme.TITLE, "labelFontWeight": "bold", "labelOrient": "top"}
        facet = {
            side: channel(f"{field}:N", sort=order, header={"title": None, **style})
            for side, field, order in (("column", across, beside), ("row", "panel", rows))
            if len(order) > 1
        }
        drawn = _plot(data, each, tall, width)
        drawn = {"facet": facet, "spec": drawn} if facet else drawn
    # A selection of layers is only allowed at the top.
    select = {"type": "point", "fields": ["series"]}
    chosen = {"name": _CHOSEN, "select": select, "bind": "legend", "views": [_CHOSEN]}
    return {"data": {"values": data.drawn}, **drawn, "params": [chosen], "config": theme.STACKED_LEGENDS}


def _needs_rows(data: ChartData, options: Options) -> bool:
    """Whether a chart with a size is too narrow for all its panels side by side."""
    if options.px is None or len(data.worlds) > 1 or not 1 < len(data.panels) <= MOST_ACROSS:
        return False
    return panels.across(data.panels, options.px) < len(data.panels)


def _plot(data: ChartData, width: int, height: int, legend: int) -> Spec:
    """One plot of a width and a height, above a legend with a width."""
    layers = _layers(data, theme.wrapped(data.y.title, height), width, legend)
    return {"layer": layers, "width": width, "height": height}


def caption(run: RunResult, metric: str) -> str:
    """How to read the chart of a metric."""
    return _caption(run, chart_data.collect(run, metric)) + "."


def _caption(run: RunResult, data: ChartData) -> str:
    cells = [cell for cell in run.cells if cell.n]
    random = [cell for cell in cells if not cell.deterministic]
    parts = []
    if random or not cells:
        how = ", ".join(dict.fromkeys(method(n) for n in sorted({cell.n for cell in random})))
        parts.append(f"Bars: {notes.confidence(random)} intervals ({notes.trials(random)}; {how})")
    if len(random) < len(cells):
        fixed = [cell for cell in cells if cell.deterministic]
        parts.append(f"Without bars: {formatting.DETERMINISTIC} ({notes.trials(fixed)})")
    parts += [f"{DASHED[kind]}: {meaning}" for kind, meaning in FIGURES.items() if data.has(kind)]
    if data.has(SOURCE):
        parts.append("hollow points: figures of the source")
    return "; ".join(parts)


def _layers(data: ChartData, y_title: list[str], width: int, legend: int) -> list[Spec]:
    color = theme.series_color(data.series, legend)
    scale, axis = _y_scale(data)
    shape = {**theme.series_shape(data.series), "legend": color["legend"]}
    shared: Spec = {
        "x": _x(data, width),
        "y": channel("y:Q", title=y_title or None, scale=scale, axis=axis),
        "color": color,
        "opacity": {"condition": {"param": _CHOSEN, "value": 1.0}, "value": 0.12},
        "tooltip": tooltip(
            {
                "series:N": "Protocol",
                "kind:N": "Figure",
                "x_text:N": data.x.title or "Point",
                "text:N": data.y.title,
                "n:Q": "Trials",
            }
        ),
    }

    def of(kind: str, mark: str, *filters: str, encoding: Spec | None = None, **style: Any) -> Spec:
        where: list[str | Spec] = [{"field": "kind", "equal": kind}, *filters]
        clip: Spec = {} if data.y.limits is None else {"clip": True}
        return layer(mark, {**shared, **(encoding or {})}, where=where, **clip, **style)

    drawn: list[Spec] = []
    # Layers without rows are left out: a browser warns of their scales.
    # Broad and pale, below the measured line: both remain visible if they coincide.
    broad = {"strokeWidth": 5, "strokeOpacity": 0.45}
    # Each form of theory is a line.
    by_form = {"detail": channel("form:N"), **_dashes(data)}
    drawn += [
        of(kind, "line", "!datum.alone", encoding=by_form, **broad)
        for kind in (THEORY, FAIR)
        if data.lines(kind)
    ]
    if data.x.quantitative and any("label" in row for row in data.rows):
        label = {"text": channel("label:N")}
        name: Spec = {"align": "left", "dx": 7, "fontSize": 11}
        drawn.append(of(THEORY, "text", "isValid(datum.label)", encoding=label, **name))
    if data.lines(BOUND):
        drawn.append(of(BOUND, "line", "!datum.alone", encoding=_dashes(data), strokeWidth=1.6))
    # A form that applies at a single point is a tick, not a line.
    alone = ("datum.alone",) if data.x.quantitative else ()
    tick: Spec = {"shape": "stroke", "filled": False, "size": _TICK**2, "strokeWidth": 1.6}
    drawn += [
        of(kind, "point", *alone, encoding=_dashes(data), **tick) for kind in FIGURES if data.ticks(kind)
    ]
    if data.x.quantitative:
        drawn.append(of(MEASURED, "line", strokeWidth=1.8))
    if any("low" in row for row in data.rows):
        ends = {"y": channel("low:Q", title=y_title or None, scale=scale), "y2": {"field": "high"}}
        bars = {"ticks": {"size": 7}, "thickness": 1.6}
        drawn.append(of(MEASURED, "errorbar", "isValid(datum.low)", encoding=ends, **bars))
    by_shape = {"shape": shape}
    drawn.append(of(MEASURED, "point", encoding=by_shape, filled=True, size=46))
    if data.has(SOURCE):
        drawn.append(of(SOURCE, "point", encoding=by_shape, filled=False, size=62, strokeWidth=1.6))
    drawn[-1]["name"] = _CHOSEN
    return drawn


def _dashes(data: ChartData) -> Spec:
    """The encoding of theory and upper bounds by dashes, with a legend of their own."""
    kinds = [kind for kind in FIGURES if data.has(kind)]
    dashes = _DASHES if any(map(data.lines, kinds)) else _TICK_DASHES
    names_of_kinds = " : ".join(f"datum.label == '{kind}' ? '{FIGURES[kind]}'" for kind in kinds)
    legend = {
        "title": None,
        "labelExpr": f"{names_of_kinds} : datum.label",
        "symbolType": "stroke",
        "symbolSize": _TICK**2,
        "symbolStrokeColor": theme.SOFT,
        "symbolStrokeWidth": 1.6,
    }
    scale = {"domain": kinds, "range": [dashes[kind] for kind in kinds]}
    return {"strokeDash": channel("kind:N", scale=scale, sort=kinds, legend=legend)}


def _x(data: ChartData, width: int) -> Spec:
    if not data.x.quantitative:
        sort = list(data.x.ticks) or data.series
        axis: Spec = {"labelAngle": theme.label_angle(sort, width)}
        return channel("x:N", title=data.x.title or None, sort=sort, axis=axis)
    ticks = list(data.x.ticks)
    first, last = min(ticks), max(ticks)
    scale: Spec = {"type": "log" if data.x.log else "linear", "domain": [first, last]}
    axis = {"labelExpr": _PLAIN, "labelOverlap": True}
    if data.x.linear_below is not None:
        scale |= {"type": "symlog", "constant": data.x.linear_below}
        decades = chart_data.log_ticks(data.x.linear_below, last)
        axis |= {"values": [0, *(tick for tick in decades if tick <= last)], "labelOverlap": "greedy"}
    else:
        axis |= {"values": ticks} if len(ticks) <= 12 else {"tickCount": 8}
    return channel(
        "x:Q", title=data.x.title or None, axis=axis, scale={**scale, "nice": False, "padding": 12}
    )


def _y_scale(data: ChartData) -> tuple[Spec, Spec]:
    """The scale and the axis of the metric."""
    limits = {} if data.y.limits is None else {"domain": list(data.y.limits), "nice": False}
    if not data.y.log:
        return limits | {"zero": data.y.limits is None}, {"tickCount": 6}
    domain = list(data.y.limits or (data.y.ticks[0], data.y.ticks[-1]))
    scale = {"type": "log", "domain": domain, "nice": False}
    # A narrow range has no or few ticks at 1, 2 and 5.
    ticks = {"values": list(data.y.ticks)} if len(data.y.ticks) > 1 else {"tickCount": 6}
    return scale, {**ticks, "labelExpr": _PLAIN}
