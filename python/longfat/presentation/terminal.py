"""The result of a run on a terminal: one table per world, points of the sweep down, protocols across."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rich import box
from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from longfat.analysis import agreement, grid
from longfat.analysis.statistics import method
from longfat.presentation import agreement_text, formatting, names, notes
from longfat.presentation.columns import Column
from longfat.study.vocabulary import AT_HOST

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

    from longfat.results.run import CellResult, RunResult, Verdict
    from longfat.study import Study

_MOST_MISSES = 5
"""The most cells that are listed if worlds differ; the report lists all."""
FAILED = "! "
"""The start of a line about failed trials."""
_SYMBOLS = {"holds": ("✓", "green"), "fails": ("✗", "red"), "undecided": ("?", "yellow")}


def table(study: Study, result: RunResult) -> RenderableType:
    """The shown metrics of every cell: the main one with its interval and theory, the others' means."""
    worlds = grid.worlds(result.cells)
    columns = [Column.of(metric, result.cells) for metric in grid.shown(study, result.cells)]
    parts: list[RenderableType] = [Text(study.title, style="bold")]
    for world in worlds:
        cells = [cell for cell in result.cells if cell.cell.world == world]
        named = world if len(worlds) > 1 else ""
        if AT_HOST in columns[0].metric:
            parts += ["", long_table(study, named, cells, columns)]
            continue
        parts += ["", WorldTable(study, named, cells, columns)]
        if len(grid.hosts(cells, columns[0].metric)) > 1:
            parts += ["", host_table(study, named, cells, columns[0])]
    if bounds := notes.classes(study, columns[0].metric):
        parts.append(Text(bounds, style="dim"))
    parts += [Text(line, style="dim") for line in footnotes(study, result.cells, columns[0])]
    parts += [Text(line, style="yellow") for line in notes.cautions(study, result.cells)]
    parts += disagreements(result.cells)
    return Group(*parts)


def verdict_label(claim: Verdict) -> Text:
    """The symbol of a verdict and its word, readable without colour."""
    symbol, colour = _SYMBOLS[claim.verdict]
    return Text.assemble((symbol, colour), " ", (f"{claim.verdict:9}", f"bold {colour}"), " ")


def verdicts(claims: Sequence[Verdict], *, detailed: bool = True) -> RenderableType:
    """The claims with their verdicts and, if `detailed`, the deciding numbers."""
    several = len({claim.world for claim in claims}) > 1
    made = Table.grid(padding=(0, 1))
    made.add_column(no_wrap=True)
    made.add_column(no_wrap=True)
    made.add_column()
    for claim in claims:
        symbol, colour = _SYMBOLS[claim.verdict]
        where = f" ({claim.world})" if several and claim.world else ""
        text = Text.assemble(claim.text, where)
        if detailed:
            text.append(f"\n{claim.detail}", "dim")
        made.add_row(Text(symbol, style=colour), Text(claim.verdict, style=f"bold {colour}"), text)
    return made


