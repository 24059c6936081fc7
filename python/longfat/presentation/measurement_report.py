"""Reports of measurements that are no runs: one HTML file with a table and a chart by size."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from longfat.presentation import charts, html
from longfat.presentation.charts import PALETTE, Spec, configured
from longfat.presentation.html import Markup, section, tag
from longfat.presentation.vega_bundle import bundle

_WIDTH, _HEIGHT = 860, 420


def by_size(rows: Sequence[Mapping[str, Any]], title: str) -> Spec:
    """A chart of times by size: `series`, `size`, `ms`, and `low` and `high` where there is an interval."""
    if not rows:
        raise ValueError("nobody answered: there is nothing to draw")
    names = list(dict.fromkeys(str(row["series"]) for row in rows))
    colours = alt.Scale(domain=names, range=[PALETTE[i % len(PALETTE)] for i in range(len(names))])
    source: Any = alt.InlineData(values=[dict(row) for row in rows])
    base = alt.Chart(source).encode(
        x=alt.X("size:Q", title="Payload (B)"),
        color=alt.Color("series:N", title=None, sort=names, scale=colours),
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
    told: Mapping[str, Any],
    *,
    heading: str = "By size",
) -> str:
    """The report as HTML; `table` is that of the terminal, its first row the heading, under `heading`."""
    head, *rows = table
    numbers = html.table(
        [[tag("th", cell) for cell in head]], [tag("tr", [tag("td", cell) for cell in row]) for row in rows]
    )
    body = [
        tag("h1", title),
        *(html.paragraph(line) for line in lines),
        section(heading, numbers),
        section(chart[0], _drawn(chart[1])),
        section("All that was found", tag("pre", tag("code", json.dumps(told, indent=2)))),
    ]
    return html.page_part(
        "report.html",
        title=f"{title} \N{EM DASH} longfat",
        style=html.page_part("report.css"),
        body=body,
        vega=Markup(bundle().replace("</script", r"<\/script").replace("<!--", r"<\!--")),
        script=html.page_part("report.js"),
    )


def _drawn(spec: Spec) -> Markup:
    spec["config"]["background"] = "transparent"
    data = json.dumps(spec, ensure_ascii=False, separators=(",", ":")).replace("</", r"<\/")
    drawing = Markup(charts.render(spec, "svg").decode())
    return tag(
        "figure",
        [
            tag("div", drawing, class_="chart", data_chart="chart-size"),
            Markup(f'<script type="application/json" id="chart-size">{data}</script>'),
        ],
    )
