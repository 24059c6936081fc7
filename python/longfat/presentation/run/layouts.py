"""Layouts of a run's cells as tables, the same for terminals, reports and notebooks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from longfat.analysis import grid
from longfat.presentation import formatting, names
from longfat.presentation.run.columns import Column
from longfat.presentation.text_table import Minor, TextTable
from longfat.study.vocabulary import AT_HOST

if TYPE_CHECKING:
    from longfat.results.run import Cell, CellResult
    from longfat.study import Study


@dataclass(frozen=True)
class Part:
    """A column below each protocol, or of all: its heading, and its text for a cell."""

    head: str
    text: Callable[[CellResult], str]


def key_titles(study: Study) -> list[str]:
    """Returns the headings of the swept keys that all protocols share."""
    return [names.key_title(key) for key in grid.shared_keys(study)]


def place(study: Study, cell: Cell) -> list[str]:
    """Returns the values of the swept keys that all protocols share."""
    return [formatting.label(cell.params.get(key, "")) for key in grid.shared_keys(study)]


def mark(cell: CellResult) -> str:
    """Returns the mark of cells with failed trials; empty without any."""
    return "!" if cell.failures else ""


def has_failed(cell: CellResult) -> bool:
    """Returns whether all trials of a cell failed."""
    return bool(cell.failures) and not cell.n


def marked_name(study: Study, cell: CellResult) -> str:
    """Returns the protocol of a cell with the mark of failed trials."""
    return grid.series_name(study, cell.cell) + mark(cell)


def across(
    study: Study,
    cells: Sequence[CellResult],
    series: Sequence[str],
    parts: Iterable[Part],
    name: Callable[[Study, Cell], str],
) -> TextTable:
    """Returns a row for each point of the sweep, with a group of columns for each protocol."""
    keys, parts = key_titles(study) or [""], list(parts)
    rows = []
    for point in grid.points(study, cells):
        found = {name(study, cell.cell): cell for cell in point.cells}
        entries = [part.text(found[one]) if one in found else "" for one in series for part in parts]
        labels = [formatting.label(value) for value in point.params.values()] or [""]
        rows.append([*labels, *entries])
    head = [*keys, *(part.head for _ in series for part in parts)]
    values = range(len(keys), len(head))
    groups = [(one, len(parts)) for one in series]
    return TextTable(head, rows, range(len(head)), values, labels=len(keys), groups=groups)


def down(study: Study, cells: Sequence[CellResult], parts: Iterable[Part]) -> TextTable:
    """Returns a row for each point of the sweep and protocol; each point is a section."""
    keys, parts = key_titles(study), list(parts)
    rows: list[list[str]] = []
    for point in grid.points(study, cells):
        labels = [formatting.label(value) for value in point.params.values()]
        for cell in point.cells:
            rows.append([*labels, marked_name(study, cell), *(part.text(cell) for part in parts)])
            labels = [""] * len(labels)
        rows.append([])
    head = [*keys, "Protocol", *(part.head for part in parts)]
    values = range(len(keys) + 1, len(head))
    return TextTable(head, rows, right=[*range(len(keys)), *values], whole=values)


def by_host(study: Study, cells: Sequence[CellResult], column: Column) -> TextTable:
    """Returns a row for each cell, with the metric of each host over that of theory, if there is any."""
    hosts = grid.hosts(cells, column.metric)
    columns = [replace(column, metric=f"{column.metric}{AT_HOST}{host}") for host in hosts]
    theory = any(one.theory(cell) for cell in cells for one in columns)

    def entry(measured: str, expected: str) -> str:
        return Minor(f"{measured}\n{expected}") if theory else measured

    rows = [
        [
            *place(study, cell.cell),
            grid.series_name(study, cell.cell),
            *(entry(one.measured(cell), one.theory(cell) or formatting.DASH) for one in columns),
        ]
        for cell in cells
    ]
    keys = key_titles(study)
    head = [*keys, "Protocol", *(entry(host, "theory") for host in hosts)]
    return TextTable(head, rows, right=[n for n in range(len(head)) if n != len(keys)])


def transposed(study: Study, cells: Sequence[CellResult], columns: Sequence[Column]) -> TextTable:
    """Returns a row for each metric, with a column for each cell. Theory follows the first one."""
    rows: list[list[str]] = [[column.title, *(column.measured(cell) for cell in cells)] for column in columns]
    theory = [Minor(columns[0].theory(cell)) for cell in cells]
    if any(theory):
        rows.insert(1, [Minor("theory"), *theory])
    head = ["Metric", *(marked_name(study, cell) for cell in cells)]
    return TextTable(head, rows, right=range(1, len(head)))
