"""Charts: one Vega-Lite specification a metric, drawn in a browser or, offline, as SVG, PNG and PDF."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING, Any, Literal

import altair as alt
import vl_convert

from longfat.analysis import chart_data, formatting, grid
from longfat.analysis.chart_data import BOUND, MEASURED, SOURCE, THEORY, ChartData
from longfat.analysis.statistics import method
from longfat.analysis.vega_bundle import VEGA_LITE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longfat.results import RunResult

Format = Literal["svg", "png", "pdf", "html"]
Spec = dict[str, Any]

# Okabe and Ito's palette, which the colour-blind tell apart (Wong, Nature Methods 8, 2011), darkest first;
# then darker ones for charts of many protocols, of which two in one colour would be taken for one.
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
"""The most panels side by side."""

_TITLE, LABEL = 13, 12
LETTER = 7.0
"""Width of a letter of an axis' title on average, in px."""
_NARROWEST = 12
"""Letters of a line of such a title, at least."""
# Numbers in full: the axis' own formats round to the digits that its ticks differ in.
_PLAIN = "format(datum.value, '~f')"


def chart(run: RunResult, metric: str = "goodput_bps", *, width: int = 620, title: bool = True) -> Spec:
    """The chart of one metric over the sweep, as a Vega-Lite specification with its data in it.

    Lines join measured means with the bars of their intervals; broad dashes are theory, hollow points the
    source's own figures. Worlds stand side by side, further swept keys one below the other. `width` is in px,
    for all worlds together. Raises ValueError where the run did not measure the metric.
    """
    data = chart_data.collect(run, metric)
    if not data.rows:
        raise ValueError(f"this run measured no {metric}")
    # With one world the other swept key goes across, if there is room for its values.
    across = "panel" if len(data.worlds) == 1 and 1 < len(data.panels) <= MOST_ACROSS else "world"
    columns = len(data.panels) if across == "panel" else len(data.worlds)
    rows = 1 if across == "panel" else len(data.panels)
    panel_width = max(220, round(width / columns) - (30 if columns > 1 else 0))
    height = 300 if rows == 1 else 200
    layers = _layers(data, wrapped(data.y.title, height)).properties(width=panel_width, height=height)
    # Altair's plots of layers do not share a static type; the top level is a Chart of some kind.
    made: Any = layers
    if columns > 1 or rows > 1:
        facets: dict[str, Any] = {}
        header = alt.Header(title=None, labelFontSize=_TITLE, labelFontWeight="bold", labelOrient="top")
        if columns > 1:
            order = data.panels if across == "panel" else data.worlds
            facets["column"] = alt.Column(f"{across}:N", sort=order, header=header)
        if rows > 1:
            facets["row"] = alt.Row("panel:N", sort=data.panels, header=header)
        made = layers.facet(**facets)
    if title:
        made = titled(made, run, metric, _caption(run, data))
    made = configured(made)
    spec: Spec = json.loads(made.to_json())
    return spec


def titled(made: Any, run: RunResult, metric: str, subtitle: str) -> Any:
    """A chart with the study's title and, below it, how it is read."""
    about = alt.TitleParams(
        f"{formatting.metric_title(metric)}: {run.study.title}",
        subtitle=subtitle,
        anchor="start",
        fontSize=15,
        subtitleFontSize=LABEL,
        subtitleColor="#57606a",
        offset=14,
    )
    return made.properties(title=about)


def caption(run: RunResult, metric: str) -> str:
    """How to read the chart of a metric, in a line."""
    return _caption(run, chart_data.collect(run, metric)) + "."


def _caption(run: RunResult, data: ChartData) -> str:
    counts = sorted({cell.n for cell in run.cells if cell.n})
    how = ", ".join(dict.fromkeys(method(n) for n in counts))
    parts = [f"Bars: 95 % intervals ({grid.trials_text(run)}; {how})"]
    if THEORY in data.kinds:
        parts.append("broad dashes: theory")
    if BOUND in data.kinds:
        parts.append("dots: what cannot be exceeded")
    if SOURCE in data.kinds:
        parts.append("hollow points: the source's figures")
    return "; ".join(parts)


