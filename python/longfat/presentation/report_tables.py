"""The report's tables: every metric with intervals, theory and the source's figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from longfat.analysis import grid
from longfat.presentation import censored_text, formatting, names, notes, series_names
from longfat.presentation.columns import Column
from longfat.presentation.html import Content, Markup, folded, paragraph, table, tag
from longfat.study.vocabulary import canonical

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from longfat.results.run import CellResult, RunResult
    from longfat.study import Study


def numbers(run: RunResult) -> list[Markup]:
    """One table per world and metric: the main metric first, the others folded."""
    made: list[Markup] = []
    worlds = grid.worlds(run.cells)
    main = grid.shown(run.study, run.cells)[0]
    fixed_metrics = []
    for metric in sorted(grid.listed(run.cells), key=lambda name: name != main):
        if metric != main and (value := _only_value(run, metric)) is not None:
            fixed_metrics.append(f"{names.metric_phrase(metric)} {value}")
            continue
        layout = _Layout.of(run, metric)
        tables: list[Content] = []
        for world in worlds:
            if len(worlds) > 1:
                tables.append(tag("h3", f"World: {world}"))
            tables.append(layout.table([cell for cell in run.cells if cell.cell.world == world]))
        title = f"{names.metric_title(metric)}{f', {layout.column.unit}' if layout.column.unit else ''}"
        if metric == main:
            fixed = notes.determinism(run.study, run.cells)
            made.append(paragraph(f"{title}: mean ± {notes.confidence(run.cells)} half-width."))
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


@dataclass(frozen=True)
class _Layout:
    """The parts that the tables of a metric share in all worlds: unit, columns, the source's figures."""

    study: Study
    column: Column
    series: list[str]
    theory: bool
    figures: dict[str, float]

    @classmethod
    def of(cls, run: RunResult, metric: str) -> _Layout:
        column = Column.of(metric, run.cells)
        figures = {
            canonical([figure.protocol, figure.params]): figure.value
            for figure in grid.reported(run.study, run.cells)
            if figure.metric == metric
        }
        theory = any(map(column.theory, run.cells))
        series = series_names.series(run.study, (cell.cell for cell in run.cells))
        return cls(run.study, column, series, theory, figures)

    def table(self, cells: Sequence[CellResult]) -> Markup:
        keys = grid.shared_keys(self.study)
        columns = 1 + self.theory + bool(self.figures)
        first = [tag("th", title, rowspan=2) for title in [names.key_title(key) for key in keys] or [""]]
        groups = [
            tag("th", name, class_="group edge", colspan=columns, scope="colgroup") for name in self.series
        ]
        return table([[*first, *groups], [*self._heads()]], self._rows(cells, len(first)))

    def _heads(self) -> Iterator[Markup]:
        for _ in self.series:
            yield tag("th", "measured", class_="edge")
            if self.theory:
                yield tag("th", "theory")
            if self.figures:
                yield tag("th", "source")

    def _rows(self, cells: Sequence[CellResult], firsts: int) -> Iterator[Markup]:
        for point in grid.points(self.study, cells):
            labels = [formatting.label(value) for value in point.params.values()] or [""]
            found = {
                series_names.series_name(self.study, c.cell): c
                for group in point.results.values()
                for c in group
            }
            row: list[Content] = [tag("th", label, scope="row") for label in labels[:firsts]]
            for name in self.series:
                row += self._entries(found.get(name))
            yield tag("tr", row)

    def _entries(self, cell: CellResult | None) -> list[Markup]:
        column = self.column
        if cell is None or column.metric not in cell.metrics:
            blank = self.theory + bool(self.figures)
            failed = cell is not None and cell.failures and not cell.n
            entry = tag("td", "all failed" if failed else "", class_="edge")
            if cell is not None and column.metric in cell.censored:
                why = censored_text.unknown(cell.censored[column.metric])
                entry = tag("td", formatting.DASH, class_="edge", title=why)
            return [entry, *[tag("td")] * blank]
        interval = formatting.bounds(cell.metrics[column.metric], column.scale)
        mark = " !" if cell.failures else ""
        made = [tag("td", column.measured(cell) + mark, class_="edge", title=f"{interval} n={cell.n}")]
        if self.theory:
            made.append(tag("td", tag("span", column.theory(cell) or formatting.DASH, class_="of")))
        if self.figures:
            value = self.figures.get(canonical([cell.cell.protocol, cell.cell.params]))
            text = column.number(value) if value is not None else ""
            made.append(tag("td", tag("span", text, class_="of")))
        return made
