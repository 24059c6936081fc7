"""The answer on a terminal: one table a world, points of the sweep down, protocols across."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich import box
from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from longfat.analysis import agreement, grid
from longfat.analysis.statistics import method
from longfat.presentation import cautions, formatting
from longfat.study.vocabulary import AT_HOST

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

    from longfat.results import CellResult, RunResult, Verdict
    from longfat.study import Study

_WHOLE_FROM = 100
"""Means from here on need no digits after the point."""
_MOST_MISSES = 5
"""Cells in which worlds differ that are named; the report names all."""
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
    if bounds := grid.class_bounds(study, columns[0].metric):
        parts.append(Text(bounds, style="dim"))
    parts += [Text(line, style="dim") for line in footnotes(study, result.cells, columns[0].metric)]
    parts += [Text(line, style="yellow") for line in cautions.host_drops(result.cells)]
    parts += disagreements(result.cells)
    return Group(*parts)


def verdicts(claims: Sequence[Verdict]) -> RenderableType:
    """The claims with a symbol, the verdict as a word (no colour is needed), and the numbers."""
    several = len({claim.world for claim in claims}) > 1
    grid_ = Table.grid(padding=(0, 1))
    grid_.add_column(no_wrap=True)
    grid_.add_column(no_wrap=True)
    grid_.add_column()
    for claim in claims:
        symbol, colour = _SYMBOLS[claim.verdict]
        where = f" ({claim.world})" if several and claim.world else ""
        told = Text.assemble(claim.text, where, "\n", (claim.detail, "dim"))
        grid_.add_row(Text(symbol, style=colour), Text(claim.verdict, style=f"bold {colour}"), told)
    return grid_


def footnotes(study: Study, cells: Sequence[CellResult], metric: str) -> Iterator[str]:
    """How to read the table: what an interval is, how it was found, what failed."""
    if told := grid.determinism(study, cells):
        yield told
    every, cells = cells, [cell for cell in cells if not cell.deterministic]
    counts = sorted({cell.n for cell in cells})
    methods = "; ".join(dict.fromkeys(method(n) for n in counts if n))
    if methods:
        yield f"mean ± 95 % confidence half-width ({grid.trials_text(cells)}; {methods})"
    signs = {grid.theory_text(cell, metric, 1.0)[:1] for cell in every if cell.metrics} - {""}
    if signs:
        parts = ["theory: the closed form, in steady state"]
        parts += ["~ an approximation"] if "~" in signs else []
        parts += [f"{grid.AT_MOST} upper bound (no closed form)"] if grid.AT_MOST in signs else []
        yield "; ".join(parts)
    yield from failure_lines(every)


def disagreements(cells: Sequence[CellResult]) -> list[RenderableType]:
    """In how many cells worlds agree; below it those that are furthest apart, and what their records tell."""
    found = agreement.agreements(cells)
    lines: list[RenderableType] = [Text(line, style="dim") for line in agreement.summary(found)]
    misses = agreement.missed(found)
    for told, why in misses[:_MOST_MISSES]:
        lines.append(Padding(Text(f"misses {told}"), (0, 0, 0, 2), style="dim"))
        lines.append(Padding(Text(why), (0, 0, 0, 4), style="dim"))
    if len(misses) > _MOST_MISSES:
        more = f"and {len(misses) - _MOST_MISSES} more, which the report names"
        lines.append(Padding(Text(more), (0, 0, 0, 2), style="dim"))
    return lines


def failure_lines(cells: Sequence[CellResult]) -> Iterator[str]:
    """What failed, one line for each protocol, world and error."""
    groups: dict[tuple[str, str, str], list[CellResult]] = {}
    for cell in cells:
        for error in cell.failures:
            groups.setdefault((cell.cell.protocol, cell.cell.world, error), []).append(cell)
    for (protocol, world, error), concerned in groups.items():
        failed = sum(cell.failures[error] for cell in concerned)
        tried = sum(cell.n + sum(cell.failures.values()) for cell in concerned)
        places = [formatting.place(cell.cell.params) for cell in concerned if cell.cell.params]
        at = f" at {places[0]}" if len(places) == 1 else f" in {len(places)} cells" if places else ""
        yield f"! {protocol}{at} ({world}): {failed} of {tried} trials failed: {error}"


@dataclass(frozen=True)
class Column:
    """One metric of a table, in one unit for all cells."""

    metric: str
    scale: float
    unit: str

    @classmethod
    def of(cls, metric: str, cells: Sequence[CellResult]) -> Column:
        """The unit that fits the means of all cells."""
        means = [cell.metrics[metric].mean for cell in cells if metric in cell.metrics]
        return cls(metric, *formatting.scale_for(means, formatting.unit_of(metric)))

    @property
    def title(self) -> str:
        """The metric as the heading of a narrow column."""
        title = formatting.column_title(self.metric)
        return f"{title}, {self.unit}" if self.unit and self.unit != "packets" else title

    def mean(self, cell: CellResult) -> str:
        """A mean alone."""
        interval = cell.metrics.get(self.metric)
        if interval is None:
            return ""
        value = interval.mean / self.scale
        return formatting.digits(value) if abs(value) < _WHOLE_FROM else f"{value:.0f}"


@dataclass(frozen=True)
class WorldTable:
    """The cells of one world: protocols across where the terminal is wide enough, else a row for each."""

    study: Study
    world: str
    cells: Sequence[CellResult]
    columns: Sequence[Column]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        wide = self._wide()
        if console.measure(wide, options=options.update(max_width=10_000)).maximum <= options.max_width:
            yield wide
        else:
            yield long_table(self.study, self.world, self.cells, self.columns)

    def _wide(self) -> Table:
        main, *others = self.columns
        made = _table(main, self.world)
        for key in grid.shared_keys(self.study):
            made.add_column(formatting.key_title(key), justify="right")
        names = list(dict.fromkeys(grid.series_name(self.study, cell.cell) for cell in self.cells))
        theory = _has_theory(self.cells, main)
        minor = [*(["theory"] if theory else []), *(column.title for column in others)]
        for name in names:
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
            for name in names:
                row += self._entries(by_name.get(name), theory=theory)
            made.add_row(*row)
        return made

    def _entries(self, cell: CellResult | None, *, theory: bool) -> list[Text]:
        main, *others = self.columns
        count = 1 + theory + len(others)
        if cell is None:
            return [Text("")] * count
        mark = "!" if cell.failures else ""
        if main.metric not in cell.metrics:
            nothing = f"all failed{mark}" if cell.failures else formatting.DASH
            return [Text(nothing), *[Text("")] * (count - 1)]
        told = [grid.theory_text(cell, main.metric, main.scale)] if theory else []
        told += [column.mean(cell) for column in others]
        mean = formatting.measured(cell, main.metric, main.scale) + mark
        return [Text(mean), *(Text(text, style="dim") for text in told)]


def _has_theory(cells: Sequence[CellResult], column: Column) -> bool:
    return any(grid.theory_text(cell, column.metric, column.scale) for cell in cells)


def _table(column: Column, world: str) -> Table:
    where = f", {world}" if world else ""
    unit = f" in {column.unit}" if column.unit else ""
    return Table(
        title=f"{formatting.metric_title(column.metric)}{unit}{where}",
        title_justify="left",
        title_style="",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )


def long_table(study: Study, world: str, cells: Sequence[CellResult], columns: Sequence[Column]) -> Table:
    """A row for each point and protocol, and a column for each metric; theory next to the main one."""
    main = columns[0]
    made = _table(main, world)
    if AT_HOST in main.metric:
        made.title = world or None
    for key in grid.shared_keys(study):
        made.add_column(formatting.key_title(key), justify="right")
    made.add_column("Protocol")
    theory = _has_theory(cells, main)
    for column in columns:
        whole, _, part = column.metric.partition(AT_HOST)
        heading = [formatting.column_title(whole), *([part] if part else []), column.unit]
        made.add_column("\n".join(filter(None, heading)), justify="right", no_wrap=True)
        if column is main and theory:
            made.add_column(Text("theory", style="dim"), justify="right", no_wrap=True)
    for point in grid.points(study, cells):
        labels = [formatting.label(value) for value in point.params.values()]
        for cell in (cell for group in point.results.values() for cell in group):
            mark = "!" if cell.failures else ""
            told: list[RenderableType] = []
            for column in columns:
                known = column.metric in cell.metrics
                told.append(
                    formatting.measured(cell, column.metric, column.scale) if known else formatting.DASH
                )
                if column is main and theory:
                    told.append(Text(grid.theory_text(cell, main.metric, main.scale), style="dim"))
            made.add_row(*labels, grid.series_name(study, cell.cell) + mark, *told)
            labels = [""] * len(labels)
        made.add_section()
    return made


def host_table(study: Study, world: str, cells: Sequence[CellResult], column: Column) -> Table:
    """The main metric of each host: measured, and below it what theory says where it says anything."""
    made = _table(column, world)
    hosts = grid.hosts(cells, column.metric)
    made.title = f"{made.title}, by {grid.part_word(hosts)}"
    for key in grid.shared_keys(study):
        made.add_column(formatting.key_title(key), justify="right")
    made.add_column("Protocol")
    of_host = {host: f"{column.metric}{AT_HOST}{host}" for host in hosts}
    theory = {name for cell in cells for name in of_host.values() if grid.theory_text(cell, name, 1.0)}
    for host in hosts:
        heading = Text.assemble(host, ("\ntheory", "dim") if theory else "")
        made.add_column(heading, justify="right")
    for cell in cells:
        labels = [formatting.label(cell.cell.params.get(key, "")) for key in grid.shared_keys(study)]
        entries = []
        for name in of_host.values():
            known = name in cell.metrics
            mean = formatting.measured(cell, name, column.scale) if known else formatting.DASH
            below = grid.theory_text(cell, name, column.scale) or formatting.DASH
            entries.append(Text.assemble(mean, (f"\n{below}", "dim") if theory else ""))
        made.add_row(*labels, grid.series_name(study, cell.cell), *entries)
    return made
