"""The report's section on worlds that were both asked: where they agree, by how much they differ, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longfat.analysis import agreement, grid
from longfat.presentation import formatting
from longfat.presentation.html import Content, Markup, paragraph, table, tag

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longfat.analysis.agreement import Agreement, Difference, Measure
    from longfat.results import RunResult

_HOW = (
    "One row a cell; the trials of two worlds are compared in pairs. A mean difference beyond the limit is a "
    "miss; a question mark says that its 95 % interval reaches across the limit. Packets sent again have no "
    "limit: they tell where courses part."
)


def tables(run: RunResult, found: Sequence[Agreement]) -> list[Markup]:
    """For each pair of worlds one row a cell, and below a cell that misses what its records tell of it."""
    made = [paragraph(f"{line}.") for line in agreement.summary(found)]
    made.append(paragraph(_HOW, "note"))
    for world in dict.fromkeys(one.other_world for one in found):
        cells = [one for one in found if one.other_world == world]
        measures = agreement.measured(cells)
        heads = _heads(run, cells[0], measures)
        rows = [row for one in cells for row in _rows(run, one, measures)]
        made.append(table(heads, rows))
    return made


def _heads(run: RunResult, one: Agreement, measures: Sequence[Measure]) -> list[list[Markup]]:
    keys = [tag("th", formatting.key_title(key), rowspan=2) for key in grid.shared_keys(run.study)]
    firsts = [*keys, tag("th", "Protocol", class_="name", rowspan=2)]
    firsts.append(tag("th", "Verdict", class_="name", rowspan=2))
    groups, names = [], []
    for measure in measures:
        limit = f", limit {measure.limit}" if measure.limit else ""
        title = f"{_title(measure, run)}{limit}"
        groups.append(tag("th", title, class_="group edge", colspan=_columns(measure), scope="colgroup"))
        names += [tag("th", one.cell.world, class_="edge"), tag("th", one.other_world)]
        names += [tag("th", "difference, 95 %")] if measure.limit else []
    return [[*firsts, *groups], names]


def _columns(measure: Measure) -> int:
    return 3 if measure.limit else 2


def _title(measure: Measure, run: RunResult) -> str:
    _, unit = _scale(measure, run)
    return f"{formatting.metric_title(measure.metric)}{f' ({unit})' if unit else ''}"


def _scale(measure: Measure, run: RunResult) -> tuple[float, str]:
    means = [cell.metrics[measure.metric].mean for cell in run.cells if measure.metric in cell.metrics]
    return formatting.scale_for(means, formatting.unit_of(measure.metric))


def _rows(run: RunResult, one: Agreement, measures: Sequence[Measure]) -> list[Markup]:
    keys = grid.shared_keys(run.study)
    row: list[Content] = [
        tag("th", formatting.label(one.cell.params.get(key, "")), scope="row") for key in keys
    ]
    row.append(tag("td", grid.series_name(run.study, one.cell), class_="name"))
    row.append(tag("td", _verdict(one), class_="name"))
    for measure in measures:
        row += _entries(one.of(measure.metric), measure, _scale(measure, run)[0])
    flag = "flag" if one.misses else None
    made = [tag("tr", row, class_=flag)]
    if one.causes:
        wide = len(keys) + 2 + sum(map(_columns, measures))
        told = tag("td", [tag("span", ["; ".join(one.causes)])], colspan=wide, class_="text why")
        made.append(tag("tr", told, class_=flag))
    return made


def _entries(difference: Difference | None, measure: Measure, scale: float) -> list[Markup]:
    if difference is None:
        return [tag("td", formatting.DASH, class_="edge"), *[tag("td")] * (_columns(measure) - 1)]
    made = [
        tag("td", formatting.digits(difference.first / scale), class_="edge"),
        tag("td", formatting.digits(difference.other / scale)),
    ]
    if measure.limit:
        told = tag("b", difference.told()) if difference.misses else difference.told()
        made.append(tag("td", [told, " ", tag("span", difference.bounds(), class_="bounds")]))
    return made


def _verdict(one: Agreement) -> Markup:
    unsure = any(difference.unsure for difference in (one.misses or one.differences))
    word, class_ = ("misses", "fails") if one.misses else ("agrees", "holds")
    symbol = "\N{BALLOT X}" if one.misses else "\N{CHECK MARK}"
    return tag("span", f"{symbol} {word}{' ?' if unsure else ''}", class_=class_)
