"""The chart of a run with its options: which kind suits, its look, its plotted values, and its files."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from longfat.analysis import grid
from longfat.presentation import names
from longfat.presentation.charts import theme
from longfat.presentation.charts.files import render
from longfat.presentation.charts.fit import fitted, size_in_px
from longfat.presentation.charts.fonts import require_installed
from longfat.presentation.charts.size import PX_PER_INCH
from longfat.presentation.charts.vega import Format
from longfat.presentation.data_files import encoded
from longfat.presentation.run.charts import cdf, distributions, hosts, lines, matrix, panels
from longfat.presentation.run.charts import data as chart_data
from longfat.study.labels import label
from longfat.study.points import cells_at
from longfat.study.sweep import listed, values
from longfat.study.vocabulary import short_metric, whole_metric
from longfat.system.files import write_whole
from longfat.system.parameters import ParameterError

if TYPE_CHECKING:
    from longfat.presentation.charts.vega import Row, Spec
    from longfat.presentation.run.charts.options import Options
    from longfat.results.run import RunResult
    from longfat.system.remote_path import Location

_WIDTH = 620
"""Width of the plots of a chart without a size in px."""
_MARGIN = 2
"""Margin of a chart with a size in px: papers have their own."""


@dataclass(frozen=True)
class Plot:
    """A kind of chart with its data: what draws it, its plotted values, and its titles."""

    make: Callable[[int, int | None], Spec]
    values: Sequence[Row]
    name: str
    """The stem of its file by default."""
    heading: str
    caption: str
    """How to read it."""
    about: str = ""
    """The metric, the axis and the path, for captions of figures without a title."""


@dataclass(frozen=True)
class Drawing:
    """A chart of a run. `width` is that of its files in inches, None for that of the specification."""

    spec: Spec
    values: Sequence[Row]
    caption: str
    name: str
    """The stem of its file by default."""
    width: float | None = None
    font: str | None = None

    def write(self, out: Location, fmt: Format, *, csv: bool = False) -> list[Location]:
        """Writes the chart and optionally, next to it, its values as CSV; returns the files."""
        import polars as pl

        if self.font is not None:
            require_installed(self.font, fmt)
        files = [out]
        if csv and out.name.endswith(".csv"):
            raise ParameterError("csv", f"{out} is the chart; choose another {{out}}")
        write_whole(out, render(self.spec, fmt, self.width))
        if csv:
            files.append(out.with_name(f"{out.stem}.csv"))
            write_whole(files[-1], encoded(pl.DataFrame(self.values, infer_schema_length=None), "csv"))
        return files


def format_of(out: Path) -> Format:
    """Returns the format of a file by its suffix. Raises ParameterError for an unknown one."""
    known = {name: name for name in get_args(Format)}
    found: Format | None = known.get(out.suffix.removeprefix(".").lower())
    if found is None:
        raise ParameterError(
            "out", f"{out}: unknown suffix; allowed: {', '.join(f'.{one}' for one in known)}"
        )
    return found


def draw(run: RunResult, metric: str | None, options: Options) -> Drawing:
    """Returns the chart of a metric, by default of the study's main one.

    Raises ValueError for a wrong option, and for a metric that is unknown or was not measured.
    """
    if not run.cells:
        raise ValueError("this run has no trials")
    if options.cell:
        run = _narrowed(run, options.cell)
    if options.facet is not None:
        panels.check_facet(run, options.facet)
    scale, area = options.scale, options.area
    plot = _plot(run, metric, options)

    def titled(width: int, height: int | None) -> Spec:
        return _styled(plot.make(width, height), _title(run, plot, options, width), options)

    if area is None:
        spec = titled(round(_WIDTH / scale), None)
        width = None if options.font_size is None else size_in_px(spec)[0] * scale / PX_PER_INCH
    else:
        wanted = [None if side is None else side * PX_PER_INCH / scale for side in (area.width, area.height)]
        spec, across, down = fitted(titled, wanted[0] or 0.0, wanted[1])
        narrow = 1.0 if panels.titles_fit(spec) else math.inf
        _require_room(options, narrow * across / (wanted[0] or across), down / (wanted[1] or down))
        width = area.width
    caption = f"{plot.about or f'{plot.heading}.'} {plot.caption}"
    return Drawing(spec, plot.values, caption, plot.name, width, options.font)


def _narrowed(run: RunResult, at: Mapping[str, Any]) -> RunResult:
    """Returns the cells of a run where swept keys have the given values, as of a study with these values."""
    chosen = cells_at([one.cell for one in run.cells], at, run.study)
    sweep = dict(run.study.sweep)
    for key in at:
        found = [cell.params[key] for cell in chosen if key in cell.params]
        pairs = zip(values(sweep[key]), listed(sweep[key]), strict=True)
        sweep[key] = [raw for shown, raw in pairs if shown in found]
    kept = set(map(id, chosen))
    cells = [one for one in run.cells if id(one.cell) in kept]
    return replace(run, study=run.study.narrowed(sweep), cells=cells)


def _plot(run: RunResult, metric: str | None, options: Options) -> Plot:
    if options.cdf is not None:
        return _cdf(run, metric, options)
    column = grid.shown(run.study, run.cells)[0] if metric is None else run.study.column(metric)
    if options.by_host:
        column = whole_metric(column)
    title, name = names.metric_title(column), short_metric(column)
    if options.by_host:
        make: Any = partial(_sized, hosts.plot, run, column, options)
        values = [row[chart_data.VALUES] for row in hosts.first_panels(hosts.rows(run, column)[0])]
        return Plot(make, values, f"{name}-by-host", title, hosts.caption(run, column))
    if column not in grid.measured(run.cells):
        known = ", ".join(grid.measured(run.cells))
        raise ValueError(f"this run measured no {metric or 'metric'}; measured: {known}")
    is_plain = options.log is None and options.facet is None and options.y_range is None
    kind: Any = matrix if is_plain and matrix.suits(run, column) else lines
    data = chart_data.collect(run, column, options)
    make = partial(_sized, kind.plot, data, column, options)
    values = [one for one in data.values if kind is lines or one["kind"] == chart_data.MEASURED]
    about = f"{title}{f' over {names.lower_first(data.x.title)}' if data.x.title else ''}."
    return Plot(make, values, name, title, kind.caption(run, column), " ".join([about, *_path(run)]))


def _path(run: RunResult) -> Iterator[str]:
    """Yields the sentence with the keys of the path that all cells share."""
    paths = [one.cell.spec["path"] for one in run.cells if "path" in one.cell.spec]
    if len(paths) == len(run.cells) and (shared := _shared(paths)):
        yield f"Path: {', '.join(f'{key} {label(value)}' for key, value in shared.items())}."


def _shared(tables: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the keys that have the same value in all tables, also of tables in these."""
    first, *others = tables
    found = {}
    for key, value in first.items():
        if all(other.get(key) == value for other in others):
            found[key] = value
        elif all(isinstance(one.get(key), Mapping) for one in tables):
            found[key] = _shared([one[key] for one in tables])
    return {key: value for key, value in found.items() if value != {}}


