"""What all charts share: colours, shapes, fonts, titles and the legend of protocols."""

from __future__ import annotations

import copy
import textwrap
from typing import TYPE_CHECKING, Any, TypeVar

from longfat.presentation.charts.bundle import SCHEMA
from longfat.presentation.charts.vega import Spec, channel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longfat.results.run import RunResult

Value = TypeVar("Value")

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
INK, SOFT = "#24292f", "#57606a"
TITLE, LABEL = 13, 12
LETTER = 7.0
"""Average width of a letter of an axis title, in px."""
TITLE_LETTER, SUBTITLE_LETTER = 8.5, 6.2
"""The same of a chart's title and subtitle."""
_SYMBOL = 30
"""Width of an entry of a legend in px, without its text."""
MOST_ENTRIES = 4
"""Maximum number of entries of a legend side by side."""
STACKED_LEGENDS: Spec = {
    # Vega-Lite's schema only has the form of an expression.
    "legend": {
        "layout": {"expr": "{bottom: {anchor: 'start', direction: 'vertical', margin: 8, offset: 18}}"}
    }
}
"""The configuration of a chart whose legends are below each other, all at the bottom."""
_NARROWEST = 12
"""Minimum letters per line of an axis title."""
_CONFIG: Spec = {
    "font": FONT,
    "background": "white",
    "padding": 10,
    "axis": {
        "labelFontSize": LABEL,
        "titleFontSize": TITLE,
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


def chart(plot: Spec, title: Spec | None = None) -> Spec:
    """Returns a plot as a whole specification, with the shared fonts and colours, and its own legends."""
    titled = {} if title is None else {"title": title}
    config = copy.deepcopy(_CONFIG)
    config["legend"] |= plot.get("config", {}).get("legend", {})
    return {"$schema": SCHEMA, **plot, "config": config, **titled}


def heading(text: Sequence[str] | str, subtitle: Sequence[str], offset: int = 14) -> Spec:
    """Returns a title with its subtitle, both as lines."""
    return {
        "text": text,
        "subtitle": subtitle,
        "anchor": "start",
        "fontSize": 15,
        "subtitleFontSize": LABEL,
        "subtitleColor": SOFT,
        "offset": offset,
    }


def title(text: str, width: int) -> Spec | None:
    """Returns a title alone, wrapped to a width in px; None for an empty text."""
    return heading(textwrap.wrap(text, int(width / TITLE_LETTER)), []) if text.strip() else None


def run_heading(text: str, run: RunResult, subtitle: str, width: int) -> Spec:
    """Returns the title of a chart of a run: what it shows with the study's title, and a subtitle."""
    lines = textwrap.wrap(f"{text}: {run.study.title}", int(width / TITLE_LETTER))
    return heading(lines, textwrap.wrap(subtitle, int(width / SUBTITLE_LETTER)))


def wrapped(title: str, height: int) -> list[str]:
    """A title wrapped to the length of its axis, in px.

    >>> wrapped("Flow completion time, 99th percentile (ms)", 220)
    ['Flow completion time, 99th', 'percentile (ms)']
    """
    return textwrap.wrap(title, max(_NARROWEST, int(height / LETTER)))


def label_angle(labels: Sequence[str], width: int) -> int:
    """Returns the angle of the labels of an axis: slanted if one is wider than its part of the width in px.

    >>> label_angle(["reno", "cubic"], 300), label_angle(["QUIC BBRv3", "QUIC CUBIC"], 100)
    (0, -35)
    """
    return -35 if max(map(len, labels), default=0) * LETTER > width / max(1, len(labels)) else 0


def series_color(series: Sequence[str], width: int = 620) -> Spec:
    """The colour encoding by protocol with its legend; `width` is that of the chart in px."""
    entry = max(map(len, series), default=0) * LETTER + _SYMBOL
    legend = {"columns": max(1, min(MOST_ENTRIES, int(width / entry)))}
    return {**_series(series, PALETTE), "legend": legend}


def series_shape(series: Sequence[str]) -> Spec:
    """The encoding of protocols by the shape of their points."""
    return _series(series, SHAPES)


def series_dash(series: Sequence[str], dashes: Sequence[Sequence[int]], legend: Spec) -> Spec:
    """The encoding of protocols by the dashes of their lines, in the legend of their colours."""
    return {**_series(series, dashes), "legend": legend}


def _series(series: Sequence[str], values: Sequence[Any]) -> Spec:
    scale = {"domain": list(series), "range": repeated(values, len(series))}
    return channel("series:N", scale=scale, sort=list(series), title="Protocol")


def repeated(of: Sequence[Value], count: int) -> list[Value]:
    """The first `count` values of a repeated sequence."""
    return [of[i % len(of)] for i in range(count)]
