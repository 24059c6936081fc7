"""Charts: a Vega-Lite specification per metric, drawn in a browser or exported as SVG, PNG and PDF."""

from __future__ import annotations

import copy
import textwrap
from typing import TYPE_CHECKING, Any, Literal

import vl_convert

from longfat.analysis.statistics import method
from longfat.presentation import chart_data, formatting, names, notes
from longfat.presentation.chart_data import BOUND, MEASURED, SOURCE, THEORY, ChartData
from longfat.presentation.vega_bundle import SCHEMA, VEGA_LITE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longfat.results.run import RunResult

Format = Literal["svg", "png", "pdf", "html"]
Spec = dict[str, Any]

# Okabe and Ito's colour-blind safe palette (Wong, Nature Methods 8, 2011), darkest first; then darker colours
# for charts of many protocols, since no two protocols may share a colour.
PALETTE = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F", "#B8A800"),
    *("#332288", "#882255", "#8B5A2B", "#111111"),
)
SHAPES = (
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "triangle-down",
    "cross",
    "triangle-right",
    "triangle-left",
)
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', Arial, sans-serif"
PNG_SCALE = 2.0
MOST_ACROSS = 3
"""Maximum number of panels side by side."""

_TITLE, LABEL = 13, 12
LETTER = 7.0
"""Average width of a letter of an axis title, in px."""
TITLE_LETTER, SUBTITLE_LETTER = 8.5, 6.2
"""The same of a chart's title and subtitle."""
_SYMBOL = 30
"""Width of an entry of a legend in px, without its text."""
MOST_ENTRIES = 4
"""Maximum number of entries of a legend side by side."""
_NARROWEST = 12
"""Minimum letters per line of an axis title."""
_CHOSEN = "chosen"
_CONFIG: Spec = {
    "font": FONT,
    "background": "white",
    "padding": 10,
    "axis": {
        "labelFontSize": LABEL,
        "titleFontSize": _TITLE,
        "titleFontWeight": "normal",
        "gridColor": "#e4e7eb",
        "titlePadding": 8,
    },
    "legend": {
        "labelFontSize": LABEL,
        "titleFontSize": LABEL,
        "titleLimit": 0,
        "labelLimit": 0,
        "orient": "bottom",
        "columns": MOST_ENTRIES,
        "symbolSize": 80,
    },
    "view": {"stroke": None},
}
# Numbers in full: the default formats round to the digits in which the ticks differ.
_PLAIN = "format(datum.value, '~f')"


def chart(run: RunResult, metric: str = "goodput_bps", *, width: int = 620, title: bool = True) -> Spec:
    """The chart of one metric over the sweep, as a Vega-Lite specification with inline data.

    Lines connect measured means, bars show their intervals, broad dashes are theory and hollow points the
    source's figures. Worlds are side by side, further swept keys below each other. `width` is in px for all
    worlds together. Raises ValueError if the run did not measure the metric.

    The specification is written directly, without Altair: Altair validates each part many times, which takes
    longer than drawing, and a report has ten of these charts.
    """
    data = chart_data.collect(run, metric)
    if not data.rows:
        raise ValueError(f"this run measured no {metric}")
    # With one world, panels of the other swept key are side by side if they fit.
    across = "panel" if len(data.worlds) == 1 and 1 < len(data.panels) <= MOST_ACROSS else "world"
    columns = len(data.panels) if across == "panel" else len(data.worlds)
    rows = 1 if across == "panel" else len(data.panels)
    panel_width = max(220, round(width / columns) - (30 if columns > 1 else 0))
    height = 300 if rows == 1 else 200
    plot: Spec = {
        "layer": _layers(data, wrapped(data.y.title, height), width),
        "width": panel_width,
        "height": height,
    }
    if columns > 1 or rows > 1:
        facet: Spec = {}
        header = {"title": None, "labelFontSize": _TITLE, "labelFontWeight": "bold", "labelOrient": "top"}
        if columns > 1:
            order = data.panels if across == "panel" else data.worlds
            facet["column"] = {"field": across, "type": "nominal", "sort": order, "header": header}
        if rows > 1:
            facet["row"] = {"field": "panel", "type": "nominal", "sort": data.panels, "header": header}
        plot = {"facet": facet, "spec": plot}
    # Altair keeps a selection of layers only at the top.
    chosen = {"type": "point", "fields": ["series"]}
    params = [{"name": _CHOSEN, "select": chosen, "bind": "legend", "views": [_CHOSEN]}]
    data_of = {"$schema": SCHEMA, "data": {"values": data.rows}}
    spec: Spec = {**data_of, **plot, "params": params, "config": config()}
    if title:
        spec["title"] = _title(run, metric, _caption(run, data), width)
    return spec


