"""The report's section on the agreement of worlds: differences, verdicts and possible causes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longfat.analysis import agreement
from longfat.presentation import formatting, series_names
from longfat.presentation.html.markup import Content, Markup, paragraph, table, tag
from longfat.presentation.run import agreement_text, layouts
from longfat.presentation.run.columns import Column
from longfat.presentation.run.verdicts import badge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longfat.analysis.agreement import Agreement, Difference, Measure
    from longfat.results.run import RunResult

_HOW = (
    "Each row is a cell, and the trials of two worlds are compared in pairs. A cell misses if a mean "
    "difference is beyond the limit; a question mark means that its 95 % interval contains the limit. "
    "Retransmissions have no limit: they show how the connections diverge."
)


def tables(run: RunResult, found: Sequence[Agreement]) -> list[Markup]:
    """A table for each pair of worlds: a row per cell, with possible causes below each cell that misses."""
    made = [paragraph(f"{line}.") for line in agreement_text.summary(found)]
    made.append(paragraph(_HOW, "note"))
    for cells in agreement.by_world(found):
        measures = agreement.measured(cells)
        columns = [Column.of(measure.metric, run.cells) for measure in measures]
        heads = _heads(run, cells[0], measures, columns)
        rows = [row for one in cells for row in _rows(run, one, measures, columns)]
        made.append(table(heads, rows))
    return made


def _heads(
    run: RunResult, one: Agreement, measures: Sequence[Measure], columns: Sequence[Column]
) -> list[list[Markup]]:
    keys = [tag("th", title, rowspan=2) for title in layouts.key_titles(run.study)]
    firsts = [*keys, tag("th", "Protocol", class_="name", rowspan=2)]
    firsts.append(tag("th", "Verdict", class_="name", rowspan=2))
    groups, worlds = [], []
    for measure, column in zip(measures, columns, strict=True):
        limit = f", limit {agreement_text.limit(measure)}" if measure.is_limited else ""
        title = f"{column.title}{limit}"
        groups.append(tag("th", title, class_="group edge", colspan=_width(measure), scope="colgroup"))
        worlds += [tag("th", one.cell.world, class_="edge"), tag("th", one.other_world)]
        worlds += [tag("th", "difference, 95 % CI")] if measure.is_limited else []
    return [[*firsts, *groups], worlds]


def _width(measure: Measure) -> int:
    return 3 if measure.is_limited else 2


def _rows(
    run: RunResult, one: Agreement, measures: Sequence[Measure], columns: Sequence[Column]
) -> list[Markup]:
    row: list[Content] = [tag("th", label, scope="row") for label in layouts.place(run.study, one.cell)]
    row.append(tag("td", series_names.series_name(run.study, one.cell), class_="name"))
    row.append(tag("td", _verdict(one), class_="name"))
    wide = len(row) + sum(map(_width, measures))
    for measure, column in zip(measures, columns, strict=True):
        row += _entries(one.difference(measure.metric), measure, column)
    flag = "flag" if one.misses else None
    made = [tag("tr", row, class_=flag)]
    if one.causes:
        why = tag("td", [tag("span", [agreement_text.causes(one)])], colspan=wide, class_="text why")
        made.append(tag("tr", why, class_=flag))
    return made


def _entries(difference: Difference | None, measure: Measure, column: Column) -> list[Markup]:
    if difference is None:
        return [tag("td", formatting.DASH, class_="edge"), *[tag("td")] * (_width(measure) - 1)]
    first, other = column.number(difference.first), column.number(difference.other)
    made = [tag("td", first, class_="edge"), tag("td", other)]
    if measure.is_limited:
        change = agreement_text.change(difference)
        change = tag("b", change) if difference.misses else change
        made.append(tag("td", [change, " ", tag("span", agreement_text.bounds(difference), class_="bounds")]))
    return made


def _verdict(one: Agreement) -> Markup:
    unsure = any(difference.unsure for difference in (one.misses or one.differences))
    mark = " ?" if unsure else ""
    return badge("fails", f"misses{mark}") if one.misses else badge("holds", f"agrees{mark}")
