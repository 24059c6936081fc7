"""The page of a traced trial: charts over one time axis, as wide as the screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longfat.presentation.html.document import document, figure
from longfat.presentation.html.markup import paragraph, tag

if TYPE_CHECKING:
    from longfat.presentation.charts.vega import Spec

MARGIN = 130
"""Width of a chart's axis and menu in px."""
_HOW = (
    "Point at a line for its values. Drag to move along the time axis, turn the wheel with Ctrl or Shift to "
    "zoom, double-click to reset. All charts have the same time axis and the same colours."
)


def page(spec: Spec, title: str, subtitle: str) -> str:
    """Returns the charts over time as an HTML document with the trial's title."""
    legend = spec["config"]["legend"] | {"orient": "top", "columns": 0}
    drawn = spec | {"config": spec["config"] | {"legend": legend}}
    remarks = spec["title"]["subtitle"][1:]
    body = [
        tag("h1", title),
        paragraph([subtitle, *(f"; {one}" for one in remarks)], "soft"),
        figure(drawn, "trace", caption=_HOW, fit=MARGIN),
    ]
    return document(title, body, wide=True)