def footnotes(study: Study, cells: Sequence[CellResult], column: Column) -> Iterator[str]:
    """How to read the table: the intervals and their method, the signs of theory, and failed trials."""
    if note := notes.determinism(study, cells):
        yield note
    random = [cell for cell in cells if not cell.deterministic]
    methods = "; ".join(dict.fromkeys(method(n) for n in sorted({cell.n for cell in random}) if n))
    if methods:
        yield f"mean ± {notes.confidence(random)} half-width ({notes.trials(random)}; {methods})"
    signs = {column.theory(cell)[:1] for cell in cells if cell.metrics} - {""}
    if signs:
        parts = [notes.kind_of_theory(cells, column.metric)]
        parts += ["~ approximation"] if "~" in signs else []
        parts += [f"{notes.AT_MOST} upper bound (no closed form)"] if notes.AT_MOST in signs else []
        yield "; ".join(parts)
        yield from notes.changes_of_form(cells, column.metric)
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
    for each metric.
    """

    study: Study
    world: str
    cells: Sequence[CellResult]
    columns: Sequence[Column]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        long = long_table(self.study, self.world, self.cells, self.columns)
        layouts = (self._wide(), long) if grid.shared_keys(self.study) else (long, self._transposed())
        first, last = layouts
        fits = console.measure(first, options=options.update(max_width=10_000)).maximum <= options.max_width
        yield first if fits else last

    def _transposed(self) -> Table:
        """A row for each metric, a column for each protocol."""
        main = self.columns[0]
        made = _table(self.study, main, self.world)
        made.title = self.world or None
        made.add_column("Metric")
        for cell in self.cells:
            mark = "!" if cell.failures else ""
            made.add_column(grid.series_name(self.study, cell.cell) + mark, justify="right")
        for column in self.columns:
            made.add_row(column.title, *(column.measured(cell) for cell in self.cells))
            if column is main and any(map(main.theory, self.cells)):
                made.add_row(*(Text(text, style="dim") for text in ("theory", *map(main.theory, self.cells))))
        return made

    def _wide(self) -> Table:
        main, *others = self.columns
        made = _table(self.study, main, self.world)
        series = grid.series(self.study, (cell.cell for cell in self.cells))
        theory = any(map(main.theory, self.cells))
        minor = [*(["theory"] if theory else []), *(column.narrow_title for column in others)]
        for name in series:
            made.add_column(name, justify="right", no_wrap=True)
            for title in minor:
                made.add_column(Text(title, style="dim"), justify="right", no_wrap=True)
        for point in grid.points(self.study, self.cells):
            row: list[RenderableType] = [Text(formatting.label(value)) for value in point.params.values()]
            by_name = {
                grid.series_name(self.study, cell.cell): cell
                for cells in point.results.values()
                for cell in cells
            }
            for name in series:
                row += self._entries(by_name.get(name), theory=theory)
            made.add_row(*row)
        return made

    def _entries(self, cell: CellResult | None, *, theory: bool) -> list[Text]:
        main, *others = self.columns
        count = 1 + theory + len(others)
        if cell is None:
            return [Text("")] * count
        mark = "!" if cell.failures else ""
        if cell.failures and not cell.n:
            return [Text(f"all failed{mark}"), *[Text("")] * (count - 1)]
        minor = [*([main.theory(cell)] if theory else []), *(column.mean(cell) for column in others)]
        return [Text(main.measured(cell) + mark), *(Text(text, style="dim") for text in minor)]


def _table(study: Study, column: Column, world: str) -> Table:
    where = f", {world}" if world else ""
    unit = f" in {column.unit}" if column.unit else ""
    made = Table(
        title=f"{names.metric_title(column.metric)}{unit}{where}",
        title_justify="left",
        title_style="",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    for key in grid.shared_keys(study):
        made.add_column(names.key_title(key), justify="right")
    return made


def long_table(study: Study, world: str, cells: Sequence[CellResult], columns: Sequence[Column]) -> Table:
    """A row for each point and protocol, a column for each metric; theory next to the main one."""
    main = columns[0]
    made = _table(study, main, world)
    if AT_HOST in main.metric:
        made.title = world or None
    made.add_column("Protocol")
    theory = any(map(main.theory, cells))
    for column in columns:
        whole, _, part = column.metric.partition(AT_HOST)
        heading = [names.column_title(whole), *([part] if part else []), column.unit]
        made.add_column("\n".join(filter(None, heading)), justify="right", no_wrap=True)
        if column is main and theory:
            made.add_column(Text("theory", style="dim"), justify="right", no_wrap=True)
    for point in grid.points(study, cells):
        labels = [formatting.label(value) for value in point.params.values()]
        for cell in (cell for group in point.results.values() for cell in group):
            mark = "!" if cell.failures else ""
            entries: list[RenderableType] = []
            for column in columns:
                entries.append(column.measured(cell))
                if column is main and theory:
                    entries.append(Text(main.theory(cell), style="dim"))
            made.add_row(*labels, grid.series_name(study, cell.cell) + mark, *entries)
            labels = [""] * len(labels)
        made.add_section()
    return made


def host_table(study: Study, world: str, cells: Sequence[CellResult], column: Column) -> Table:
    """The main metric of each host, measured and, if there is any, predicted by theory."""
    made = _table(study, column, world)
    hosts = grid.hosts(cells, column.metric)
    made.title = f"{made.title}, by {grid.part(hosts)}"
    made.add_column("Protocol")
    columns = [replace(column, metric=f"{column.metric}{AT_HOST}{host}") for host in hosts]
    theory = any(one.theory(cell) for cell in cells for one in columns)
    for host in hosts:
        made.add_column(Text.assemble(host, ("\ntheory", "dim") if theory else ""), justify="right")
    for cell in cells:
        labels = [formatting.label(cell.cell.params.get(key, "")) for key in grid.shared_keys(study)]
        entries = []
        for one in columns:
            below = f"\n{one.theory(cell) or formatting.DASH}" if theory else ""
            entries.append(Text.assemble(one.measured(cell), (below, "dim")))
        made.add_row(*labels, grid.series_name(study, cell.cell), *entries)
    return made
