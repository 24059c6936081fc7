"""Reports of measurements: a self-contained HTML file with a table and a chart by size."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from longfat.presentation.charts import theme
from longfat.presentation.charts.theme import PALETTE
from longfat.presentation.charts.vega import Row, Spec, channel, layer
from longfat.presentation.html.document import document, figure
from longfat.presentation.html.markup import paragraph, scrolling, section, tag
from longfat.presentation.text_table import TextTable

_WIDTH, _HEIGHT = 860, 420


def by_size(rows: Sequence[Row], title: str, *, of: str | None = None, sizes: Spec | None = None) -> Spec:
    """Returns a chart of times by size; rows have `series`, `size`, `ms`, and optionally `low` and `high`.

    `title` is the title of the times, `of` that of the series, and `sizes` the axis of `size`.
    """
    if not rows:
        raise ValueError("no replies: there is nothing to draw")
    names = list(dict.fromkeys(row["series"] for row in rows))
    scale = {"domain": names, "range": theme.repeated(PALETTE, len(names))}
    shared = {
        "x": sizes or channel("size:Q", title="Payload (B)"),
        "color": channel("series:N", title=of, sort=names, scale=scale),
        "tooltip": [channel(column) for column in ("series:N", "size:Q", "ms:Q", "low:Q", "high:Q")],
    }
    bars = shared | {"y": channel("low:Q", title=title), "y2": {"field": "high"}}
    line = shared | {"y": channel("ms:Q", title=title, scale={"zero": True})}
    bounded = "isValid(datum.low) && isValid(datum.high)"
    layers = [layer("rule", bars, where=[bounded], strokeWidth=1.6), layer("line", line, point=True)]
    return theme.chart({"data": {"values": rows}, "layer": layers, "width": _WIDTH, "height": _HEIGHT})


def page(
    title: str,
    lines: Sequence[str],
    table: TextTable,
    chart: tuple[str, Spec],
    found: Mapping[str, Any],
    *,
    heading: str = "By size",
) -> str:
    """Returns the report as HTML.

    `table` is the table of the terminal, `chart` a title with a chart, and `found` the JSON document of the
    measurement.
    """
    body = [
        tag("h1", title),
        *map(paragraph, lines),
        section(heading, scrolling(table.html())),
        section(chart[0], figure(chart[1], "size")),
        section("All figures", tag("pre", tag("code", json.dumps(found, indent=2)))),
    ]
    return document(title, body)
