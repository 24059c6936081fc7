"""A heat map of two unordered dimensions, such as controllers and queue disciplines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import altair as alt

from longfat.presentation import chart_data, formatting
from longfat.presentation.chart_data import MEASURED
from longfat.presentation.charts import LETTER, configured, titled

if TYPE_CHECKING:
    from longfat.presentation.charts import Spec
    from longfat.results.run import RunResult

LEAST_ROWS, LEAST_COLUMNS = 3, 3
"""Smaller matrices are easier to read as points."""


def suits(run: RunResult, metric: str) -> bool:
    """Whether a run has enough protocols and values of a swept key without order."""
    data = chart_data.collect(run, metric)
    unordered = data.x_key is not None and not data.x.quantitative
    return unordered and len(data.series) >= LEAST_ROWS and len(data.x.ticks) >= LEAST_COLUMNS


def chart(run: RunResult, metric: str, *, width: int = 620, title: bool = True) -> Spec:
    """Protocols down, swept values across; each field shows its mean, darker for larger values.

    Each world and each point of further swept keys is a matrix.
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
    # Labels that are wider than their column are slanted.
    narrow = max(len(str(label)) for label in columns) * LETTER > across / len(columns)
    axis = alt.Axis(labelAngle=-35 if narrow else 0, orient="top")
    base = alt.Chart(alt.InlineData(values=found)).encode(
        x=alt.X("x:N", sort=columns, title=data.x.title, axis=axis),
        y=alt.Y("series:N", sort=data.series, title=None),
        tooltip=[
            alt.Tooltip("series:N", title="Protocol"),
            alt.Tooltip("x:N", title=data.x.title),
            alt.Tooltip("text:N", title=data.y.title),
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
        made = titled(made, run, metric, caption(run, metric).removesuffix("."), width)
    spec: Spec = json.loads(configured(made).to_json())
    return spec


def _place(row: dict[str, Any], data: chart_data.ChartData) -> tuple[str, str]:
    return (row["world"] if len(data.worlds) > 1 else "", row["panel"])


def caption(run: RunResult, metric: str) -> str:
    """How to read the chart."""
    unit = chart_data.collect(run, metric).y.title
    return f"{unit}: means over trials; the tables below show the intervals."
