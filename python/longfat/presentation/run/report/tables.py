"""The report's tables: every metric with intervals, theory and the source's figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longfat.analysis import grid
from longfat.presentation import formatting, names, series_names
from longfat.presentation.html.markup import Content, Markup, folded, paragraph, scrolling, tag
from longfat.presentation.run import censored, layouts, notes
from longfat.presentation.run.columns import Column
from longfat.presentation.run.layouts import Part
from longfat.presentation.text_table import Minor, Noted
from longfat.study.vocabulary import canonical

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longfat.results.run import CellResult, RunResult


def numbers(run: RunResult) -> list[Markup]:
    """One table per world and metric: the main metric first, the others folded."""
    made: list[Markup] = []
    worlds = grid.worlds(run.cells)
    main = grid.shown(run.study, run.cells)[0]
    name = series_names.series_name
    series = series_names.series(run.study, (cell.cell for cell in run.cells))
    fixed_metrics = []
    for metric in sorted(grid.listed(run.cells), key=lambda name: name != main):
        if metric != main and (value := _only_value(run, metric)) is not None:
            fixed_metrics.append(f"{names.metric_phrase(metric)} {value}")
            continue
        column = Column.of(metric, run.cells)
        parts = list(_parts(run, column))
        tables: list[Content] = []
        for world in worlds:
            if len(worlds) > 1:
                tables.append(tag("h3", f"World: {world}"))
            cells = [cell for cell in run.cells if cell.cell.world == world]
            tables.append(scrolling(layouts.across(run.study, cells, series, parts, name).html()))
        title = f"{names.metric_title(metric)}{f', {column.unit}' if column.unit else ''}"
        if metric == main:
            fixed = "; ".join(notes.determinism(run.study, run.cells))
            how = [f"{title}: mean ± {notes.confidence(run.cells)} half-width"]
            how += [notes.bounded(cut)] if (cut := list(filter(column.is_cut, run.cells))) else []
            made.append(paragraph(f"{'; '.join(how)}."))
            made += [paragraph(f"{fixed[:1].upper()}{fixed[1:]}.", "note")] if fixed else []
            made.append(tag("div", tables))
        else:
            made.append(folded(title, tables))
    if fixed_metrics:
        made.append(paragraph(f"The same in all trials: {'; '.join(fixed_metrics)}.", "note"))
    return made


def _only_value(run: RunResult, metric: str) -> str | None:
    """The value of a metric that is the same in all trials; None if it varies."""
    if any(metric in cell.censored for cell in run.cells):
        return None
    cells = [cell for cell in run.cells if metric in cell.metrics]
    found = {value for cell in cells for value in (*cell.samples.get(metric, ()), cell.metrics[metric].mean)}
    return formatting.quantity(found.pop(), names.unit_of(metric)) if len(found) == 1 else None


def _parts(run: RunResult, column: Column) -> Iterator[Part]:
    """The columns of a protocol: measured, and in theory and in the source as far as there are figures."""
    metric = column.metric
    reported = [figure for figure in grid.reported(run.study, run.cells) if figure.metric == metric]
    figures = {canonical([one.protocol, one.params]): column.number(one.value) for one in reported}

    def measured(cell: CellResult) -> str:
        if metric in cell.metrics:
            interval = formatting.bounds(cell.metrics[metric], column.scale)
            mark = " !" if cell.failures else ""
            return Noted(column.measured(cell) + mark, f"{interval} n={cell.n}")
        if metric in cell.censored:
            return Noted(formatting.DASH, censored.unknown(cell.censored[metric]))
        return "all failed" if layouts.has_failed(cell) else ""

    def theory(cell: CellResult) -> str:
        return Minor(column.theory(cell) or formatting.DASH) if metric in cell.metrics else ""

    def source(cell: CellResult) -> str:
        known = figures.get(canonical([cell.cell.protocol, cell.cell.params]), "")
        return Minor(known) if metric in cell.metrics else ""

    yield Part("measured", measured)
    if any(map(column.theory, run.cells)):
        yield Part("theory", theory)
    if figures:
        yield Part("source", source)
