"""The result of a run on a terminal: one table per world, points of the sweep down, protocols across."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from longfat.analysis import agreement, grid
from longfat.analysis.statistics import method
from longfat.presentation import names
from longfat.presentation.run import agreement_text, layouts, notes
from longfat.presentation.run.columns import Column
from longfat.presentation.run.layouts import Part
from longfat.presentation.run.verdicts import SYMBOLS
from longfat.presentation.text_table import Minor, TextTable
from longfat.study.vocabulary import AT_HOST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

    from longfat.results.run import CellResult, RunResult, Verdict
    from longfat.study import Study

_MOST_MISSES = 5
"""The most cells that are listed if worlds differ; the report lists all."""
FAILED = "! "
"""The start of a line about failed trials."""
_COLOURS = {"holds": "green", "fails": "red", "undecided": "yellow"}


def table(study: Study, result: RunResult) -> RenderableType:
    """The shown metrics of every cell with their intervals, the main one with theory."""
    worlds = grid.worlds(result.cells)
    columns = [Column.of(metric, result.cells) for metric in grid.shown(study, result.cells)]
    parts: list[RenderableType] = [Text(study.title, style="bold")]
    for world in worlds:
        cells = [cell for cell in result.cells if cell.cell.world == world]
        named = world if len(worlds) > 1 else ""
        parts += ["", WorldTable(study, named, cells, columns)]
        if AT_HOST not in columns[0].metric and len(grid.hosts(cells, columns[0].metric)) > 1:
            parts += ["", host_table(study, named, cells, columns[0])]
    if bounds := notes.classes(study, columns[0].metric):
        parts.append(Text(bounds, style="dim"))
    parts += [Text(line, style="dim") for line in footnotes(study, result.cells, columns)]
    parts += [Text(line, style="yellow") for line in notes.cautions(study, result.cells)]
    parts += disagreements(result.cells)
    return Group(*parts)


def verdict_label(claim: Verdict) -> Text:
    """The symbol of a verdict and its word, readable without colour."""
    symbol, word = _label(claim)
    word.pad_right(9 - len(word))
    return Text.assemble(symbol, " ", word, " ")


def _label(claim: Verdict) -> tuple[Text, Text]:
    """The symbol and the word of a verdict in their colour."""
    colour = _COLOURS[claim.verdict]
    return Text(SYMBOLS[claim.verdict], colour), Text(claim.verdict, f"bold {colour}")


def verdicts(claims: Sequence[Verdict], *, detailed: bool = True) -> RenderableType:
    """The claims with their verdicts and, if `detailed`, the deciding numbers."""
    several = len({claim.world for claim in claims}) > 1
    made = Table.grid(padding=(0, 1))
    made.add_column(no_wrap=True)
    made.add_column(no_wrap=True)
    made.add_column()
    for claim in claims:
        where = f" ({claim.world})" if several and claim.world else ""
        text = Text.assemble(claim.text, where)
        if detailed:
            text.append(f"\n{claim.detail}", "dim")
        made.add_row(*_label(claim), text)
    return made


def footnotes(study: Study, cells: Sequence[CellResult], columns: Sequence[Column]) -> Iterator[str]:
    """How to read the table: the intervals and their method, the signs of theory, and failed trials."""
    column = columns[0]
    yield from notes.determinism(study, cells)
    random = [cell for cell in cells if not cell.deterministic]
    methods = "; ".join(dict.fromkeys(method(n) for n in sorted({cell.n for cell in random}) if n))
    if methods:
        yield f"mean ± {notes.confidence(random)} half-width ({notes.trials(random)}; {methods})"
    cut = [cell for cell in random if any(one.is_cut(cell) for one in columns)]
    if cut:
        yield notes.bounded(cut)
    signs = {column.theory(cell)[:1] for cell in cells if cell.metrics} - {""}
    if signs:
        parts = [notes.kind_of_theory(cells, column.metric)]
        parts += ["~ approximation"] if "~" in signs else []
        parts += [f"{notes.AT_MOST} upper bound (no closed form)"] if notes.AT_MOST in signs else []
        yield "; ".join(parts)
        yield from notes.forms(cells, column.metric)
    yield from notes.computed(study)
    for line in notes.failures(cells):
        yield f"{FAILED}{line}"


def disagreements(cells: Sequence[CellResult]) -> list[RenderableType]:
    """The number of cells in which worlds agree, then the cells that differ most, with possible causes."""
    found = agreement.agreements(cells)
    lines: list[RenderableType] = [Text(line, style="dim") for line in agreement_text.summary(found)]
    misses = agreement.missed(found)
    for one in misses[:_MOST_MISSES]:
        lines.append(Padding(Text(f"misses {agreement_text.misses(one)}"), (0, 0, 0, 2), style="dim"))
        lines.append(Padding(Text(agreement_text.causes(one)), (0, 0, 0, 4), style="dim"))
    if len(misses) > _MOST_MISSES:
        more = f"and {len(misses) - _MOST_MISSES} more (see the report)"
        lines.append(Padding(Text(more), (0, 0, 0, 2), style="dim"))
    return lines


@dataclass(frozen=True)
class WorldTable:
    """The cells of one world in the first layout that fits the terminal.

    With a sweep, protocols are columns, or else rows. Without, protocols are rows, or else columns with a row
    for each metric. Metrics of single hosts are columns. Metrics that fit no layout follow in further tables.
    """

    study: Study
    world: str
    cells: Sequence[CellResult]
    columns: Sequence[Column]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        columns = list(self.columns)
        while columns:
            count = len(columns)
            while (found := self._with(columns[:count])._fitting(console, options)) is None and count > 1:
                count -= 1
            if len(columns) < len(self.columns):
                yield ""
            yield found or self._with(columns[:1])._layouts()[-1].rich(ruled=True)
            columns = columns[count:]

    def _with(self, columns: Sequence[Column]) -> WorldTable:
        return replace(self, columns=columns)

    def _fitting(self, console: Console, options: ConsoleOptions) -> Table | None:
        """Returns the first layout that is not wider than the terminal, the last one with broken headings."""
        unlimited = options.update(max_width=10_000)
        *wider, last = self._layouts()
        made = (layout.rich(ruled=True) for layout in wider)
        fits = (one for one in made if console.measure(one, options=unlimited).maximum <= options.max_width)
        return next(fits, last.rich(ruled=True) if last.narrowest() <= options.max_width else None)

    def _layouts(self) -> list[TextTable]:
        main = self.columns[0]
        long = layouts.down(self.study, self.cells, self._long_parts())
        if AT_HOST in main.metric:
            return [replace(long, title=self.world)]
        title = _title(main, self.world)
        long = replace(long, title=title)
        if not grid.shared_keys(self.study):
            flat = layouts.transposed(self.study, self.cells, self.columns)
            return [long, replace(flat, title=self.world)]
        series = grid.series(self.study, (cell.cell for cell in self.cells))
        wide = layouts.across(self.study, self.cells, series, self._wide_parts(), grid.series_name)
        return [replace(wide, title=title), long]

    def _long_parts(self) -> Iterator[Part]:
        """The metrics with their intervals; theory next to the main one."""
        for column in self.columns:
            whole, _, part = column.metric.partition(AT_HOST)
            heading = "\n".join(filter(None, (names.column_title(whole), part, column.unit)))
            yield Part(heading, column.measured)
            if column is self.columns[0]:
                yield from self._theory(column.theory)

    def _wide_parts(self) -> Iterator[Part]:
        """The metrics with their intervals; theory next to the main one."""
        main, *others = self.columns

        def measured(cell: CellResult) -> str:
            return ("all failed" if layouts.has_failed(cell) else main.measured(cell)) + layouts.mark(cell)

        yield Part("", measured)
        yield from self._theory(lambda cell: "" if layouts.has_failed(cell) else main.theory(cell))
        for column in others:
            yield _minor(column.narrow_title, column.measured)

    def _theory(self, text: Callable[[CellResult], str]) -> Iterator[Part]:
        if any(map(self.columns[0].theory, self.cells)):
            yield _minor("theory", text)


def host_table(study: Study, world: str, cells: Sequence[CellResult], column: Column) -> Table:
    """The main metric of each host, measured and, if there is any, predicted by theory."""
    part = grid.part(grid.hosts(cells, column.metric))
    title = f"{_title(column, world)}, by {part}"
    return replace(layouts.by_host(study, cells, column), title=title).rich(ruled=True)


def _title(column: Column, world: str) -> str:
    unit = f" in {column.unit}" if column.unit else ""
    return f"{names.metric_title(column.metric)}{unit}{f', {world}' if world else ''}"


def _minor(head: str, text: Callable[[CellResult], str]) -> Part:
    return Part(Minor(head), lambda cell: Minor(text(cell)))
