"""The cumulative distribution of flow completion times by size class, a line per protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from longfat.analysis import grid
from longfat.presentation import names, series_names
from longfat.presentation.charts import theme
from longfat.presentation.charts.theme import LABEL, SOFT
from longfat.presentation.charts.vega import channel, layer
from longfat.presentation.run.charts.distributions import numbered
from longfat.presentation.run.charts.warm_up import after_warm_up

if TYPE_CHECKING:
    from longfat.presentation.charts.vega import Row, Spec
    from longfat.results.run import CellResult, RunResult

LEAST_FLOWS = 20
"""Minimum number of flows of a class at a point for a line."""
MARKS = (0.5, 0.95, 0.99)
"""Quantiles that are marked with a line."""
MOST_NAMED = 6
"""Points that are not drawn and are named."""
STEPS = 100
"""Points of a line; its last hundredth has a quarter as many more."""

_DONE = "Flows (%)"
_ROOM = 1.05
"""Margin of the time axis, as a factor."""


def rows(run: RunResult) -> list[Row]:
    """A row per quantile: `share` percent of the flows of a class complete within `time` ms.

    Covers the measured flows in the first world; a line ends at the share that completed. Empty if
    there are too few completed ones.
    """
    if run.flows is None:
        return []
    world = grid.worlds(run.cells)[0]
    drawn: dict[str, list[tuple[int, CellResult]]] = {name: [] for name in _drawn(_points(run))}
    for number, cell in numbered(run.flows, run.cells).items():
        if cell.cell.world == world and (name := _point(run, cell)) in drawn:
            drawn[name].append((number, cell))
    numbers = [number for group in drawn.values() for number, _ in group]
    flows = run.flows.read(("traffic", "class", "fct_s", "opened_s"), numbers)
    if "fct_s" not in flows.columns:
        return []
    of_cell = flows.partition_by("cell", as_dict=True)
    found: list[Row] = []
    for name, group in drawn.items():
        for number, cell in group:
            line = {"series": series_names.series_name(run.study, cell.cell), "point": name}
            found += _lines(after_warm_up(of_cell.get((number,), flows.clear()), cell), line)
    return found


def _point(run: RunResult, cell: CellResult) -> str:
    return names.point(grid.point_params(run.study, cell.cell))


def _points(run: RunResult) -> list[str]:
    """The points of the sweep in the first world."""
    world = grid.worlds(run.cells)[0]
    return list(dict.fromkeys(_point(run, cell) for cell in run.cells if cell.cell.world == world))


def _drawn(points: list[str]) -> list[str]:
    """The first, the middle and the last point."""
    return list(dict.fromkeys((points[0], points[len(points) // 2], points[-1])))


def _lines(opened: pl.DataFrame, line: Row) -> list[Row]:
    if "traffic" in opened.columns:
        opened = opened.filter(pl.col("traffic").is_null())
    found: list[Row] = []
    for (number,), group in sorted(opened.group_by("class"), key=lambda pair: str(pair[0])):
        times = group["fct_s"].drop_nulls().sort().to_list()
        if len(times) < LEAST_FLOWS:
            continue
        name = "all flows" if number is None else f"class G{number}"
        for share in _shares():
            place = max(0, round(share * group.height) - 1)
            if place >= len(times):
                break
            found.append({**line, "class": name, "share": 100 * share, "time": 1000 * times[place]})
    return found


def _shares() -> list[float]:
    body = [number / STEPS for number in range(1, STEPS)]
    tail = [1 - 1 / STEPS + number / (STEPS * STEPS / 4) for number in range(1, STEPS // 4 + 1)]
    return body + tail


def chart(run: RunResult, found: list[Row], *, width: int = 620) -> Spec:
    """Classes side by side, points of the sweep below each other. The subtitle names what is not drawn."""
    drawn = {row["series"] for row in found}
    whole = series_names.series(run.study, (cell.cell for cell in run.cells))
    series = [name for name in whole if name in drawn]
    classes = sorted({row["class"] for row in found})
    points = list(dict.fromkeys(row["point"] for row in found))
    across = max(130, round(width / len(classes)) - 45)

    def panel(point: str, name: str) -> Spec:
        of_class = [row for row in found if row["class"] == name]
        x = channel(
            "time:Q",
            scale=_time_scale([row["time"] for row in of_class]),
            title="Completion time (ms)" if point == points[-1] else None,
            axis={"tickCount": 4},
        )
        share = channel("share:Q", title=_DONE if name == classes[0] else None, scale={"domain": [0, 100]})
        rows = [row for row in of_class if row["point"] == point]
        return {
            "title": {"text": [point, name] if len(classes) > 1 else point, "fontSize": LABEL},
            "width": across,
            "height": 170,
            "data": {"values": rows},
            "layer": [*_background(is_empty=not rows), _line(x, share, series)],
        }

    # Not facets: the panel of a class with too few flows at a point stays empty.
    panels = [{"hconcat": [panel(point, name) for name in classes]} for point in points]
    subtitle = caption(run, found)
    title = theme.run_heading("Distribution of flow completion times", run, subtitle, width)
    return theme.chart({"vconcat": panels}, title)


def _time_scale(times: list[float]) -> Spec:
    """The scale of the times of a class at all points, for a common axis."""
    return {"type": "log", "domain": [min(times) / _ROOM, max(times) * _ROOM]}


def _line(x: Spec, share: Spec, series: list[str]) -> Spec:
    encoding = {
        "x": x,
        "y": share,
        "order": channel("share:Q"),
        "color": theme.series_color(series),
        "tooltip": [
            channel("series:N", title="Protocol"),
            channel("share:Q", title=_DONE, format=".4~g"),
            channel("time:Q", title="within (ms)", format=".3~s"),
        ],
    }
    return layer("line", encoding, strokeWidth=2, interpolate="step-before")


def _background(*, is_empty: bool) -> list[Spec]:
    """The marked quantiles, and a note in an empty panel."""
    style: Spec = {"color": "#8c959f", "strokeDash": [2, 3], "strokeWidth": 1}
    layers = [layer("rule", {"y": {"datum": 100 * mark}}, **style) for mark in MARKS]
    if is_empty:
        rows = [{"text": f"fewer than {LEAST_FLOWS} flows"}]
        layers.append(layer("text", {"text": channel("text:N")}, rows=rows, color=SOFT, fontSize=LABEL))
    return layers


def caption(run: RunResult, found: list[Row]) -> str:
    """How to read the chart, and what it leaves out: points, worlds, and protocols with too few flows."""
    text = "Share of flows that complete within a time, over all trials; dotted: median, 95 % and 99 %."
    first, *others = grid.worlds(run.cells)
    points = _points(run)
    omitted = [name for name in points if name not in _drawn(points)]
    drawn = {row["series"] for row in found}
    here = [cell.cell for cell in run.cells if cell.cell.world == first]
    few = [name for name in series_names.series(run.study, here) if name not in drawn]
    parts = []
    if omitted:
        parts.append(f"{len(omitted)} of {len(points)} points of the sweep ({_listed(omitted, '; ')})")
    if others:
        parts.append(f"{', '.join(others)} ({first} is drawn)")
    if few:
        parts.append(f"{', '.join(few)} (fewer than {LEAST_FLOWS} flows)")
    return f"{text} Not drawn: {', '.join(parts)}." if parts else text


def _listed(items: list[str], separator: str) -> str:
    """The first items of a list, and how many follow."""
    more = len(items) - MOST_NAMED
    shown = separator.join(items[:MOST_NAMED])
    return f"{shown}{separator}{more} more" if more > 0 else shown
