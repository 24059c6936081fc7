"""A chart by host or class of flows: measured means and the fair share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longfat.analysis import grid
from longfat.presentation import formatting, names, series_names
from longfat.presentation.charts import theme
from longfat.presentation.charts.theme import INK
from longfat.presentation.charts.vega import channel, layer, tooltip
from longfat.presentation.run.columns import Column
from longfat.study.vocabulary import AT_HOST

if TYPE_CHECKING:
    from longfat.presentation.charts.vega import Row, Spec
    from longfat.results.run import RunResult

MOST_PANELS = 6
"""Maximum number of panels, one per point of the sweep; the first points are drawn."""
_HEIGHT = 220


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
            row |= formatting.ends(interval, scale)
            fair = grid.theory_of(cell, name).value
            if fair is not None:
                text = f"{formatting.digits(fair / scale)} {unit}".strip()
                row |= {"fair": fair / scale, "fair_text": text}
            found.append(row)
    return found, unit


def chart(run: RunResult, metric: str, *, width: int = 620) -> Spec:
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
    shared = {
        "x": channel("host:N", sort=hosts, title=part, axis={"labelAngle": 0}),
        "xOffset": channel("series:N", sort=series),
        "color": theme.series_color(series, width),
        "tooltip": tooltip({"series:N": "Protocol", "host:N": part, "text:N": axis, "fair_text:N": "Theory"}),
    }
    title = theme.wrapped(axis, _HEIGHT)
    mean = {"y": channel("y:Q", title=title, scale={"zero": True}, axis={"tickCount": 6})}
    interval = {"y": channel("low:Q"), "y2": {"field": "high"}, "color": {"value": INK}}
    fair = {"y": channel("fair:Q"), "color": {"value": INK}}
    plot: Spec = {
        "layer": [
            layer("bar", shared | mean, opacity=0.75),
            layer("rule", shared | interval, where=["isValid(datum.low)"], strokeWidth=1.4),
            layer("tick", shared | fair, where=["isValid(datum.fair)"], thickness=3, orient="horizontal"),
        ],
        "width": max(160, round(width / min(len(panels), 3)) - (30 if len(panels) > 1 else 0)),
        "height": _HEIGHT,
    }
    if len(panels) > 1:
        plot = {"facet": channel("panel:N", sort=panels, title=None), "spec": plot, "columns": 3}
    heading = theme.run_heading(
        names.metric_title(metric), run, caption(run, metric).removesuffix("."), width
    )
    return theme.chart({"data": {"values": found}, **plot}, heading)


def caption(run: RunResult, metric: str) -> str:
    """How to read the chart."""
    found, _ = rows(run, metric)
    fair = any("fair" in row for row in found)
    part = grid.part([row["host"] for row in found])
    text = f"Bars: means by {part} with 95 % confidence intervals"
    left = len({row["panel"] for row in found}) - MOST_PANELS
    text += "; dark marks: max-min fair shares" if fair else ""
    return f"{text}; see the tables for {left} more points of the sweep." if left > 0 else f"{text}."
