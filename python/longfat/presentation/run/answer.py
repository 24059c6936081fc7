"""The answer of a run: question, verdicts, one table, other worlds and cuts."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from longfat.analysis import grid
from longfat.presentation import names
from longfat.presentation.run import details, notes
from longfat.presentation.run.columns import Column

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console, RenderableType

    from longfat.results.run import CellResult, RunResult, Verdict, VerdictWord

MOST_LINES = 24
"""The most lines of an answer, which the report's path follows."""
_MOST_VERDICTS = 6
_FEWER_READINGS = 2
_MOST_CAUTIONS = 2
_POINTS = (14, 12, 10, 8, 7, 6, 5, 4, 3, 2)
"""Numbers of points of a sweep that are tried if not all fit."""
_DECIDED_FIRST: tuple[VerdictWord, ...] = ("fails", "holds", "undecided")


def answer(result: RunResult, console: Console) -> RenderableType:
    """Returns the first layout of at most `MOST_LINES` lines on a console.

    Layouts drop, in this order: metrics besides the main one, the last first, the numbers of verdicts, the
    ends of long lines, points of the sweep, and undecided claims.
    """
    world = deciding_world(result)
    cells = [cell for cell in result.cells if cell.cell.world == world]
    columns = [Column.of(metric, result.cells) for metric in grid.shown(result.study, result.cells)]
    claims = [claim for claim in result.claims if claim.world in ("", world)]
    readings = [
        line
        for line in details.footnotes(result.study, cells, columns)
        if not line.startswith(details.FAILED)
    ]
    below = _below(result, world)

    def whole(above: Sequence[RenderableType], table: RenderableType, *, cut: bool = False) -> Group:
        title = Text(result.study.title, style="bold", no_wrap=cut, overflow="ellipsis")
        shown = [_line(text, "dim") for text in (readings[:_FEWER_READINGS] if cut else readings)]
        return Group(title, "", *above, *([""] if above else []), table, *shown, *below)

    def table_of(cells: Sequence[CellResult], columns: Sequence[Column]) -> RenderableType:
        named = world if len(grid.worlds(result.cells)) > 1 else ""
        return details.WorldTable(result.study, named, cells, columns)

    def fits(made: RenderableType) -> bool:
        return _height(made, console) <= MOST_LINES

    def may_fit(above: Sequence[RenderableType], cells: Sequence[CellResult], *, cut: bool = False) -> bool:
        # Rendering a table is slow. Each has at least a heading, a rule, and a row for each point or metric.
        rows = min(len(grid.points(result.study, cells)), len(cells))
        return _height(whole(above, Group(), cut=cut), console) + 2 + rows <= MOST_LINES

    lists: list[list[RenderableType]] = [
        [details.verdicts(claims)],
        [details.verdicts(claims, detailed=False)],
        list(_one_line_each(claims)),
    ]
    is_small = len(grid.points(result.study, cells)) < MOST_LINES
    for above in (lists if claims else [[]]) if is_small else []:
        for count in range(len(columns), 0, -1) if may_fit(above, cells) else ():
            made = whole(above, Group(table_of(cells, columns[:count]), *_left_out(columns[count:])))
            if fits(made):
                return made
    worst = list(_one_line_each(claims, _MOST_VERDICTS))
    for fewer, note in _thinned(result, cells):
        if not may_fit(worst, fewer, cut=True):
            continue
        table = [table_of(fewer, columns[:1])]
        if note:
            table.append(_line(f"{note}; --details prints all", "dim"))
        made = whole(worst, Group(*table), cut=True)
        if fits(made):
            return made
    return whole(worst, Text("--details prints the tables", style="dim"), cut=True)


def deciding_world(result: RunResult) -> str:
    """Returns the first world with verdicts, else the first world; empty without cells."""
    worlds = grid.worlds(result.cells)
    judged = {claim.world for claim in result.claims}
    return next((world for world in worlds if world in judged), worlds[0] if worlds else "")


def _thinned(result: RunResult, cells: Sequence[CellResult]) -> Iterator[tuple[list[CellResult], str]]:
    """Yields fewer and fewer cells: evenly spaced points of the sweep, then protocols of the last point."""
    points = [point.cells for point in grid.points(result.study, cells)]
    if len(points) < MOST_LINES:
        yield list(cells), ""
    for count in (count for count in _POINTS if count < len(points)):
        chosen = [points[round(i * (len(points) - 1) / (count - 1))] for i in range(count)]
        yield [cell for point in chosen for cell in point], f"{count} of {len(points)} points"
    for count in range(min(len(points[-1]), MOST_LINES) if points else 0, 0, -1):
        yield points[-1][:count], f"{count} of {len(cells)} cells"


def _one_line_each(claims: Sequence[Verdict], most: int | None = None) -> Iterator[Text]:
    """Yields a line for each claim; if there are more than `most`, first the decided ones, and a count."""
    shown = list(claims)
    if most is not None and len(claims) > most:
        shown = sorted(claims, key=lambda claim: _DECIDED_FIRST.index(claim.verdict))[: most - 1]
    for claim in shown:
        yield Text.assemble(details.verdict_label(claim), claim.text, no_wrap=True, overflow="ellipsis")
    rest = [claim for claim in claims if claim not in shown]
    if rest:
        yield _line(f"{len(rest)} more: {_counts(rest)} (--details)")


def _counts(claims: Sequence[Verdict]) -> str:
    """The number of claims by verdict: "1 fails, 3 holds, 2 undecided"."""
    counted = Counter(claim.verdict for claim in claims)
    return ", ".join(f"{counted[word]} {word}" for word in _DECIDED_FIRST if counted[word])


def _line(text: str, style: str = "") -> Text:
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")


def _below(result: RunResult, world: str) -> list[RenderableType]:
    """Returns one line each about cautions, limits other than the network, the other worlds and cuts."""
    study = result.study
    cautions = [
        *(f"{details.FAILED}{text}" for text in notes.failures(result.cells)),
        *notes.gaps(study, result.cells),
        *notes.unknown(result.cells, grid.shown(study, result.cells)[:1]),
        *notes.host_drops(result.cells),
    ]
    if len(cautions) > _MOST_CAUTIONS:
        hidden = len(cautions) - _MOST_CAUTIONS + 1
        cautions = [*cautions[: _MOST_CAUTIONS - 1], f"and {hidden} more cautions (--details)"]
    lines: list[RenderableType] = []
    lines.extend(_line(text, "yellow") for text in cautions)
    # Broken into lines, since their keys must be readable.
    keyed = (*notes.limits(result.cells), *notes.ecn(result.cells))
    lines.extend(Text(text, style="yellow") for text in keyed)
    for other in grid.worlds(result.cells):
        if other == world:
            continue
        there = [cell for cell in result.cells if cell.cell.world == other]
        claims = [claim for claim in result.claims if claim.world == other]
        found = f"{len(claims)} claims: {_counts(claims)}" if claims else "no claims"
        lines.append(_line(f"{other}: {found} ({notes.trials(there)}; --details)"))
    if result.quick:
        lines.append(_line(notes.quick(study)))
    return lines


def _left_out(columns: Sequence[Column]) -> Iterator[Text]:
    """Yields a line about metrics that the table has no place for."""
    if columns:
        named = ", ".join(names.column_title(column.metric) for column in columns)
        yield _line(f"--details prints {named}", "dim")


def _height(made: RenderableType, console: Console) -> int:
    return len(console.render_lines(made, pad=False))
