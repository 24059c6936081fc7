"""A chart by host or class of flows: measured means and the fair share."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import altair as alt

from longfat.analysis import grid
from longfat.presentation import formatting, names, series_names
from longfat.presentation.charts import coloured, configured, titled, wrapped
from longfat.presentation.columns import Column
from longfat.study.vocabulary import AT_HOST

if TYPE_CHECKING:
    from longfat.presentation.charts import Spec
    from longfat.results.run import RunResult

MOST_PANELS = 6
"""Maximum number of panels, one per point of the sweep; the first points are drawn."""
_HEIGHT = 220

Row = dict[str, Any]


def rows(run: RunResult, metric: str) -> tuple[list[Row], str]:
    """A row for each cell and host, and their common unit.

    `y` is the mean with its interval from `low` to `high`, `fair` the theoretical value, if there is one.
    """
    of_host = {host: metric + AT_HOST + host for host in grid.hosts(run.cells, metric)}
    means = [c.metrics[name].mean for c in run.cells for name in of_host.values() if name in c.metrics]
    scale, unit = formatting.scale_for(means, names.unit_of(metric))
    found: list[Row] = []
    for cell in run.cells:
        panel = [cell.cell.world] if len(grid.worlds(run.cells)) > 1 else []
        panel += [point] if (point := names.point(grid.point_params(run.study, cell.cell))) else []
        for host, name in of_host.items():
            interval = cell.metrics.get(name)
            if interval is None:
                continue
            row: Row = {
                "host": host,
                "series": series_names.series_name(run.study, cell.cell),
                "panel": ", ".join(panel),
                "y": interval.mean / scale,
                "text": f"{Column(name, scale, unit).measured(cell)} {unit}".strip(),
            }
            if math.isfinite(interval.low) and math.isfinite(interval.high):
                row |= {"low": interval.low / scale, "high": interval.high / scale}
            fair = grid.theory_of(cell, name).value
            if fair is not None:
                row |= {
                    "fair": fair / scale,
                    "fair_text": f"{formatting.digits(fair / scale)} {unit}".strip(),
                }
            found.append(row)
    return found, unit


def chart(run: RunResult, metric: str, *, width: int = 620, title: bool = True) -> Spec:
    """Bars per host and protocol, with a dark mark at the theoretical fair share.

    Raises ValueError if the run did not measure the metric by host.
    """
    found, unit = rows(run, metric)
    if not found:
        raise ValueError(f"this run measured no {metric} by host")
    panels = list(dict.fromkeys(row["panel"] for row in found))[:MOST_PANELS]
    found = [row for row in found if row["panel"] in panels]
    series = list(dict.fromkeys(row["series"] for row in found))
    # Not from the rows: the first point may lack a class without flows.
    hosts = grid.hosts(run.cells, metric)
    part = grid.part(hosts).capitalize()
    axis = names.with_unit(names.metric_title(metric), unit)
    base = alt.Chart(alt.InlineData(values=found)).encode(
        x=alt.X("host:N", sort=hosts, title=part, axis=alt.Axis(labelAngle=0)),
        xOffset=alt.XOffset("series:N", sort=series),
        color=coloured(series, width),
        tooltip=[
            alt.Tooltip("series:N", title="Protocol"),
            alt.Tooltip("host:N", title=part),
            alt.Tooltip("text:N", title=axis),
            alt.Tooltip("fair_text:N", title="Theory"),
        ],
    )
    y = alt.Y("y:Q", title=wrapped(axis, _HEIGHT), scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=6))
    drawn: list[Any] = [base.mark_bar(opacity=0.75).encode(y=y)]
    spans = base.transform_filter("isValid(datum.low)").mark_rule(color="#24292f", strokeWidth=1.4)
    drawn.append(spans.encode(y=alt.Y("low:Q"), y2=alt.Y2("high:Q"), color=alt.value("#24292f")))
    fair = base.transform_filter("isValid(datum.fair)").mark_tick(thickness=3, orient="horizontal")
    drawn.append(fair.encode(y=alt.Y("fair:Q"), color=alt.value("#24292f")))
    across = max(160, round(width / min(len(panels), 3)) - (30 if len(panels) > 1 else 0))
    made: Any = alt.layer(*drawn).properties(width=across, height=_HEIGHT)
    if len(panels) > 1:
        made = made.facet(facet=alt.Facet("panel:N", sort=panels, title=None), columns=3)
    if title:
        made = titled(made, run, metric, caption(run, metric).removesuffix("."), width)
    spec: Spec = json.loads(configured(made).to_json())
    return spec


def caption(run: RunResult, metric: str) -> str:
    """How to read the chart."""
    found, _ = rows(run, metric)
    fair = any("fair" in row for row in found)
    part = grid.part([row["host"] for row in found])
    text = f"Bars: means by {part} with 95 % confidence intervals"
    left = len({row["panel"] for row in found}) - MOST_PANELS
    text += "; dark marks: max-min fair shares" if fair else ""
    return f"{text}; see the tables for {left} more points of the sweep." if left > 0 else f"{text}."
