"""The data of a chart: a row per point, in the units of its axes."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from longfat.analysis import grid
from longfat.presentation import formatting, names, series_names
from longfat.presentation.run import notes
from longfat.presentation.run.charts import panels
from longfat.presentation.run.charts.options import USUAL
from longfat.presentation.run.columns import Column
from longfat.results import frames
from longfat.results.run import Cell
from longfat.study.vocabulary import AT_HOST, whole_metric
from longfat.system.parameters import ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from longfat.presentation.charts.vega import Row
    from longfat.presentation.run.charts.options import Options
    from longfat.results.run import CellResult, RunResult
    from longfat.study import Study

LABEL_SHARE = 0.07
"""The smallest distance of two labels, as a part of the axis: a line of text in a panel of 200 px."""
MEASURED, THEORY, FAIR, BOUND, SOURCE = "measured", "theory", "fair share", "bound", "source"
DECADE = 10
"""Rates and times that differ by this factor get a logarithmic axis."""
VALUES = "values"
"""The key of a row with its figure under plain names in SI units."""


@dataclass(frozen=True)
class Axis:
    """An axis: its title with the unit, and the type of its scale.

    `linear_below` is where a scale with a zero that spans decades changes from linear to logarithmic.
    `limits` are those that the user chose.
    """

    title: str
    quantitative: bool = True
    log: bool = False
    linear_below: float | None = None
    ticks: tuple[Any, ...] = ()
    limits: tuple[float, float] | None = None


@dataclass(frozen=True)
class ChartData:
    """The rows and axes of a chart. `panels` are the points of the other swept keys."""

    rows: list[Row]
    x: Axis
    y: Axis
    series: list[str]
    worlds: list[str]
    panels: list[str]

    @property
    def drawn(self) -> list[Row]:
        """The rows as a chart contains them, in the units of its axes."""
        return [{key: value for key, value in row.items() if key != VALUES} for row in self.rows]

    @property
    def values(self) -> list[Row]:
        """The plotted values under plain names in SI units, a row for each figure."""
        found = {id(row[VALUES]): row[VALUES] for row in self.rows}
        return list(found.values())

    def has(self, kind: str) -> bool:
        """Whether there are rows of a kind."""
        return any(row["kind"] == kind for row in self.rows)

    def lines(self, kind: str) -> bool:
        """Whether any row of a kind of theory is part of a line."""
        return self.x.quantitative and any(r["kind"] == kind and "alone" not in r for r in self.rows)

    def ticks(self, kind: str) -> bool:
        """Whether any row of a kind of theory is a tick: its form applies at a single point of the axis."""
        return any(r["kind"] == kind and ("alone" in r or not self.x.quantitative) for r in self.rows)


def axis_key(study: Study, without: str | None = None) -> str | None:
    """The swept key of the x axis: the quantity with the most values, but not the key `without`."""
    keys = [key for key in study.sweep if key != without]
    # A key with one value makes no axis, unless there is no other.
    keys = [key for key in keys if len(grid.ordered_values(study, key)) > 1] or keys
    if not keys:
        return None

    def rank(key: str) -> tuple[bool, bool, int]:
        found = grid.ordered_values(study, key)
        return _numeric(key, found), not key.startswith("protocols."), len(found)

    return max(keys, key=rank)


def _numeric(key: str, found: Sequence[Any]) -> bool:
    """Returns whether all values are quantities in one unit: packets and bytes have no common axis."""
    placed = [names.axis_value(key, value) for value in found]
    return None not in placed and len({one[1] for one in placed if one is not None}) == 1


def collect(run: RunResult, metric: str, options: Options = USUAL) -> ChartData:
    """The rows of one metric: measured means with intervals, theory, and figures of the source."""
    study, cells = run.study, [cell for cell in run.cells if metric in cell.metrics]
    x_key = axis_key(study, options.facet)
    ordered = grid.ordered_values(study, x_key) if x_key else []
    numeric = x_key is not None and _numeric(x_key, ordered)
    figures = [figure for figure in grid.reported(study, cells) if figure.metric == metric]
    column = Column.of(metric, cells, [figure.value for figure in figures])
    titles = series_names.titles(study, (cell.cell for cell in cells))
    worlds = grid.worlds(cells)
    points = frames.Points(run.swept)
    compared = {claim.form for claim in study.claims} - {""}
    rows: list[Row] = []

    def place(cell: Cell) -> Row:
        row = _place(study, cell.params, x_key, numeric=numeric)
        if options.facet is not None:
            row["panel"] = panels.panel(study, cell, options.facet, without=x_key, worlds=worlds)
        return row

    def base(kind: str, series: str, cell: Cell) -> Row:
        about = {"world": cell.world, "protocol": series, "kind": kind}
        values = {VALUES: about | points.plain(cell.params)}
        return place(cell) | {"series": series, "world": cell.world, "kind": kind} | values

    for cell in cells:
        name = series_names.series_name(study, cell.cell)
        rows.append(_with(base(MEASURED, name, cell.cell), _measured(cell, column), column))
        expected = _expected(cell, column, compared)
        rows += [_with(base(row["kind"], name, cell.cell), row, column) for row in expected]
    for figure in figures:
        text = formatting.quantity(figure.value, names.unit_of(metric))
        row: Row = {"kind": SOURCE, "y": figure.value / column.scale, "text": text}
        for world in worlds:
            at = Cell(world, figure.protocol, figure.params, {})
            rows.append(_with(base(SOURCE, titles[figure.protocol], at), row, column))
    rows = _lonely(_stretched(rows, x_key, ordered, numeric=numeric))
    x_axis = _x_axis(x_key, ordered, numeric=numeric, options=options)
    y_axis = _y_axis(column, rows, options, _of_other_hosts(run, column, compared))
    rows = _labelled(_clipped(rows, y_axis), y_axis)
    in_order = panels.in_order(study, (cell.cell for cell in cells), options.facet)
    return ChartData(
        rows=rows,
        x=x_axis,
        y=y_axis,
        series=list(dict.fromkeys(row["series"] for row in rows)),
        worlds=worlds,
        panels=list(dict.fromkeys(place(cell)["panel"] for cell in in_order)),
    )


def _with(base: Row, row: Row, column: Column) -> Row:
    """A row at its place, with its figure in SI units under plain names."""
    ends = {frames.plain_name(column.metric): "y", "low": "low", "high": "high"}
    # Without the error of the division by the scale.
    figure = {name: float(f"{row[end] * column.scale:.15g}") for name, end in ends.items() if end in row}
    figure |= {name: row[key] for name, key in (("trials", "n"), ("form", "form")) if row.get(key)}
    return base | row | {VALUES: base[VALUES] | figure}


def _measured(cell: CellResult, column: Column) -> Row:
    interval, scale = cell.metrics[column.metric], column.scale
    row: Row = {"kind": MEASURED, "y": interval.mean / scale, "n": cell.n}
    row["text"] = f"{column.measured(cell)} {column.unit}".strip()
    return row | formatting.ends(interval, scale)


def _expected(cell: CellResult, column: Column, compared: set[str]) -> list[Row]:
    """The rows of theory: its value or upper bound, or one for each form with which claims compare.

    A cell without a value has forms of other protocols only (`prediction.bbr`), which are not its theory.
    """
    expected = grid.theory_of(cell, column.metric)
    forms = {name: value for name, value in expected.forms.items() if name in compared}
    if forms and expected.value is not None:
        return [
            {
                "kind": THEORY,
                "form": name,
                "y": value / column.scale,
                "text": f"{column.number(value)} {column.unit} ({name})",
            }
            for name, value in forms.items()
        ]
    value, kind = (expected.bound, BOUND) if expected.value is None else (expected.value, THEORY)
    if value is None:
        return []
    if notes.is_share(expected):
        kind = FAIR
    text = f"{column.number(value)} {column.unit} ({expected.note})"
    return [{"kind": kind, "form": "", "y": value / column.scale, "text": text}]


def _place(study: Study, params: dict[str, Any], x_key: str | None, *, numeric: bool) -> Row:
    others = {key: params[key] for key in grid.shared_keys(study) if key != x_key and key in params}
    row: Row = {"panel": names.point(others), "x_text": formatting.label(params.get(x_key or "", ""))}
    if x_key is None or x_key not in params:
        return row | {"x": None}
    placed = names.axis_value(x_key, params[x_key]) if numeric else None
    return row | {"x": placed[0] if placed else formatting.label(params[x_key])}


def _stretched(rows: list[Row], x_key: str | None, ordered: Sequence[Any], *, numeric: bool) -> list[Row]:
    """Draws a line across the axis for a protocol whose values do not depend on the axis' key."""
    if x_key is None:
        return [row | {"x": row["series"]} for row in rows]
    if not numeric:
        return [row for row in rows if row["x"] is not None]
    ends = [placed[0] for value in ordered if (placed := names.axis_value(x_key, value)) is not None]
    found: list[Row] = []
    for row in rows:
        found += [row] if row["x"] is not None else [row | {"x": end} for end in (ends[0], ends[-1])]
    return found


