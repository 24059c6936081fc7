"""The results of `transact` as document, notes, table, chart and HTML page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from longfat.presentation.formatting import DASH, scale_for
from longfat.presentation.measured.estimates import chart_points, with_bounds
from longfat.presentation.text_table import TextTable

if TYPE_CHECKING:
    from longfat.analysis.transaction_summary import Summary
    from longfat.presentation.charts.vega import Spec


def document(host: str, port: int, report: Mapping[str, Any], summary: Summary) -> dict[str, Any]:
    """Returns the results without the samples, for `--json`."""
    return {
        "host": host,
        "address": report["address"],
        "port": port,
        "interrupted": report["interrupted"],
        "transactions": [one.to_json() for one in summary.groups],
        "errors": summary.errors,
        "dropped_by_capture": report["dropped"],
        "notes": notes(report, summary),
    }


def notes(report: Mapping[str, Any], summary: Summary) -> list[str]:
    """Returns remarks about the table, one line each."""
    found: list[str] = []
    if summary.groups:
        found.append(
            "Application: from before connect or sendto to the end of the reply; "
            "wire: from the first frame sent to the server's FIN, or to the reply's last fragment; "
            "stack: application minus wire"
        )
        found.append("Medians; in brackets: 95 % CI from order statistics; packets: both directions")
    found += [f"{note[0].upper()}{note[1:]}" for note in report["notes"]]
    if count := sum(one.retransmissions for one in summary.groups):
        found.append(f"{count} retransmissions")
    if report["dropped"]:
        found.append(f"The capture missed {report['dropped']} frames: times on the wire are unreliable")
    found += [f"{count} transactions failed: {error}" for error, count in summary.errors.items()]
    return found


def table(summary: Summary) -> TextTable:
    """Returns a row for each protocol and size: time of the application, on the wire and in the stack."""
    scale, unit = scale_for([one.application.value for one in summary.groups], "s")
    head = [
        *("protocol", "size B", "done", f"application {unit}", "wire", "stack"),
        *("packets", "bytes on the wire"),
    ]
    rows = [
        [
            one.protocol,
            str(one.size),
            f"{one.count - one.failed} of {one.count}",
            with_bounds(one.application, scale),
            with_bounds(one.wire, scale),
            with_bounds(one.stack, scale),
            f"{one.packets:g}{'' if one.packets_usual else ' (varies)'}"
            if math.isfinite(one.packets)
            else DASH,
            f"{one.bytes_on_wire:,.0f}" if math.isfinite(one.bytes_on_wire) else DASH,
        ]
        for one in summary.groups
    ]
    return TextTable(head, rows, right=range(1, len(head)))


def drawing(summary: Summary) -> Spec:
    """Returns the chart of transactions by size, as Vega-Lite. Raises ValueError without replies."""
    from longfat.presentation.measured import page as measurement_report

    points = chart_points(
        [
            (f"{one.protocol}, {key}", one.size, getattr(one, key))
            for key in ("application", "wire")
            for one in summary.groups
        ]
    )
    return measurement_report.by_size(points, "Transaction (ms)")


def page(result: Mapping[str, Any], summary: Summary) -> str:
    """Returns the HTML report."""
    from longfat.presentation.measured import page as measurement_report

    title = f"Transactions with {result['host']}"
    chart = ("Transactions by size", drawing(summary))
    return measurement_report.page(title, result["notes"], table(summary), chart, result)
