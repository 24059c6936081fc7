"""A heat map of two unordered dimensions, such as controllers and queue disciplines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longfat.presentation import formatting, names
from longfat.presentation.charts import theme
from longfat.presentation.charts.theme import INK, LABEL
from longfat.presentation.charts.vega import channel, layer, tooltip
from longfat.presentation.run import notes
from longfat.presentation.run.charts import data as chart_data
from longfat.presentation.run.charts.data import MEASURED, ChartData
from longfat.presentation.run.charts.options import USUAL

if TYPE_CHECKING:
    from longfat.presentation.charts.vega import Row, Spec
    from longfat.presentation.run.charts.options import Options
    from longfat.results.run import RunResult

LEAST_ROWS, LEAST_COLUMNS = 3, 3
"""Smaller matrices are easier to read as points."""


def suits(run: RunResult, metric: str) -> bool:
    """Whether a run has enough protocols and values of a swept key without order."""
    data = chart_data.collect(run, metric)
    is_large = len(data.series) >= LEAST_ROWS and len(data.x.ticks) >= LEAST_COLUMNS
    return is_large and not data.x.quantitative


def chart(run: RunResult, metric: str, *, width: int = 620) -> Spec:
    """Protocols down, swept values across; each field shows its mean, darker for larger values.

    Each world and each point of further swept keys is a matrix.
    """
    subtitle = caption(run, metric).removesuffix(".")
    title = theme.run_heading(names.metric_title(metric), run, subtitle, width)
    return theme.chart(plot(chart_data.collect(run, metric), metric, width), title)


def plot(
    data: ChartData, metric: str, width: int, height: int | None = None, options: Options = USUAL
) -> Spec:
    """The chart without its title; `height` is that of each matrix in px."""
    found = [row | {"short": formatting.digits(row["y"])} for row in data.drawn if row["kind"] == MEASURED]
    if not found:
        raise ValueError(f"this run measured no {metric}")
    panels = {(row["world"], row["panel"]): None for row in found}
    for row in found:
        row["place"] = ", ".join(part for part in _place(row, data) if part)
    middle = (min(row["y"] for row in found) + max(row["y"] for row in found)) / 2
    across = max(40, width - 120)
    columns = list(data.x.ticks)
    axis = {"labelAngle": theme.label_angle(columns, across), "orient": "top"}
    shared = {
        "x": channel("x:N", sort=columns, title=data.x.title or None, axis=axis),
        "y": channel("series:N", sort=data.series, title=options.label("y", "") or None),
        "tooltip": tooltip(
            {"series:N": "Protocol", "x:N": data.x.title, "text:N": data.y.title, "n:Q": "Trials"}
        ),
    }
    shade = channel("y:Q", scale={"scheme": "blues"}, title=data.y.title)
    ink = {"condition": {"test": f"datum.y > {middle}", "value": "white"}, "value": INK}
    drawn: Spec = {
        "layer": [
            layer("rect", shared | {"color": shade}),
            layer("text", shared | {"text": channel("short:N"), "color": ink}, fontSize=LABEL),
        ],
        "width": across,
        "height": 34 * len(data.series) if height is None else height,
    }
    if len(panels) > 1:
        drawn = {
            "facet": channel("place:N", header={"title": None, "labelFontSize": LABEL}),
            "spec": drawn,
            "columns": 1,
        }
    return {"data": {"values": found}, **drawn}


def _place(row: Row, data: chart_data.ChartData) -> tuple[str, str]:
    return (row["world"] if len(data.worlds) > 1 else "", row["panel"])


def caption(run: RunResult, metric: str) -> str:
    """How to read the chart."""
    unit = chart_data.collect(run, metric).y.title
    return f"{unit}: means over trials ({notes.trials([cell for cell in run.cells if cell.n])})."
