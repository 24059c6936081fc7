"""A chart by host or class of flows: who got how much, beside the share that would be fair."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import altair as alt

from longfat.analysis import grid
from longfat.presentation import formatting
from longfat.presentation.charts import coloured, configured, titled, wrapped
from longfat.study.vocabulary import AT_HOST

if TYPE_CHECKING:
    from longfat.presentation.charts import Spec
    from longfat.results import RunResult

MOST_PANELS = 6
"""Points of a sweep that have a panel each; of more, the first ones are drawn."""
_HEIGHT = 220

Row = dict[str, Any]


def rows(run: RunResult, metric: str) -> tuple[list[Row], str]:
    """One row for each cell and host, and the unit that they share.

    `y` is the mean with its interval from `low` to `high`, `fair` what theory says of that host, if anything.
    """
    names = {host: metric + AT_HOST + host for host in grid.hosts(run.cells, metric)}
    means = [cell.metrics[name].mean for cell in run.cells for name in names.values() if name in cell.metrics]
    scale, unit = formatting.scale_for(means, formatting.unit_of(metric))
    found: list[Row] = []
    for cell in run.cells:
        shared = {
            key: cell.cell.params[key] for key in grid.shared_keys(run.study) if key in cell.cell.params
        }
        panel = [cell.cell.world] if len(grid.worlds(run.cells)) > 1 else []
        panel += [f"{formatting.key_title(key)} {formatting.label(value)}" for key, value in shared.items()]
        for host, name in names.items():
            interval = cell.metrics.get(name)
            if interval is None:
                continue
            row: Row = {
                "host": host,
                "series": grid.series_name(run.study, cell.cell),
                "panel": ", ".join(panel),
                "y": interval.mean / scale,
                "told": f"{formatting.measured(cell, name, scale)} {unit}".strip(),
            }
            if math.isfinite(interval.low) and math.isfinite(interval.high):
                row |= {"low": interval.low / scale, "high": interval.high / scale}
            fair = grid.theory_of(cell, name).value
            if fair is not None:
                row |= {
                    "fair": fair / scale,
                    "fair_told": f"{formatting.digits(fair / scale)} {unit}".strip(),
                }
            found.append(row)
    return found, unit


def chart(run: RunResult, metric: str, *, width: int = 620, title: bool = True) -> Spec:
    """Bars for each host, a protocol beside the other, with a dark mark where theory puts the fair share.

    Raises ValueError where the run did not measure the metric by host.
    """
    found, unit = rows(run, metric)
    if not found:
        raise ValueError(f"this run measured no {metric} by host")
    panels = list(dict.fromkeys(row["panel"] for row in found))[:MOST_PANELS]
    found = [row for row in found if row["panel"] in panels]
    series = list(dict.fromkeys(row["series"] for row in found))
    # Not of the rows: the first point may lack a class, of which it had no flow.
    hosts = grid.hosts(run.cells, metric)
    part = grid.part_word(hosts).capitalize()
    named = formatting.metric_title(metric)
    axis = f"{named} ({unit})" if unit else named
    base = alt.Chart(alt.InlineData(values=found)).encode(
        x=alt.X("host:N", sort=hosts, title=part, axis=alt.Axis(labelAngle=0)),
        xOffset=alt.XOffset("series:N", sort=series),
        color=coloured(series),
        tooltip=[
            alt.Tooltip("series:N", title="Protocol"),
            alt.Tooltip("host:N", title=part),
            alt.Tooltip("told:N", title=axis),
            alt.Tooltip("fair_told:N", title="Theory"),
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
        made = titled(made, run, metric, caption(run, metric).removesuffix("."))
    spec: Spec = json.loads(configured(made).to_json())
    return spec


def caption(run: RunResult, metric: str) -> str:
    """How to read the chart, in a line."""
    found, _ = rows(run, metric)
    fair = any("fair" in row for row in found)
    part = grid.part_word([row["host"] for row in found])
    told = f"Bars: means by {part} with their 95 % intervals"
    left = len({row["panel"] for row in found}) - MOST_PANELS
    told += "; dark marks: max-min fair shares" if fair else ""
    return f"{told}; {left} more points of the sweep are in the tables." if left > 0 else f"{told}."
