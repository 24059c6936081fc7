"""The report of a measured path: a self-contained HTML file with a chart of round trips by size."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from longfat.analysis.inference.samples import Router
from longfat.presentation.charts import PALETTE, Spec, configured
from longfat.presentation.measurement_report import page

_WIDTH, _HEIGHT = 860, 420


def chart(routers: Sequence[Router]) -> Spec:
    """Returns the smallest round trips by size for each router, as a Vega-Lite specification."""
    rows = [
        {"hop": f"{router.ttl}: {router.address}", "size": size, "ms": min(values) * 1e3}
        for router in routers
        for size, values in sorted(router.seconds().items())
    ]
    if not rows:
        raise ValueError("no replies: there is nothing to draw")
    hops = list(dict.fromkeys(str(row["hop"]) for row in rows))
    colours = alt.Scale(domain=hops, range=[PALETTE[i % len(PALETTE)] for i in range(len(hops))])
    made = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_line(point=True)
        .encode(
            x=alt.X("size:Q", title="Packet with IP header (B)", scale=alt.Scale(zero=False)),
            y=alt.Y("ms:Q", title="Smallest round trip (ms)"),
            color=alt.Color("hop:N", title="Hop", sort=hops, scale=colours),
            tooltip=["hop:N", "size:Q", "ms:Q"],
        )
        .properties(width=_WIDTH, height=_HEIGHT)
    )
    spec: Spec = json.loads(configured(made).to_json())
    return spec


def build(found: Mapping[str, Any], routers: Sequence[Router], table: Sequence[Sequence[str]]) -> str:
    """Returns the report as HTML; `table` is the table of the terminal with its heading as first row."""
    lines = [f"{found['when']}, {found['probes']} probes by {found['protocol'].upper()}"]
    drawn = ("Round trips by size", chart(routers))
    return page(f"The path to {found['host']}", lines, table, drawn, found, heading="Links")
