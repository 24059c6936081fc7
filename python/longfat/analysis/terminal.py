"""The answer on a terminal: one table a world, points of the sweep down, protocols across."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from longfat.analysis import agreement, formatting, grid
from longfat.analysis.statistics import method

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

    from longfat.results import CellResult, RunResult, Verdict
    from longfat.study import Study

METRIC = "goodput_bps"
_SYMBOLS = {"holds": ("✓", "green"), "fails": ("✗", "red"), "undecided": ("?", "yellow")}


def table(study: Study, result: RunResult) -> RenderableType:
    """Goodput with its interval, theory and retransmissions of every cell, and how to read it."""
    worlds = grid.worlds(result.cells)
    scale, unit = formatting.scale_for(
        [cell.metrics[METRIC].mean for cell in result.cells if METRIC in cell.metrics],
        formatting.unit_of(METRIC),
    )
    parts: list[RenderableType] = [Text(study.title, style="bold")]
    for world in worlds:
        cells = [cell for cell in result.cells if cell.cell.world == world]
        parts += ["", WorldTable(study, world if len(worlds) > 1 else "", cells, scale, unit)]
    parts += [Text(line, style="dim") for line in footnotes(result.cells)]
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


def footnotes(cells: Sequence[CellResult]) -> Iterator[str]:
    """How to read the table: what an interval is, how it was found, what failed."""
    counts = sorted({cell.n for cell in cells})
    methods = "; ".join(dict.fromkeys(method(n) for n in counts if n))
    if methods:
        yield f"mean ±half of its 95 % interval over trials ({grid.trials_text(cells)}; {methods})"
    signs = {grid.theory_text(cell, 1.0)[:1] for cell in cells if cell.metrics} - {""}
    if signs:
        parts = ["theory: the closed form for an endless transfer"]
        parts += ["~ an approximation"] if "~" in signs else []
        parts += [f"{grid.AT_MOST} no form, but a bound"] if grid.AT_MOST in signs else []
        yield "; ".join(parts)
    yield from failure_lines(cells)
    agreed = agreement.summary(agreement.agreements(cells))
    if agreed:
        yield agreed


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
class WorldTable:
    """The cells of one world. As wide as the terminal allows: beside each other, or one above the other."""

    study: Study
    world: str
    cells: Sequence[CellResult]
    scale: float
    unit: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        wide = self._build(stacked=False)
        if console.measure(wide, options=options.update(max_width=10_000)).maximum <= options.max_width:
            yield wide
        else:
            yield self._build(stacked=True)

    def _build(self, *, stacked: bool) -> Table:
        _scale, _unit = formatting.scale_for(
            [cell.metrics[METRIC].mean for cell in self.cells if METRIC in cell.metrics],
            formatting.unit_of(METRIC),
        )
        where = f", {self.world}" if self.world else ""
        made = Table(
            title=f"Goodput in {self.unit}{where}",
            title_justify="left",
            title_style="",
            box=box.SIMPLE_HEAD,
            pad_edge=False,
        )
        for key in grid.shared_keys(self.study):
            made.add_column(formatting.key_title(key), justify="right")
        names = list(dict.fromkeys(grid.series_name(self.study, cell.cell) for cell in self.cells))
        for name in names:
            header = Text.assemble(name, ("\ntheory, sent again", "dim")) if stacked else Text(name)
            made.add_column(header, justify="right", no_wrap=True)
            if not stacked:
                made.add_column(Text("theory", style="dim"), justify="right", no_wrap=True)
                made.add_column(Text("sent again", style="dim"), justify="right", no_wrap=True)
        for point in grid.points(self.study, self.cells):
            row: list[RenderableType] = [Text(formatting.label(value)) for value in point.params.values()]
            by_name = {
                grid.series_name(self.study, cell.cell): cell
                for cells in point.results.values()
                for cell in cells
            }
            for name in names:
                row += _entries(by_name.get(name), self.scale, stacked=stacked)
            made.add_row(*row)
        return made


def _entries(cell: CellResult | None, scale: float, *, stacked: bool) -> list[Text]:
    if cell is None:
        return [Text("")] * (1 if stacked else 3)
    mark = "!" if cell.failures else ""
    if METRIC not in cell.metrics:
        return [Text(f"all failed{mark}"), *([] if stacked else [Text(""), Text("")])]
    mean = Text(formatting.plus_minus(cell.metrics[METRIC], scale) + mark)
    theory, again = grid.theory_text(cell, scale), cell.metrics.get("retransmissions")
    sent_again = "" if again is None else f"{again.mean:.0f}"
    if not stacked:
        return [mean, Text(theory, style="dim"), Text(sent_again, style="dim")]
    below = f"{theory or formatting.DASH}, {sent_again or formatting.DASH}"
    return [Text.assemble(mean, (f"\n{below}", "dim"))]
