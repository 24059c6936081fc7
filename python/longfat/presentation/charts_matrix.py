"""A matrix of two things that have no order, such as controllers and queue disciplines: a heat map."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import altair as alt

from longfat.presentation import chart_data, formatting
from longfat.presentation.chart_data import MEASURED
from longfat.presentation.charts import LETTER, configured, titled

if TYPE_CHECKING:
    from longfat.presentation.charts import Spec
    from longfat.results import RunResult

LEAST_ROWS, LEAST_COLUMNS = 3, 3
"""Smaller matrices read better as points."""


def suits(run: RunResult, metric: str) -> bool:
    """Whether a run's protocols and the words of one swept key make a matrix."""
    data = chart_data.collect(run, metric)
    words = data.x_key is not None and not data.x.quantitative
    return words and len(data.series) >= LEAST_ROWS and len(data.x.ticks) >= LEAST_COLUMNS


def chart(run: RunResult, metric: str, *, width: int = 620, title: bool = True) -> Spec:
    """Protocols down, the swept words across: the darker a field, the larger its mean, which stands in it.

    Worlds and further swept keys have a matrix each.
    """
    data = chart_data.collect(run, metric)
    found = [row | {"short": formatting.digits(row["y"])} for row in data.rows if row["kind"] == MEASURED]
    if not found:
        raise ValueError(f"this run measured no {metric}")
    panels = {(row["world"], row["panel"]): None for row in found}
    for row in found:
        row["place"] = ", ".join(part for part in _place(row, data) if part)
    middle = (min(row["y"] for row in found) + max(row["y"] for row in found)) / 2
    across = width - 120
    columns = list(data.x.ticks)
    # Words that are wider than their column stand aslant.
    narrow = max(len(str(word)) for word in columns) * LETTER > across / len(columns)
    axis = alt.Axis(labelAngle=-35 if narrow else 0, orient="top")
    base = alt.Chart(alt.InlineData(values=found)).encode(
        x=alt.X("x:N", sort=columns, title=data.x.title, axis=axis),
        y=alt.Y("series:N", sort=data.series, title=None),
        tooltip=[
            alt.Tooltip("series:N", title="Protocol"),
            alt.Tooltip("x:N", title=data.x.title),
            alt.Tooltip("told:N", title=data.y.title),
            alt.Tooltip("n:Q", title="Trials"),
        ],
    )
    fields = base.mark_rect().encode(
        color=alt.Color("y:Q", scale=alt.Scale(scheme="blues"), title=data.y.title)
    )
    ink = alt.condition(f"datum.y > {middle}", alt.value("white"), alt.value("#24292f"))
    numbers = base.mark_text(fontSize=12).encode(text="short:N", color=ink)
    made: Any = alt.layer(fields, numbers).properties(width=across, height=34 * len(data.series))
    if len(panels) > 1:
        made = made.facet(facet=alt.Facet("place:N", title=None), columns=1)
    if title:
        made = titled(made, run, metric, caption(run, metric).removesuffix("."))
    spec: Spec = json.loads(configured(made).to_json())
    return spec


def _place(row: dict[str, Any], data: chart_data.ChartData) -> tuple[str, str]:
    return (row["world"] if len(data.worlds) > 1 else "", row["panel"])


def caption(run: RunResult, metric: str) -> str:
    """How to read the chart, in a line."""
    unit = chart_data.collect(run, metric).y.title
    return f"{unit}: the mean of each field's trials; the tables below give the intervals."
