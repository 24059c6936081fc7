"""Cumulative distributions as a chart: a line per protocol, a small chart per point and world."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longfat.analysis import grid
from longfat.presentation import formatting, names, series_names
from longfat.presentation.charts import theme
from longfat.presentation.charts.vega import channel, layer, tooltip
from longfat.presentation.run.charts import panels
from longfat.presentation.run.charts.data import VALUES, log_ticks, require_positive
from longfat.results import frames

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longfat.presentation.charts.vega import Row, Spec
    from longfat.presentation.run.charts.distributions import Distributions, Sample
    from longfat.presentation.run.charts.options import Options
    from longfat.results.run import RunResult

MOST_POINTS = 1000
"""Points of a line; longer ones are reduced to evenly spaced shares."""
_DECADES = 30
"""Ratio of the values from which their axis is logarithmic."""
_DASHES: tuple[list[int], ...] = ([1, 0], [7, 3], [2, 2], [8, 2, 2, 2])
"""Line styles of protocols, which differ in print without colours."""
_LEAST_TITLE = 120
"""Length in px for which the title of the y axis is wrapped at least: that of the usual one."""
_LEGEND = {"symbolSize": 500, "symbolStrokeWidth": 1.8}
"""Lines in the legend that are long enough for their dashes."""
_PLAIN = "format(datum.value, '~f')"


def rows(run: RunResult, found: Distributions, options: Options) -> list[Row]:
    """A row for each step of a line: the share `y` of the trials or flows with at most the value `x`."""
    scale, column = _scale(found)[0], frames.plain_name(found.metric)
    worlds = grid.worlds(run.cells)
    points = frames.Points(run.swept)
    drawn: list[Row] = []
    for one in found.samples:
        cell = one.cell.cell
        series = series_names.series_name(run.study, cell)
        panel = panels.panel(run.study, cell, options.facet or "", without=None, worlds=worlds)
        line = {"series": series, "panel": panel}
        place = {"world": cell.world, "protocol": series, **points.plain(cell.params)}
        steps = [
            {"x": value / scale, "y": share, VALUES: place | {column: value, "share": share}}
            for value, share in _steps(one)
        ]
        # The first step rises from 0, which a logarithmic axis cannot show.
        foot = [] if options.is_log("y", usual=False) else [row | {"y": 0.0} for row in steps[:1]]
        drawn += [line | row | {"n": one.count} for row in (*foot, *steps)]
    return drawn


def _steps(sample: Sample) -> Iterator[tuple[float, float]]:
    """Yields the different values of a sample, each with the share of those that are not larger."""
    values, known = sample.values, len(sample.values)
    count = min(known, MOST_POINTS)
    places = dict.fromkeys([1, *(known * number // count for number in range(1, count + 1))]) if known else {}
    yield from {values[place - 1]: place / sample.count for place in places}.items()


def plot(
    run: RunResult, found: Distributions, drawn: list[Row], width: int, height: int | None, options: Options
) -> Spec:
    """The chart without its title; `height` is that of each plot in px."""
    cells = panels.in_order(run.study, (one.cell.cell for one in found.samples), options.facet)
    worlds = grid.worlds(run.cells)
    shown = {row["panel"] for row in drawn}
    titles = [panels.panel(run.study, c, options.facet or "", without=None, worlds=worlds) for c in cells]
    titles = [title for title in dict.fromkeys(titles) if title in shown]
    columns = panels.across(titles, options.px or width)
    each = panels.width_of_each(columns, width)
    tall = panels.height_of_each(each, height, options, 200 if len(titles) > 1 else 300)
    series = series_names.series(run.study, (one.cell.cell for one in found.samples if one.values))
    x_title = options.label("x", names.with_unit(found.title, _scale(found)[1]))
    y_title = options.label("y", f"Share of {found.of}")
    color = theme.series_color(series, width)
    color["legend"] |= _LEGEND
    encoding = {
        "x": _x([row["x"] for row in drawn], x_title, options),
        "y": _y([row["y"] for row in drawn], theme.wrapped(y_title, max(tall, _LEAST_TITLE)), options),
        "order": channel("y:Q"),
        "color": color,
        "strokeDash": theme.series_dash(series, _DASHES, color["legend"]),
        "tooltip": tooltip({"series:N": "Protocol", "x:Q": x_title, "y:Q": y_title, "n:Q": found.of}),
    }
    line = layer("line", encoding, strokeWidth=1.8, interpolate="step-after")
    spec = panels.wrapped({**line, "width": each, "height": tall}, titles, columns)
    plain = [{key: value for key, value in row.items() if key != VALUES} for row in drawn]
    return {"data": {"values": plain}, **spec}


def _scale(found: Distributions) -> tuple[float, str]:
    return formatting.scale_for((one.values[-1] for one in found.samples if one.values), found.unit)


def _x(values: list[float], title: str, options: Options) -> Spec:
    low, high = min(values), max(values)
    log = options.is_log("x", usual=low > 0 and high / low >= _DECADES)
    if not log:
        return channel("x:Q", title=title or None, scale={"zero": False}, axis={"tickCount": 5})
    require_positive("x", values, title)
    ticks = log_ticks(low, high)
    axis = {"values": list(ticks), "labelExpr": _PLAIN, "labelOverlap": True}
    scale = {"type": "log", "domain": [low, high], "nice": False, "padding": 4}
    return channel("x:Q", title=title or None, scale=scale, axis=axis)


def _y(shares: list[float], title: list[str], options: Options) -> Spec:
    if not options.is_log("y", usual=False):
        return channel("y:Q", title=title or None, scale={"domain": [0, 1]}, axis={"tickCount": 5})
    scale = {"type": "log", "domain": [min(shares), 1], "nice": False}
    return channel("y:Q", title=title or None, scale=scale, axis={"labelExpr": _PLAIN})


def caption(run: RunResult, found: Distributions) -> str:
    """How to read the chart, and which lines it lacks."""
    counts = sorted({one.count for one in found.samples if one.values})
    each = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    text = f"Share of {found.of} with at most this value ({each} {found.of} per line)."
    if any(len(one.values) < one.count for one in found.samples):
        text += f" Lines end at the share of {found.of} with a known value."
    if lacking := [one.cell.cell for one in found.samples if not one.values]:
        text += f" Not drawn, since no value is known: {', '.join(series_names.series(run.study, lacking))}."
    return text
