"""A chart by host or class of flows: measured means and the fair share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longfat.analysis import grid
from longfat.presentation import formatting, names, series_names
from longfat.presentation.charts import theme
from longfat.presentation.charts.theme import INK, LABEL
from longfat.presentation.charts.vega import channel, layer, tooltip
from longfat.presentation.run.charts.data import VALUES
from longfat.presentation.run.charts.options import USUAL
from longfat.presentation.run.charts.panels import across, height_of_each, rows_of
from longfat.presentation.run.columns import Column
from longfat.results import frames
from longfat.study.vocabulary import AT_HOST

if TYPE_CHECKING:
    from longfat.presentation.charts.vega import Row, Spec
    from longfat.presentation.run.charts.options import Options
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
    points = frames.Points(run.swept)
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
            place = {"world": cell.cell.world, "protocol": row["series"], grid.part([host]): host}
            place |= points.plain(cell.cell.params)
            row[VALUES] = place | {frames.plain_name(metric): interval.mean, **formatting.ends(interval)}
            fair = grid.theory_of(cell, name).value
            if fair is not None:
                row[VALUES]["fair"] = fair
                text = f"{formatting.digits(fair / scale)} {unit}".strip()
                row |= {"fair": fair / scale, "fair_text": text}
            found.append(row)
    return found, unit


def first_panels(found: list[Row]) -> list[Row]:
    """The rows that are drawn."""
    panels = list(dict.fromkeys(row["panel"] for row in found))[:MOST_PANELS]
    return [row for row in found if row["panel"] in panels]


def chart(run: RunResult, metric: str, *, width: int = 620) -> Spec:
    """Bars per host and protocol, with a dark mark at the theoretical fair share.

    Raises ValueError if the run did not measure the metric by host.
    """
    heading = theme.run_heading(
        names.metric_title(metric), run, caption(run, metric).removesuffix("."), width
    )
    return theme.chart(plot(run, metric, width), heading)


def plot(
    run: RunResult, metric: str, width: int, height: int | None = None, options: Options = USUAL
) -> Spec:
    """The chart without its title; `height` is that of each plot in px."""
    found, unit = rows(run, metric)
    if not found:
        raise ValueError(f"this run measured no {metric} by host")
    found = first_panels(found)
    panels = list(dict.fromkeys(row["panel"] for row in found))
    found = [{key: value for key, value in row.items() if key != VALUES} for row in found]
    series = list(dict.fromkeys(row["series"] for row in found))
    # Not from the rows: the first point may lack a class without flows.
    hosts = grid.hosts(run.cells, metric)
    part = grid.part(hosts).capitalize()
    axis = names.with_unit(names.metric_title(metric), unit)
    shared = {
        "x": channel("host:N", sort=hosts, title=options.label("x", part) or None, axis={"labelAngle": 0}),
        "xOffset": channel("series:N", sort=series),
        "color": theme.series_color(series, width),
        "tooltip": tooltip(
            {"series:N": "Protocol", "host:N": part, "text:N": axis, "fair_text:N": "Fair share"}
        ),
    }
    columns = min(len(panels), 3 if options.px is None else across(panels, options.px))
    least = 160 if options.size is None else 40
    each = max(least, round(width / columns) - (30 if len(panels) > 1 else 0))
    tall = height_of_each(each, height, options, _HEIGHT)
    title = theme.wrapped(options.label("y", axis), tall) or None
    mean = {"y": channel("y:Q", title=title, scale={"zero": True}, axis={"tickCount": 6})}
    interval = {"y": channel("low:Q"), "y2": {"field": "high"}, "color": {"value": INK}}
    fair = {"y": channel("fair:Q"), "color": {"value": INK}}
    drawn: Spec = {
        "layer": [
            layer("bar", shared | mean, opacity=0.75),
            layer("rule", shared | interval, where=["isValid(datum.low)"], strokeWidth=1.4),
            layer("tick", shared | fair, where=["isValid(datum.fair)"], thickness=3, orient="horizontal"),
        ],
        "width": each,
        "height": tall,
    }
    if len(panels) > 1:
        header = {"title": None, "labelFontSize": LABEL}
        facet = channel("panel:N", sort=panels, header=header)
        drawn = rows_of(drawn, facet, columns)
    return {"data": {"values": found}, **drawn}


def caption(run: RunResult, metric: str) -> str:
    """How to read the chart."""
    found, _ = rows(run, metric)
    fair = any("fair" in row for row in found)
    part = grid.part([row["host"] for row in found])
    text = f"Bars: means by {part} with 95 % confidence intervals"
    left = len({row["panel"] for row in found}) - MOST_PANELS
    text += "; dark marks: max-min fair shares" if fair else ""
    return f"{text}; see the tables for {left} more points of the sweep." if left > 0 else f"{text}."