def titled(made: Any, run: RunResult, metric: str, subtitle: str, width: int) -> Any:
    """An Altair chart with the study's title and a subtitle."""
    return made.properties(title=_title(run, metric, subtitle, width))


def _title(run: RunResult, metric: str, subtitle: str, width: int) -> Spec:
    return heading(names.metric_title(metric), run, subtitle, width)


def heading(text: str, run: RunResult, subtitle: str, width: int) -> Spec:
    """The title of a chart of a run: what it shows and the study's title, and a subtitle."""
    return {
        "text": textwrap.wrap(f"{text}: {run.study.title}", int(width / TITLE_LETTER)),
        "subtitle": textwrap.wrap(subtitle, int(width / SUBTITLE_LETTER)),
        "anchor": "start",
        "fontSize": 15,
        "subtitleFontSize": LABEL,
        "subtitleColor": "#57606a",
        "offset": 14,
    }


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
    parts += _marks(data, THEORY, "dashed", "broad ticks", "theory")
    parts += _marks(data, BOUND, "dotted", "thin ticks", "upper bound")
    if SOURCE in data.kinds:
        parts.append("hollow points: figures of the source")
    return "; ".join(parts)


def _marks(data: ChartData, kind: str, line: str, tick: str, meaning: str) -> list[str]:
    """Explains how a kind of row is drawn: as lines, as ticks at single points, or both."""
    drawn = [line] * data.lines(kind) + [tick] * data.ticks(kind)
    return [f"{' and '.join(drawn)}: {meaning}"] if drawn else []


def _layers(data: ChartData, y_title: list[str], width: int) -> list[Spec]:
    color = series_color(data.series, width)
    shared: Spec = {
        "x": _x(data),
        "color": color,
        "opacity": {"condition": {"param": _CHOSEN, "value": 1.0}, "value": 0.12},
        "tooltip": [
            _text("series", "Protocol"),
            _text("kind", "Figure"),
            _text("x_text", data.x.title or "Point"),
            _text("text", data.y.title),
            {"field": "n", "type": "quantitative", "title": "Trials"},
        ],
    }
    y = {
        "field": "y",
        "type": "quantitative",
        "title": y_title,
        "scale": _y_scale(data),
        "axis": _y_axis(data),
    }
    shape = {
        "field": "series",
        "type": "nominal",
        "scale": {"domain": data.series, "range": repeated(SHAPES, len(data.series))},
        "sort": data.series,
        "title": "Protocol",
        "legend": color["legend"],
    }

    def layer(kind: str, mark: str, style: Spec, *filters: str, **encoding: Any) -> Spec:
        return {
            "transform": [
                {"filter": {"field": "kind", "equal": kind}},
                *({"filter": one} for one in filters),
            ],
            "mark": {"type": mark, **style},
            "encoding": {**shared, "y": y, **encoding},
        }

    drawn: list[Spec] = []
    alone: tuple[str, ...] = ()
    if data.x.quantitative:
        # Broad and pale, below the measured line: both remain visible if they coincide.
        # Each form of theory is a line.
        dashes = {"strokeWidth": 5, "strokeDash": [7, 5], "strokeOpacity": 0.45}
        form = {"field": "form", "type": "nominal"}
        if data.lines(THEORY):
            drawn.append(layer(THEORY, "line", dashes, "!datum.alone", detail=form))
        if any("label" in row for row in data.rows):
            name = {"align": "left", "dx": 7, "fontSize": 11}
            label = {"field": "label", "type": "nominal"}
            drawn.append(layer(THEORY, "text", name, "isValid(datum.label)", text=label))
        if data.lines(BOUND):
            dots = {"strokeWidth": 1.6, "strokeDash": [1.5, 3.5]}
            drawn.append(layer(BOUND, "line", dots, "!datum.alone"))
        # A form that applies at a single point is a tick, not a line.
        alone = ("datum.alone",)
    tick = {"orient": "horizontal", "size": 22}
    # Layers without rows are left out: a browser warns of their scales.
    if data.ticks(THEORY):
        drawn.append(layer(THEORY, "tick", {**tick, "thickness": 5, "opacity": 0.45}, *alone))
    if data.ticks(BOUND):
        drawn.append(layer(BOUND, "tick", {**tick, "thickness": 1.6}, *alone))
    if data.x.quantitative:
        drawn.append(layer(MEASURED, "line", {"strokeWidth": 1.8}))
    low = {key: value for key, value in y.items() if key != "axis"} | {"field": "low"}
    bars = {"ticks": {"size": 7}, "thickness": 1.6}
    if any("low" in row for row in data.rows):
        drawn.append(layer(MEASURED, "errorbar", bars, "isValid(datum.low)", y=low, y2={"field": "high"}))
    drawn.append(layer(MEASURED, "point", {"filled": True, "size": 46}, shape=shape))
    if SOURCE in data.kinds:
        drawn.append(layer(SOURCE, "point", {"filled": False, "size": 62, "strokeWidth": 1.6}, shape=shape))
    drawn[-1]["name"] = _CHOSEN
    return drawn


