"""The results of `ping` as document, notes, table, chart and HTML page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from longfat.presentation.formatting import digits, quantity, scale_for
from longfat.presentation.measured.estimates import chart_points, with_bounds
from longfat.presentation.text_table import TextTable

if TYPE_CHECKING:
    from longfat.analysis.ping_summary import Summary
    from longfat.presentation.charts.vega import Spec


def document(host: str, protocol: str, report: Mapping[str, Any], summary: Summary) -> dict[str, Any]:
    """Returns the results without the samples, for `--json`."""
    return {
        "host": host,
        "address": report["address"],
        "protocol": protocol,
        "method": report["method"],
        "clock": summary.clock,
        "took_s": report["took_s"],
        "interrupted": report["interrupted"],
        "sizes": [one.to_json() for one in summary.sizes],
        "line": summary.line.to_json() if summary.line is not None else None,
        "errors": summary.errors,
        "notes": notes(report, summary),
    }


def failure(host: str, protocol: str, summary: Summary) -> str:
    """Returns why there is no result, as one line."""
    if summary.errors:
        return f"no request reached {host}: {', '.join(summary.errors)}"
    hint = {
        "icmp": "hosts and firewalls may drop echo requests: try --protocol tcp --port 443, or udp",
        "udp": "start longfat echo there and open the port in firewalls",
        "tcp": "a firewall drops the SYN, or the host is down",
    }[protocol]
    return f"{host} did not answer: {hint}"


def notes(report: Mapping[str, Any], summary: Summary) -> list[str]:
    """Returns remarks about the table, one line each."""
    found: list[str] = []
    if not summary.sizes:
        return found
    if summary.clock == "kernel" and report["method"] == "tcp":
        found.append(
            "RTT: measured by the kernel for each SYN, in whole µs; application: duration of connect"
        )
    elif summary.clock == "kernel":
        found.append("RTT: from the kernel's timestamp of the request to that of the reply")
    else:
        found.append("RTT: on the application's clock, because the kernel did not timestamp every packet")
    found.append("In brackets: 95 % CI from order statistics; jitter: mean difference of consecutive RTTs")
    if summary.line is not None:
        latency, slope = summary.line.latency, summary.line.per_byte
        at = [digits(value * 1e9) for value in (slope.value, slope.low, slope.high)]
        found.append(
            f"Smallest RTT by size: {quantity(latency.value, 's')} at 0 B, "
            f"plus {at[0]} ns [{at[1]}, {at[2]}] per byte"
        )
    if summary.closed:
        every = "All" if summary.closed == summary.answered else str(summary.closed)
        reply = (
            "a RST"
            if report["method"] == "tcp"
            else "ICMP port unreachable, which hosts limit (Linux: 1 per second)"
        )
        found.append(f"{every} of the replies came from a closed port: {reply}")
    late, doubled = (sum(getattr(one, key) for one in summary.sizes) for key in ("late", "duplicates"))
    if late:
        found.append(f"{late} replies arrived after the timeout and count as lost")
    if doubled:
        found.append(f"{doubled} duplicate replies")
    found += [f"{count} requests failed: {error}" for error, count in summary.errors.items()]
    if report["note"]:
        found.append(f"{report['note'][0].upper()}{report['note'][1:]}")
    return found


def table(summary: Summary) -> TextTable:
    """Returns a row for each size: losses, smallest and median RTT, 99th percentile, jitter."""
    scale, unit = scale_for([one.application.median.value for one in summary.sizes], "s")
    head = [
        *("payload B", "sent", "lost", f"RTT min {unit}", "median", "99th percentile", "jitter"),
        *("application, median", "out + in"),
    ]
    rows = [
        [
            str(one.size),
            str(one.sent),
            f"{one.loss.value:.1%} [{one.loss.low:.1%}, {one.loss.high:.1%}]",
            digits(one.rtt.minimum / scale),
            with_bounds(one.rtt.median, scale),
            with_bounds(one.rtt.p99, scale),
            digits(one.rtt.jitter / scale),
            digits(one.application.median.value / scale),
            digits((one.outbound + one.inbound) / scale),
        ]
        for one in summary.sizes
    ]
    return TextTable(head, rows, right=range(len(head)))


def drawing(summary: Summary) -> Spec:
    """Returns the chart of round-trip times by size, as Vega-Lite. Raises ValueError without replies."""
    from longfat.presentation.measured import page as measurement_report

    names = {"application": "median, application", "rtt": f"median, {summary.clock}"}
    keys = ("application", "rtt") if summary.clock == "kernel" else ("application",)
    points = chart_points(
        [(names[key], one.size, getattr(one, key).median) for key in keys for one in summary.sizes]
    )
    points += [
        {"series": "smallest", "size": one.size, "ms": one.rtt.minimum * 1e3}
        for one in summary.sizes
        if one.answered
    ]
    return measurement_report.by_size(points, "Round-trip time (ms)")


def page(result: Mapping[str, Any], summary: Summary) -> str:
    """Returns the HTML report."""
    from longfat.presentation.measured import page as measurement_report

    title = f"Round-trip times to {result['host']}"
    chart = ("Round-trip times by size", drawing(summary))
    return measurement_report.page(title, result["notes"], table(summary), chart, result)
