"""The report of a measured path: one HTML file with a chart of round trips by size."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from longfat.analysis import charts, html
from longfat.analysis.charts import PALETTE, Spec, configured
from longfat.analysis.html import Markup, section, tag
from longfat.analysis.inference.samples import Router
from longfat.analysis.vega_bundle import bundle

_WIDTH, _HEIGHT = 860, 420


def chart(routers: Sequence[Router]) -> Spec:
    """Least round trips by size for each router, as a Vega-Lite specification with its data in it."""
    rows = [
        {"hop": f"{router.ttl}: {router.address}", "size": size, "ms": min(values) * 1e3}
        for router in routers
        for size, values in sorted(router.seconds().items())
    ]
    if not rows:
        raise ValueError("nobody answered: there is nothing to draw")
    hops = list(dict.fromkeys(str(row["hop"]) for row in rows))
    colours = alt.Scale(domain=hops, range=[PALETTE[i % len(PALETTE)] for i in range(len(hops))])
    made = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_line(point=True)
        .encode(
            x=alt.X("size:Q", title="Packet with IP header (B)", scale=alt.Scale(zero=False)),
            y=alt.Y("ms:Q", title="Least round trip (ms)"),
            color=alt.Color("hop:N", title="Hop", sort=hops, scale=colours),
            tooltip=["hop:N", "size:Q", "ms:Q"],
        )
        .properties(width=_WIDTH, height=_HEIGHT)
    )
    spec: Spec = json.loads(configured(made).to_json())
    return spec


def build(told: Mapping[str, Any], routers: Sequence[Router], table: Sequence[Sequence[str]]) -> str:
    """The report as HTML; `table` is that of the terminal, its first row the heading."""
    spec = chart(routers)
    spec["config"]["background"] = "transparent"
    head, *rows = table
    numbers = html.table(
        [[tag("th", cell) for cell in head]], [tag("tr", [tag("td", cell) for cell in row]) for row in rows]
    )
    title = f"The path to {told['host']}"
    body = [
        tag("h1", title),
        html.paragraph(f"{told['when']}, {told['probes']} probes by {told['protocol'].upper()}"),
        section("Links", numbers),
        section("Round trips by size", _drawn(spec)),
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
    data = json.dumps(spec, ensure_ascii=False, separators=(",", ":")).replace("</", r"<\/")
    drawing = Markup(charts.render(spec, "svg").decode())
    return tag(
        "figure",
        [
            tag("div", drawing, class_="chart", data_chart="chart-path"),
            Markup(f'<script type="application/json" id="chart-path">{data}</script>'),
        ],
    )
