"""The report's tables: every metric with intervals, theory and the source's figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from longfat.analysis import grid
from longfat.presentation import formatting
from longfat.presentation.html import Content, Markup, paragraph, table, tag
from longfat.study.vocabulary import canonical

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from longfat.results import CellResult, RunResult
    from longfat.study import Study


def numbers(run: RunResult) -> list[Markup]:
    """One table a world and metric: the main one open, the others folded, and within them those by host."""
    made: list[Markup] = []
    worlds = grid.worlds(run.cells)
    main = grid.shown(run.study, run.cells)[0]
    for metric in sorted(grid.measured(run.cells), key=lambda name: name != main):
        layout = _Layout.of(run, metric)
        tables: list[Content] = []
        for world in worlds:
            if len(worlds) > 1:
                tables.append(tag("h3", f"World: {world}"))
            tables.append(layout.table([cell for cell in run.cells if cell.cell.world == world]))
        title = f"{formatting.metric_title(metric)}{f', {layout.unit}' if layout.unit else ''}"
        if metric == main:
            fixed = grid.determinism(run.study, run.cells)
            made.append(paragraph(f"{title}: mean ± 95 % confidence half-width."))
            made += [paragraph(f"{fixed[:1].upper()}{fixed[1:]}.", "note")] if fixed else []
            made.append(tag("div", tables))
        else:
            made.append(tag("details", [tag("summary", title), tables], class_="fold"))
    return made


@dataclass(frozen=True)
class _Layout:
    """What all worlds' tables of a metric share: unit, columns, figures to compare with."""

    study: Study
    metric: str
    scale: float
    unit: str
    names: list[str]
    theory: bool
    figures: dict[str, float]

    @classmethod
    def of(cls, run: RunResult, metric: str) -> _Layout:
        means = [cell.metrics[metric].mean for cell in run.cells if metric in cell.metrics]
        scale, unit = formatting.scale_for(means, formatting.unit_of(metric))
        figures = {
            canonical([figure.protocol, figure.params]): figure.value
            for figure in grid.reported(run.study, run.cells)
            if figure.metric == metric
        }
        theory = any(grid.theory_text(cell, metric, 1.0) for cell in run.cells)
        names = list(dict.fromkeys(grid.series_name(run.study, cell.cell) for cell in run.cells))
        return cls(run.study, metric, scale, unit, names, theory, figures)

    def table(self, cells: Sequence[CellResult]) -> Markup:
        keys = grid.shared_keys(self.study)
        columns = 1 + self.theory + bool(self.figures)
        first = [tag("th", formatting.key_title(key), rowspan=2) for key in keys] or [
            tag("th", "", rowspan=2)
        ]
        groups = [
            tag("th", name, class_="group edge", colspan=columns, scope="colgroup") for name in self.names
        ]
        return table([[*first, *groups], [*self._heads()]], self._rows(cells, len(first)))

    def _heads(self) -> Iterator[Markup]:
        for _ in self.names:
            yield tag("th", "measured", class_="edge")
            if self.theory:
                yield tag("th", "theory")
            if self.figures:
                yield tag("th", "source")

    def _rows(self, cells: Sequence[CellResult], firsts: int) -> Iterator[Markup]:
        for point in grid.points(self.study, cells):
            labels = [formatting.label(value) for value in point.params.values()] or [""]
            found = {
                grid.series_name(self.study, c.cell): c for group in point.results.values() for c in group
            }
            row: list[Content] = [tag("th", label, scope="row") for label in labels[:firsts]]
            for name in self.names:
                row += self._entries(found.get(name))
            yield tag("tr", row)

    def _entries(self, cell: CellResult | None) -> list[Markup]:
        if cell is None or self.metric not in cell.metrics:
            blank = self.theory + bool(self.figures)
            told = "all failed" if cell is not None and cell.failures and not cell.n else ""
            return [tag("td", told, class_="edge"), *[tag("td")] * blank]
        interval = cell.metrics[self.metric]
        mark = " !" if cell.failures else ""
        told = formatting.measured(cell, self.metric, self.scale) + mark
        made = [tag("td", told, class_="edge", title=f"{formatting.bounds(interval, self.scale)} n={cell.n}")]
        if self.theory:
            made.append(tag("td", tag("span", self._expected(cell), class_="of")))
        if self.figures:
            value = self.figures.get(canonical([cell.cell.protocol, cell.cell.params]))
            told = formatting.digits(value / self.scale) if value is not None else ""
            made.append(tag("td", tag("span", told, class_="of")))
        return made

    def _expected(self, cell: CellResult) -> str:
        return grid.theory_text(cell, self.metric, self.scale) or formatting.DASH
