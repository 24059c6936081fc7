"""The differences between two worlds: a panel per metric, a point per cell, the limit as a band around 0."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from longfat.analysis import grid
from longfat.presentation import formatting, names, series_names
from longfat.presentation.charts import theme
from longfat.presentation.charts.theme import SOFT
from longfat.presentation.charts.vega import channel, layer, tooltip
from longfat.presentation.run import agreement_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longfat.analysis.agreement import Agreement, Difference, Measure
    from longfat.presentation.charts.vega import Row, Spec
    from longfat.results.run import RunResult
    from longfat.study import Study

_HEIGHT = 190
_BEYOND = 1e9
"""Replaces an infinite bound, which JSON cannot represent."""


def chart(
    run: RunResult, found: Sequence[Agreement], measures: Sequence[Measure], *, width: int = 620
) -> Spec:
    """The difference of two worlds in each metric with a limit, over the points of the sweep.

    Points are mean differences, bars their 95 % confidence intervals, the band is the limit, and hollow
    points are beyond it. Relative differences are in percent, others in the metric's unit.
    """
    series = series_names.series(run.study, (one.cell for one in found))
    panels = [
        _panel(_rows(run.study, found, measure), measure, series, _axis_title(run.study), width)
        for measure in measures
        if measure.is_limited
    ]
    shared = {"scale": {"color": "shared", "shape": "shared"}}
    return theme.chart({"vconcat": panels, "spacing": 18, "resolve": shared})


def caption(found: Sequence[Agreement]) -> str:
    """How to read the chart."""
    worlds = f"{found[0].other_world} compared with {found[0].cell.world}"
    return (
        f"{worlds}: the mean difference of each cell with its 95 % confidence interval; "
        "the band is the limit, hollow points are beyond it."
    )


def _axis_title(study: Study) -> str:
    return ", ".join(names.key_title(key) for key in grid.shared_keys(study))


def _rows(study: Study, found: Sequence[Agreement], measure: Measure) -> list[Row]:
    rows = []
    for one in found:
        difference = one.difference(measure.metric)
        if difference is None:
            continue
        keys = grid.shared_keys(study)
        point = ", ".join(formatting.label(one.cell.params[key]) for key in keys if key in one.cell.params)
        rows.append(
            {
                "point": point or "all",
                "series": series_names.series_name(study, one.cell),
                "misses": difference.misses,
                "text": agreement_text.with_bounds(difference),
                **_scaled(difference),
            }
        )
    return rows


def _scaled(one: Difference) -> dict[str, float]:
    """The difference, its interval and the limit, in percent if the limit is relative."""
    if one.measure.part is not None:
        # NaN without a mean as reference: such cells are not drawn.
        ends = [(end - 1) * 100 for end in (one.ratio.mean, one.ratio.low, one.ratio.high)]
        limit = one.tolerance / abs(one.first) * 100 if one.first else math.nan
    else:
        scale = formatting.scale_for([one.measure.amount or 1.0], names.unit_of(one.measure.metric))[0]
        ends = [end / scale for end in (one.change.mean, one.change.low, one.change.high)]
        limit = one.tolerance / scale
    mean, low, high = ends
    if not (math.isfinite(mean) and math.isfinite(limit)):
        return {}
    row = {"y": mean, "limit": limit}
    if not math.isnan(low):
        # Bars stop at the edge of the plot, including unbounded ones.
        row |= {"low": low, "high": min(high, _BEYOND)}
    return row


def _panel(rows: list[Row], measure: Measure, series: list[str], x_title: str, width: int) -> Spec:
    rows = [row for row in rows if "y" in row]
    points = list(dict.fromkeys(row["point"] for row in rows))
    unit = "%" if measure.part is not None else names.unit_of(measure.metric)
    title = f"{names.with_unit(names.metric_title(measure.metric), unit)}, difference"
    # The band shows the narrowest limit of a point's cells; the fill of each point uses the cell's limit.
    limits = {point: min(row["limit"] for row in rows if row["point"] == point) for point in points}
    bands = [{"point": point, "top": limit, "bottom": -limit} for point, limit in limits.items()]
    limit = max(limits.values())
    # The axis covers all means, and intervals up to three times the limit.
    ends = [abs(row[end]) for row in rows for end in ("low", "high") if end in row]
    most = max(limit, *(abs(row["y"]) for row in rows), *(min(end, 3 * limit) for end in ends)) * 1.1

    def y(column: str) -> Spec:
        return channel(f"{column}:Q", title=title, scale={"domain": [-most, most], "clamp": True})

    # One line per key, since points are close together.
    axis = {"labelAngle": 0, "labelExpr": "split(datum.label, ', ')"}
    x = channel("point:N", sort=points, title=x_title or None, axis=axis)
    color = theme.series_color(series)
    shared = {
        "x": x,
        "xOffset": channel("series:N", sort=series),
        "color": color,
        "tooltip": tooltip({"series:N": "Protocol", "point:N": x_title or "Point", "text:N": "Difference"}),
    }
    fill = {"condition": {"test": "datum.misses", "value": "white"}, **color}
    point = {**shared, "y": y("y"), "shape": theme.series_shape(series), "fill": fill}
    bars = {**shared, "y": y("low"), "y2": {"field": "high"}}
    band = {"x": x, "y": y("bottom"), "y2": {"field": "top"}}
    layers = [
        layer("bar", band, rows=bands, color=SOFT, opacity=0.13),
        layer("rule", {"y": y("zero")}, rows=[{"zero": 0}], color=SOFT, strokeDash=[3, 3]),
        layer("rule", bars, where=["isValid(datum.low)"], rows=rows, strokeWidth=1.6, clip=True),
        layer("point", point, rows=rows, size=62, strokeWidth=1.8, opacity=1),
    ]
    return {"layer": layers, "width": width - 110, "height": _HEIGHT}