def _cdf(run: RunResult, metric: str | None, options: Options) -> Plot:
    if options.cdf == "flows":
        found = distributions.of_flows(run, metric)
    elif options.cdf == "rounds":
        found = distributions.of_rounds(run, metric)
    else:
        column = grid.shown(run.study, run.cells)[0] if metric is None else run.study.column(metric)
        found = distributions.of_trials(run, column)
    rows = cdf.rows(run, found, options)
    values = list({id(row[chart_data.VALUES]): row[chart_data.VALUES] for row in rows}.values())

    def make(width: int, height: int | None) -> Spec:
        return cdf.plot(run, found, rows, width, height, options)

    title = f"Distribution over {found.of}, {names.lower_first(found.title)}"
    return Plot(make, values, f"{found.name}-cdf-{found.of}", title, cdf.caption(run, found))


def _sized(plot: Any, of: Any, metric: str, options: Options, width: int, height: int | None) -> Spec:
    spec: Spec = plot(of, metric, width, height, options)
    return spec


def _title(run: RunResult, plot: Plot, options: Options, width: int) -> Spec | None:
    """The chosen title; by default none with a size, else metric, study and caption."""
    if options.title is not None:
        return theme.title(options.title, width)
    if options.size is not None:
        return None
    return theme.run_heading(plot.heading, run, plot.caption.removesuffix("."), width)


def _styled(plot: Spec, title: Spec | None, options: Options) -> Spec:
    spec = theme.chart(plot, title)
    if options.size is not None:
        spec["config"]["padding"] = _MARGIN
    if options.font is not None:
        spec["config"]["font"] = f"{options.font}, {theme.FONT}"
    return spec


def _require_room(options: Options, across: float, down: float) -> None:
    """Raises ParameterError if the chart is larger than its size, since its text would become smaller."""
    for side, factor in (("narrow", across), ("low", down)):
        if factor > 1.02:
            raise ParameterError(
                "size",
                f'"{options.size}" is too {side} for the labels and the legend; '
                "choose a larger size, a smaller {font_size}, or shorter labels",
            )
