"""Output of `longfat relay` for people: a progress line, and a table at the end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from longfat.presentation.formatting import DASH, label, quantity

if TYPE_CHECKING:
    from rich.table import Table

_DROPS = ("lost", "queue_dropped", "mtu_dropped")


def progress_line(report: Mapping[str, Any], rates: Mapping[str, float]) -> str:
    """Returns packets, rate (in bit/s) and drops of both directions as one line."""
    return "   ".join(
        f"{side}: {report[side]['delivered']:,} packets, {quantity(rate, 'bit/s')}, "
        f"{sum(report[side][drop] for drop in _DROPS):,} dropped"
        for side, rate in rates.items()
    )


def describe(path: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Returns the path as one line for each direction, or one line for equal directions.

    >>> list(describe({"forward": {"rate": "10Mbit/s", "loss": "2%"}, "reverse": {"loss": "2%"}}))
    ['Forward: rate 10Mbit/s, loss 2%', 'Reverse: loss 2%']
    >>> list(describe({"forward": {}, "reverse": {}}))
    ['Both directions: no delay, no loss']
    """
    forward, reverse = (_link(path[side]) for side in ("forward", "reverse"))
    if forward == reverse:
        yield f"Both directions: {forward}"
    else:
        yield f"Forward: {forward}"
        yield f"Reverse: {reverse}"


def _link(keys: Mapping[str, Any]) -> str:
    listed = ", ".join(f"{key} {label(value)}" for key, value in keys.items())
    return listed or "no delay, no loss"


def table(report: Mapping[str, Any]) -> Table:
    """Returns the counters of each link."""
    from longfat.presentation import tables

    shown = tables.table("", "forward", "reverse", right=(1, 2))
    links = [report["forward"], report["reverse"]]
    for title, key in (("packets entered", "entered"), ("delivered", "delivered"), ("lost", "lost")):
        shown.add_row(title, *(f"{link[key]:,}" for link in links))
    shown.add_row("loss", *(_share(link) for link in links))
    for title, key in (
        ("dropped by queue", "queue_dropped"),
        ("above the MTU", "mtu_dropped"),
        ("duplicated", "duplicated"),
        ("corrupted", "corrupted"),
        ("reordered", "reordered"),
        ("longest queue, packets", "max_queue_packets"),
    ):
        shown.add_row(title, *(f"{link[key]:,}" for link in links))
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