def _lonely(rows: list[Row]) -> list[Row]:
    """Marks theory that applies at a single point of its series: it is not a line."""
    counts = Counter(_line(row) for row in rows)
    return [
        row | {"alone": True} if row["kind"] in (THEORY, FAIR, BOUND) and counts[_line(row)] == 1 else row
        for row in rows
    ]


def _labelled(rows: list[Row], axis: Axis) -> list[Row]:
    """Labels each form of theory at the right end of its line. Ends that are close share a label."""
    last: dict[tuple[str, ...], int] = {}
    for number, row in enumerate(rows):
        if row.get("form") and row["x"] >= rows[last.setdefault(_line(row), number)]["x"]:
            last[_line(row)] = number
    heights = _heights(rows, axis)
    clusters: list[list[int]] = []
    for number in sorted(last.values(), key=lambda end: (*_end(rows[end]), heights[end])):
        near = clusters and _end(rows[clusters[-1][-1]]) == _end(rows[number])
        if near and heights[number] - heights[clusters[-1][0]] < LABEL_SHARE:
            clusters[-1].append(number)
        else:
            clusters.append([number])
    labels = {
        # The middle one, so that the label is next to all ends.
        cluster[len(cluster) // 2]: ", ".join(dict.fromkeys(rows[end]["form"] for end in sorted(cluster)))
        for cluster in clusters
    }
    return [row | {"label": labels[n]} if n in labels else row for n, row in enumerate(rows)]


def _end(row: Row) -> tuple[str, str, Any]:
    """The panel of a chart and the place on its x axis."""
    return row["world"], row["panel"], row["x"]


def _heights(rows: Sequence[Row], axis: Axis) -> list[float]:
    """The places of rows on the y axis, from 0 to 1."""
    if axis.log:
        low, high = map(math.log, axis.limits or (axis.ticks[0], axis.ticks[-1]))
        return [(math.log(row["y"]) - low) / (high - low) if row["y"] > 0 else 0.0 for row in rows]
    if axis.limits is not None:
        bottom, top = axis.limits
        return [(row["y"] - bottom) / (top - bottom) for row in rows]
    tops: list[float] = [row["high" if "high" in row else "y"] for row in rows]
    highest = max(tops, default=0.0) or 1.0
    return [row["y"] / highest for row in rows]


def _line(row: Row) -> tuple[str, ...]:
    """The key that identifies a line of a chart."""
    return row["kind"], row["series"], row["world"], row["panel"], row.get("form", "")


def _x_axis(x_key: str | None, ordered: Sequence[Any], *, numeric: bool, options: Options) -> Axis:
    title = names.key_title(x_key) if x_key is not None else ""
    if not numeric:
        if options.log in ("x", "xy"):
            shown = f"the values of {x_key}" if x_key is not None else "protocols"
            raise ParameterError("log", f"the x axis shows {shown}, which are not quantities")
        ticks = tuple(formatting.label(value) for value in ordered)
        return Axis(options.label("x", title), quantitative=False, ticks=ticks)
    placed = [p for value in ordered if (p := names.axis_value(str(x_key), value)) is not None]
    unit = placed[0][1]
    numbers = [number for number, _ in placed]
    # Evenly spaced values over decades get a linear scale.
    spread = _spans(numbers, 30) and statistics.median(numbers) < max(numbers) / 4
    log = options.is_log("x", usual=spread)
    if log:
        require_positive("x", numbers, f"{x_key} in {unit}" if unit else str(x_key))
    return Axis(
        options.label("x", names.with_unit(title, unit)),
        log=log,
        linear_below=_linear_below(numbers) if options.log is None else None,
        ticks=tuple(numbers),
    )


def require_positive(axis: str, numbers: Iterable[float], what: str) -> None:
    """Raises ParameterError for a logarithmic axis with a value that it cannot show."""
    smallest = min(numbers)
    if smallest <= 0:
        raise ParameterError(
            "log",
            f"the {axis} axis has the value {smallest:g} ({what}); a logarithmic axis needs values above 0",
        )


def _linear_below(numbers: Sequence[float]) -> float | None:
    """The smallest positive number, if zero is present and the others span decades."""
    above = [number for number in numbers if number > 0]
    return min(above) if min(numbers) == 0 and _spans(above, 300) else None


def _of_other_hosts(run: RunResult, column: Column, compared: set[str]) -> list[float]:
    """The values of a host's metric for the other hosts that are shown: their charts have the same scale."""
    if AT_HOST not in column.metric:
        return []
    shown = (name for name in grid.shown(run.study, run.cells) if AT_HOST in name)
    others = [
        replace(column, metric=name) for name in shown if whole_metric(name) == whole_metric(column.metric)
    ]
    return [
        row["y"]
        for other in others
        for cell in run.cells
        if other.metric in cell.metrics
        for row in (_measured(cell, other), *_expected(cell, other, compared))
    ]


def _y_axis(column: Column, rows: Sequence[Row], options: Options, others: Sequence[float] = ()) -> Axis:
    values = [row["y"] for row in rows]
    title = options.label("y", column.title)
    limits = options.y_limits(names.unit_of(column.metric), column.scale)
    if limits is not None:
        values = list(limits)
    spread = whole_metric(column.metric).endswith(("_bps", "_s")) and _spans([*values, *others], DECADE)
    if not rows or not options.is_log("y", usual=spread):
        return Axis(title, limits=limits)
    require_positive("y", values, column.title)
    if limits is not None:
        inside = tuple(tick for tick in log_ticks(*limits) if limits[0] <= tick <= limits[1])
        return Axis(title, log=True, ticks=inside, limits=limits)
    shown = [*values, *(row[end] for row in rows for end in ("low", "high") if end in row)]
    # On a logarithmic axis, an interval that reaches almost to zero would leave little room for values.
    bottom = max(min(value for value in shown if value > 0), min(values) / DECADE)
    return Axis(title, log=True, ticks=log_ticks(bottom, max(shown)))


def _clipped(rows: list[Row], axis: Axis) -> list[Row]:
    """Ends the bars of intervals that reach below a logarithmic axis at its start."""
    if not axis.log:
        return rows
    bottom = axis.ticks[0] if axis.limits is None else axis.limits[0]
    return [row | {"low": bottom} if row.get("low", bottom) < bottom else row for row in rows]


def log_ticks(low: float, high: float) -> tuple[float, ...]:
    """The ticks 1, 2 and 5 times a power of ten that enclose a range; only the powers over many decades.

    >>> log_ticks(0.061, 3.2)
    (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
    """
    steps = (1, 2, 5) if high / low < 1e4 else (1,)
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    ticks = [float(f"{step}e{power}") for power in range(first, last + 1) for step in steps]
    below = max((i for i, tick in enumerate(ticks) if tick <= low), default=0)
    above = min((i for i, tick in enumerate(ticks) if tick >= high), default=len(ticks) - 1)
    return tuple(ticks[below : above + 1])


def _spans(numbers: Sequence[float], factor: float) -> bool:
    """Whether positive numbers differ by at least a factor: a linear scale would hide the small ones."""
    return len(numbers) > 1 and min(numbers) > 0 and max(numbers) / min(numbers) >= factor
