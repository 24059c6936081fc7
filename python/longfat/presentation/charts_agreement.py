"""The differences between two worlds: a panel per metric, a point per cell, the limit as a band around 0."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import altair as alt

from longfat.analysis import grid
from longfat.presentation import agreement_text, formatting, names, series_names
from longfat.presentation.charts import SHAPES, coloured, configured, repeated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longfat.analysis.agreement import Agreement, Difference, Measure
    from longfat.presentation.charts import Spec
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
    made = configured(alt.vconcat(*panels, spacing=18).resolve_scale(color="shared", shape="shared"))
    spec: Spec = json.loads(made.to_json())
    return spec


def caption(found: Sequence[Agreement]) -> str:
    """How to read the chart."""
    worlds = f"{found[0].other_world} compared with {found[0].cell.world}"
    return (
        f"{worlds}: the mean difference of each cell with its 95 % confidence interval; "
        "the band is the limit, hollow points are beyond it."
    )


def _axis_title(study: Study) -> str:
    return ", ".join(names.key_title(key) for key in grid.shared_keys(study))


def _rows(study: Study, found: Sequence[Agreement], measure: Measure) -> list[dict[str, Any]]:
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


def _panel(rows: list[dict[str, Any]], measure: Measure, series: list[str], x_title: str, width: int) -> Any:
    rows = [row for row in rows if "y" in row]
    points = list(dict.fromkeys(row["point"] for row in rows))
    unit = "%" if measure.part is not None else names.unit_of(measure.metric)
    title = names.with_unit(names.metric_title(measure.metric), unit)
    # The band shows the narrowest limit of a point's cells; the fill of each point uses the cell's limit.
    bands = [
        {"point": point, "top": min(row["limit"] for row in rows if row["point"] == point)}
        for point in points
    ]
    for band in bands:
        band["bottom"] = -float(band["top"])
    limit = max(float(band["top"]) for band in bands)
    # The axis covers all means, and intervals up to three times the limit.
    ends = [abs(row[end]) for row in rows for end in ("low", "high") if end in row]
    most = max(limit, *(abs(row["y"]) for row in rows), *(min(end, 3 * limit) for end in ends)) * 1.1
    scale = alt.Scale(domain=[-most, most], clamp=True)
    # One line per key, since points are close together.
    axis = alt.Axis(labelAngle=0, labelExpr="split(datum.label, ', ')")
    x = alt.X("point:N", sort=points, title=x_title or None, axis=axis)
    y_title = f"{title}, difference"
    band_layer = (
        alt.Chart(alt.InlineData(values=bands))
        .mark_bar(color="#57606a", opacity=0.13)
        .encode(
            x=x,
            y=alt.Y("bottom:Q", title=y_title, scale=scale),
            y2="top:Q",
        )
    )
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        x=x,
        xOffset=alt.XOffset("series:N", sort=series),
        color=coloured(series),
        tooltip=[
            alt.Tooltip("series:N", title="Protocol"),
            alt.Tooltip("point:N", title=x_title or "Point"),
            alt.Tooltip("text:N", title="Difference"),
        ],
    )
    shapes = alt.Shape(
        "series:N",
        sort=series,
        title="Protocol",
        scale=alt.Scale(domain=series, range=repeated(SHAPES, len(series))),
    )
    y = alt.Y("y:Q", title=y_title, scale=scale)
    bars = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=1.6, clip=True)
    zero = alt.Chart(alt.InlineData(values=[{"zero": 0}])).mark_rule(color="#57606a", strokeDash=[3, 3])
    fill = alt.condition("datum.misses", alt.value("white"), coloured(series))
    drawn = [
        band_layer,
        zero.encode(y=alt.Y("zero:Q", title=y_title, scale=scale)),
        bars.encode(y=alt.Y("low:Q", title=y_title, scale=scale), y2="high:Q"),
        base.mark_point(size=62, strokeWidth=1.8, opacity=1).encode(y=y, shape=shapes, fill=fill),
    ]
    return alt.layer(*drawn).properties(width=width - 110, height=_HEIGHT)
