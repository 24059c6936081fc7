"""Output of `longfat relay` for people: a table at the end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from longfat.presentation.formatting import DASH, quantity
from longfat.presentation.link_titles import title

if TYPE_CHECKING:
    from rich.table import Table


def table(report: Mapping[str, Any]) -> Table:
    """Returns the counters of each link."""
    from longfat.presentation import tables

    shown = tables.table("", "forward", "reverse", right=(1, 2))
    links = [report["forward"], report["reverse"]]
    for key in ("entered", "delivered", "lost"):
        shown.add_row(title(key), *(f"{link[key]:,}" for link in links))
    shown.add_row("loss", *(_share(link) for link in links))
    for key in (
        "queue_dropped",
        "mtu_dropped",
        "outage_dropped",
        "nat_dropped",
        "duplicated",
        "corrupted",
        "reordered",
        "max_queue_packets",
    ):
        if key not in ("outage_dropped", "nat_dropped") or any(link[key] for link in links):
            shown.add_row(title(key), *(f"{link[key]:,}" for link in links))
    rates = [link["rate_bps"] for link in links]
    shown.add_row("rate", *(DASH if rate is None else quantity(rate, "bit/s") for rate in rates))
    return shown


def _share(link: Mapping[str, Any]) -> str:
    return f"{link['lost'] / link['entered'] * 100:.2f} %" if link["entered"] else DASH


def late(report: Mapping[str, Any]) -> str:
    """Returns the delay error of the relay, and datagrams dropped outside of the path, as one line.

    >>> seen = {"late_p50_s": 1.2e-5, "late_p99_s": 9.1e-5, "clients": 1}
    >>> late({**seen, "dropped_by_relay": 0, "refused_by_server": 0})
    'Delay error 12.0 µs (median), 91.0 µs (99th percentile); 1 client'
    """
    clients = report["clients"]
    text = (
        f"Delay error {quantity(report['late_p50_s'], 's')} (median), "
        f"{quantity(report['late_p99_s'], 's')} (99th percentile); "
        f"{clients} {'client' if clients == 1 else 'clients'}"
    )
    for key, what in (
        ("dropped_by_relay", "dropped by the relay itself"),
        ("refused_by_server", "refused by the server's machine, because nothing listened"),
    ):
        if count := report[key]:
            text += f"; {count:,} {'datagram' if count == 1 else 'datagrams'} {what}"
    return text
