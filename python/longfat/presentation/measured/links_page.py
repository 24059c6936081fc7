"""The report of a measured path: a self-contained HTML file with a chart of round trips by size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from longfat.analysis.inference.samples import Router
from longfat.presentation.charts.vega import Spec, channel
from longfat.presentation.measured import links
from longfat.presentation.measured.page import by_size, page


def chart(routers: Sequence[Router]) -> Spec:
    """Returns the smallest round trips by size for each router, as a Vega-Lite specification."""
    rows = [
        {"series": f"{router.ttl}: {router.address}", "size": size, "ms": min(values) * 1e3}
        for router in routers
        for size, values in sorted(router.seconds().items())
    ]
    sizes = channel("size:Q", title="Packet with IP header (B)", scale={"zero": False})
    return by_size(rows, "Smallest round trip (ms)", of="Hop", sizes=sizes)


def build(found: dict[str, Any], routers: Sequence[Router]) -> str:
    """Returns the report as HTML."""
    lines = [f"{found['when']}, {found['probes']} probes by {found['protocol'].upper()}"]
    drawn = ("Round trips by size", chart(routers))
    return page(f"The path to {found['host']}", lines, links.table(found), drawn, found, heading="Links")