def _text(field: str, title: str) -> Spec:
    return {"field": field, "type": "nominal", "title": title}


def _x(data: ChartData) -> Spec:
    if not data.x.quantitative:
        sort = list(data.x.ticks) or data.series
        return {
            "field": "x",
            "type": "nominal",
            "title": data.x.title or None,
            "sort": sort,
            "axis": {"labelAngle": 0},
        }
    ticks = list(data.x.ticks)
    kind, details = "log" if data.x.log else "linear", {}
    axis: Spec = {"labelExpr": _PLAIN, "labelOverlap": True, "tickCount": 8}
    if data.x.linear_below is not None:
        kind, details = "symlog", {"constant": data.x.linear_below}
        decades = [
            tick for tick in chart_data.log_ticks(data.x.linear_below, max(ticks)) if tick <= max(ticks)
        ]
        axis = {"values": [0, *decades], "labelExpr": _PLAIN, "labelOverlap": "greedy"}
    elif len(ticks) <= 12:
        axis = {"values": ticks, "labelExpr": _PLAIN, "labelOverlap": True}
    span = [min(ticks), max(ticks)]
    return {
        "field": "x",
        "type": "quantitative",
        "title": data.x.title,
        "axis": axis,
        "scale": {"type": kind, "domain": span, "nice": False, "padding": 12, **details},
    }


def _y_scale(data: ChartData) -> Spec:
    if not data.y.log:
        return {"zero": True}
    return {"type": "log", "domain": [data.y.ticks[0], data.y.ticks[-1]], "nice": False}


def _y_axis(data: ChartData) -> Spec:
    if not data.y.log:
        return {"tickCount": 6}
    return {"values": list(data.y.ticks), "labelExpr": _PLAIN}


def wrapped(title: str, height: int) -> list[str]:
    """A title wrapped to the length of its axis, in px.

    >>> wrapped("Flow completion time, 99th percentile (ms)", 220)
    ['Flow completion time, 99th', 'percentile (ms)']
    """
    return textwrap.wrap(title, max(_NARROWEST, int(height / LETTER)))


def series_color(series: Sequence[str], width: int = 620) -> Spec:
    """The colour encoding by protocol with its legend, as Vega-Lite; `width` is that of the chart in px."""
    entry = max(map(len, series), default=0) * LETTER + _SYMBOL
    return {
        "legend": {"columns": max(1, min(MOST_ENTRIES, int(width / entry)))},
        "field": "series",
        "type": "nominal",
        "scale": {"domain": list(series), "range": repeated(PALETTE, len(series))},
        "sort": list(series),
        "title": "Protocol",
    }


def coloured(series: Sequence[str], width: int = 620) -> Any:
    """The colour encoding by protocol with its legend, for Altair."""
    import altair as alt

    return alt.Color.from_dict(series_color(series, width))


def repeated(of: tuple[str, ...], count: int) -> list[str]:
    """The first `count` values of a repeated sequence."""
    return [of[i % len(of)] for i in range(count)]


def config() -> Spec:
    """The fonts and colours that all charts share."""
    return copy.deepcopy(_CONFIG)


def configured(made: Any) -> Any:
    """An Altair chart with the shared fonts and colours."""
    return made.configure(**config())


def render(spec: Spec, fmt: Format) -> bytes:
    """Returns a chart as a file. Needs no network; a PNG has two pixels per px.

    Raises ValueError for an unknown format.
    """
    if fmt == "svg":
        return vl_convert.vegalite_to_svg(spec, vl_version=VEGA_LITE).encode()
    if fmt == "png":
        return bytes(vl_convert.vegalite_to_png(spec, vl_version=VEGA_LITE, scale=PNG_SCALE))
    if fmt == "pdf":
        return bytes(vl_convert.vegalite_to_pdf(spec, vl_version=VEGA_LITE))
    if fmt == "html":
        return vl_convert.vegalite_to_html(spec, vl_version=VEGA_LITE, bundle=True).encode()
    raise ValueError(f'unknown chart format "{fmt}"; allowed: svg, png, pdf, html')
