"""Reports of measurements: a self-contained HTML file with a table and a chart by size."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from longfat.presentation import html
from longfat.presentation.charts import PALETTE, Spec, configured
from longfat.presentation.document import document, figure
from longfat.presentation.html import section, tag

_WIDTH, _HEIGHT = 860, 420


def by_size(
    rows: Sequence[Mapping[str, Any]], title: str, *, of: str | None = None, sizes: alt.X | None = None
) -> Spec:
    """Returns a chart of times by size; rows have `series`, `size`, `ms`, and optionally `low` and `high`.

    `title` is the title of the times, `of` that of the series, and `sizes` the axis of `size`.
    """
    if not rows:
        raise ValueError("no replies: there is nothing to draw")
    names = list(dict.fromkeys(str(row["series"]) for row in rows))
    colours = alt.Scale(domain=names, range=[PALETTE[i % len(PALETTE)] for i in range(len(names))])
    source: Any = alt.InlineData(values=[dict(row) for row in rows])
    base = alt.Chart(source).encode(
        x=sizes or alt.X("size:Q", title="Payload (B)"),
        color=alt.Color("series:N", title=of, sort=names, scale=colours),
        tooltip=["series:N", "size:Q", "ms:Q", "low:Q", "high:Q"],
    )
    drawn = base.mark_line(point=True).encode(y=alt.Y("ms:Q", title=title, scale=alt.Scale(zero=True)))
    bars = base.transform_filter("isValid(datum.low) && isValid(datum.high)").mark_rule(strokeWidth=1.6)
    bars = bars.encode(y=alt.Y("low:Q", title=title), y2=alt.Y2("high:Q"))
    spec: Spec = json.loads(
        configured(alt.layer(bars, drawn).properties(width=_WIDTH, height=_HEIGHT)).to_json()
    )
    return spec


def page(
    title: str,
    lines: Sequence[str],
    table: Sequence[Sequence[str]],
    chart: tuple[str, Spec],
    found: Mapping[str, Any],
    *,
    heading: str = "By size",
) -> str:
    """Returns the report as HTML.

    `table` is the table of the terminal with its heading as first row, `chart` a title with a chart, and
    `found` the JSON document of the measurement.
    """
    head, *rows = table
    numbers = html.table(
        [[tag("th", cell) for cell in head]], [tag("tr", [tag("td", cell) for cell in row]) for row in rows]
    )
    body = [
        tag("h1", title),
        *(html.paragraph(line) for line in lines),
        section(heading, numbers),
        section(chart[0], figure(chart[1], "size")),
        section("All figures", tag("pre", tag("code", json.dumps(found, indent=2)))),
    ]
    return document(title, body)