def _layers(data: ChartData, y_title: list[str]) -> Any:
    source: Any = alt.InlineData(values=data.rows)
    chosen = alt.selection_point(fields=["series"], bind="legend")
    base = alt.Chart(source).encode(
        x=_x(data),
        color=coloured(data.series),
        opacity=alt.condition(chosen, alt.value(1.0), alt.value(0.12)),
        tooltip=[
            alt.Tooltip("series:N", title="Protocol"),
            alt.Tooltip("kind:N", title="Figure"),
            alt.Tooltip("x_told:N", title=data.x.title or "Point"),
            alt.Tooltip("told:N", title=data.y.title),
            alt.Tooltip("n:Q", title="Trials"),
        ],
    )
    y = alt.Y("y:Q", title=y_title, scale=_y_scale(data), axis=_y_axis(data))
    shapes = alt.Shape(
        "series:N",
        scale=alt.Scale(domain=data.series, range=repeated(SHAPES, len(data.series))),
        sort=data.series,
        title="Protocol",
    )
    drawn: list[Any] = []
    theory = _only(base, THEORY)
    bound = _only(base, BOUND)
    if data.x.quantitative:
        # Broad and pale, below the measured line, so that it shows where both agree.
        # Several forms of theory for one series are as many lines.
        line = theory.mark_line(strokeWidth=5, strokeDash=[7, 5], strokeOpacity=0.45)
        drawn.append(line.encode(y=y, detail="form:N"))
        named = theory.transform_filter("isValid(datum.label)").mark_text(align="left", dx=7, fontSize=11)
        drawn.append(named.encode(y=y, text="label:N"))
        drawn.append(bound.mark_line(strokeWidth=1.6, strokeDash=[1.5, 3.5]).encode(y=y))
        # A form that holds at one point alone makes no line.
        theory, bound = theory.transform_filter("datum.alone"), bound.transform_filter("datum.alone")
    drawn.append(theory.mark_tick(orient="horizontal", thickness=5, size=22, opacity=0.45).encode(y=y))
    drawn.append(bound.mark_tick(orient="horizontal", thickness=1.6, size=22).encode(y=y))
    if data.x.quantitative:
        drawn.append(_only(base, MEASURED).mark_line(strokeWidth=1.8).encode(y=y))
    measured = _only(base, MEASURED)
    bars = measured.transform_filter("isValid(datum.low)").mark_errorbar(ticks={"size": 7}, thickness=1.6)
    drawn.append(bars.encode(y=alt.Y("low:Q", title=y_title, scale=_y_scale(data)), y2=alt.Y2("high:Q")))
    drawn.append(measured.mark_point(filled=True, size=46).encode(y=y, shape=shapes))
    if SOURCE in data.kinds:
        own = _only(base, SOURCE)
        drawn.append(own.mark_point(filled=False, size=62, strokeWidth=1.6).encode(y=y, shape=shapes))
    drawn[-1] = drawn[-1].add_params(chosen)
    return alt.layer(*drawn, data=source)


def _only(base: Any, kind: str) -> Any:
    return base.transform_filter(alt.FieldEqualPredicate(field="kind", equal=kind))


def _x(data: ChartData) -> Any:
    if not data.x.quantitative:
        sort = list(data.x.ticks) or data.series
        return alt.X("x:N", title=data.x.title or None, sort=sort, axis=alt.Axis(labelAngle=0))
    ticks = list(data.x.ticks)
    kind: Any = "log" if data.x.log else "linear"
    details: dict[str, Any] = {}
    axis = alt.Axis(labelExpr=_PLAIN, labelOverlap=True, tickCount=8)
    if data.x.linear_below is not None:
        kind, details = "symlog", {"constant": data.x.linear_below}
        decades = [
            tick for tick in chart_data.log_ticks(data.x.linear_below, max(ticks)) if tick <= max(ticks)
        ]
        axis = alt.Axis(values=[0, *decades], labelExpr=_PLAIN, labelOverlap="greedy")
    elif len(ticks) <= 12:
        axis = alt.Axis(values=ticks, labelExpr=_PLAIN, labelOverlap=True)
    span = [min(ticks), max(ticks)]
    return alt.X(
        "x:Q",
        title=data.x.title,
        axis=axis,
        scale=alt.Scale(type=kind, domain=span, nice=False, padding=12, **details),
    )


def _y_scale(data: ChartData) -> Any:
    if not data.y.log:
        return alt.Scale(zero=True)
    return alt.Scale(type="log", domain=[data.y.ticks[0], data.y.ticks[-1]], nice=False)


def _y_axis(data: ChartData) -> Any:
    if not data.y.log:
        return alt.Axis(tickCount=6)
    return alt.Axis(values=list(data.y.ticks), labelExpr=_PLAIN)


def wrapped(title: str, height: int) -> list[str]:
    """The lines of a title along an axis of so many px.

    >>> wrapped("Size over completion time, mean (Mbit/s)", 220)
    ['Size over completion time, mean', '(Mbit/s)']
    """
    return textwrap.wrap(title, max(_NARROWEST, int(height / LETTER)))


def coloured(series: Sequence[str]) -> alt.Color:
    """A colour a protocol, with its legend."""
    names = alt.Scale(domain=list(series), range=repeated(PALETTE, len(series)))
    return alt.Color("series:N", scale=names, sort=list(series), title="Protocol")


def repeated(of: tuple[str, ...], count: int) -> list[str]:
    """So many of these, from the start again where there are fewer."""
    return [of[i % len(of)] for i in range(count)]


def configured(made: Any) -> Any:
    """The fonts, colours and rules that all charts share."""
    return (
        made.configure(font=FONT, background="white", padding=10)
        .configure_axis(
            labelFontSize=LABEL,
            titleFontSize=_TITLE,
            titleFontWeight="normal",
            gridColor="#e4e7eb",
            titlePadding=8,
        )
        .configure_legend(
            labelFontSize=LABEL, titleFontSize=LABEL, titleLimit=0, orient="bottom", columns=4, symbolSize=80
        )
        .configure_view(stroke=None)
    )


def render(spec: Spec, fmt: Format) -> bytes:
    """A specification as a file's bytes. Needs no network; a PNG has two pixels for each px.

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
    raise ValueError(f'"{fmt}" is no format of a chart; allowed: svg, png, pdf, html')
