"""Small charts side by side: which cells each has, and how they are arranged."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from longfat.analysis import grid
from longfat.presentation import names
from longfat.presentation.charts import theme
from longfat.presentation.charts.vega import channel
from longfat.study.vocabulary import allowed
from longfat.system.parameters import ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from longfat.presentation.charts.vega import Spec
    from longfat.presentation.run.charts.options import Options
    from longfat.results.run import Cell, RunResult
    from longfat.study import Study

WORLD = "world"
"""The facet with a small chart for each world."""
_NARROWEST = 150
"""Smallest width of a small chart with its axis in px."""
_MOST_ACROSS = 4
_BOLD = 0.5
"""Average width of a letter of a title, relative to its size."""
_GAP = 20
"""Space between small charts in px."""
SEPARATOR = ", "
"""Separates the keys in a title."""
_AXIS = 30
"""Width in px that an axis takes from each small chart."""


def check_facet(run: RunResult, facet: str) -> None:
    """Raises ParameterError for a facet that is neither a swept key of all protocols nor several worlds."""
    worlds = grid.worlds(run.cells)
    if facet == WORLD:
        if len(worlds) < 2:
            raise ParameterError("facet", f"this run has one world, {worlds[0]}")
        return
    known = [*grid.shared_keys(run.study), *([WORLD] if len(worlds) > 1 else [])]
    if facet not in known:
        if facet in grid.own_keys(run.study):
            raise ParameterError("facet", f'"{facet}" is swept for one protocol only: its values are lines')
        hint = allowed(facet, known) if known else "this run has no sweep"
        raise ParameterError("facet", f'"{facet}" is not swept; {hint}')


def panel(study: Study, cell: Cell, facet: str, *, without: str | None, worlds: Sequence[str]) -> str:
    """Returns the title of a cell's small chart: the facet first, then all further keys and the world.

    `without` is the key of an axis.
    """
    params = grid.point_params(study, cell)
    order = sorted((key for key in params if key != without), key=lambda key: key != facet)
    parts = [names.point({key: params[key]}) for key in order]
    world = [cell.world] if len(worlds) > 1 else []
    return SEPARATOR.join([*world, *parts] if facet == WORLD else [*parts, *world])


def in_order(study: Study, cells: Iterable[Cell], facet: str | None) -> list[Cell]:
    """Returns cells by the values of a facet in the order of the axis; else in the order of the study."""
    if facet is None or facet == WORLD:
        return list(cells)
    order = {str(value): place for place, value in enumerate(grid.ordered_values(study, facet))}
    return sorted(cells, key=lambda cell: order[str(cell.params[facet])])


def across(titles: Sequence[str], width: int) -> int:
    """Returns how many small charts with these titles are side by side, in rows of equal length.

    >>> across(["a"] * 4, 380), across(["a"] * 4, 780), across(["a"] * 5, 600), across(["a"], 100)
    (2, 4, 3, 1)
    """
    longest = max(len(part) for title in titles for part in title.split(SEPARATOR))
    least = max(_NARROWEST, round(longest * theme.LETTER))
    most = max(1, min(len(titles), width // (least + _AXIS), _MOST_ACROSS))
    return math.ceil(len(titles) / math.ceil(len(titles) / most))


def width_of_each(count: int, width: int) -> int:
    """Returns the width of the plot of each of some small charts side by side."""
    return max(40, round(width / count) - (_AXIS if count > 1 else 0))


def height_of_each(width: int, height: int | None, options: Options, usual: int) -> int:
    """Returns the height of a plot: the requested one, one that suits a paper's column, or the usual one."""
    if height is not None:
        return height
    return usual if options.size is None else max(70, min(usual, round(0.62 * width)))


def wrapped(plot: Spec, panels: Sequence[str], columns: int) -> Spec:
    """Returns a plot for each value of the column `panel`, in rows."""
    if len(panels) < 2:
        return plot
    header: Spec = {"title": None, "labelFontSize": theme.LABEL, "labelFontWeight": "bold"}
    if max(map(len, panels)) * theme.LETTER > plot["width"]:
        header |= {"labelExpr": f"split(datum.label, '{SEPARATOR}')", "labelLineHeight": theme.LABEL + 3}
    return rows_of(plot, channel("panel:N", sort=list(panels), header=header), columns)


def rows_of(plot: Spec, facet: Spec, columns: int) -> Spec:
    """Returns a plot for each value of a facet, in rows of some columns."""
    spec = {"facet": facet, "spec": plot, "columns": columns}
    if columns > 1 and len(facet["sort"]) % columns:
        # A shared x axis is drawn below each column, also where the last row has no plot.
        spec["resolve"] = {"axis": {"x": "independent"}}
    return spec


def titles_fit(spec: Spec) -> bool:
    """Whether the titles of small charts side by side are narrow enough not to overlap."""
    facet = spec.get("facet")
    if facet is None:
        return True
    side = facet if "field" in facet else facet.get("column")
    if side is None:
        return True
    header, width = side["header"], spec["spec"]["width"]
    lines = [line for title in side["sort"] for line in _lines(title, header)]
    longest = max(map(len, lines), default=0)
    return bool(longest * _BOLD * header["labelFontSize"] <= width + _GAP)


def _lines(title: str, header: Spec) -> list[str]:
    return title.split(SEPARATOR) if "labelExpr" in header else [title]
