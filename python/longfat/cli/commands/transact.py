"""`longfat transact`: request-reply transactions, timed by the application and on the wire."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longfat.cli.arguments.options import AsJson, IPv4Only, IPv6Only, ReportFile, SamplesFile
from longfat.cli.measuring import ECHO_PORT

if TYPE_CHECKING:
    from longfat.analysis.transaction_summary import Summary

PROTOCOLS = ("udp", "tcp", "tfo", "tcp-user", "ttcp")
"""In the order of the table."""
_DEFAULT = "udp,tcp,tfo"


def transact(
    host: Annotated[str, typer.Argument(help="Name or address of the host that runs longfat echo.")],
    protocol: Annotated[
        str,
        typer.Option(
            metavar="LIST",
            help=f"Protocols, separated by commas: {', '.join(PROTOCOLS)} "
            "(tcp-user and ttcp: TCP and T/TCP in user space, in UDP datagrams).",
        ),
    ] = _DEFAULT,
    sizes: Annotated[
        str, typer.Option(metavar="LIST", help="Bytes of request and of reply, e.g. 8,100..1400:100.")
    ] = "100,1400",
    count: Annotated[
        int, typer.Option(min=1, max=100_000, help="Transactions of each protocol and size.")
    ] = 10,
    port: Annotated[int, typer.Option(min=1, max=65_535, help="Port of longfat echo.")] = ECHO_PORT,
    interval: Annotated[
        str, typer.Option(metavar="DURATION", help="Shortest time between two transactions.")
    ] = "10ms",
    timeout: Annotated[str, typer.Option(metavar="DURATION", help="Longest transaction.")] = "5s",
    four: IPv4Only = False,
    six: IPv6Only = False,
    out: ReportFile = None,
    samples: SamplesFile = None,
    as_json: AsJson = False,
) -> None:
    """Measure request-reply transactions with longfat echo (Linux).

    \b
    Examples:
      longfat transact 127.0.0.1
      longfat transact 127.0.0.1 --protocol tcp,tfo --sizes 100..1400:100 --count 50 --out transactions.html
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat import _native
    from longfat.analysis.ping_summary import rows
    from longfat.analysis.transaction_summary import summarise
    from longfat.cli import measuring
    from longfat.cli.arguments.formats import require_suffix
    from longfat.cli.arguments.quantities import duration
    from longfat.cli.arguments.sizes import read
    from longfat.cli.signals import interrupt_on_sigterm
    from longfat.files import write_whole
    from longfat.presentation import tables
    from longfat.presentation.formatting import quantity
    from longfat.progress import display

    protocols = list(dict.fromkeys(name.strip() for name in protocol.split(",")))
    if unknown := [name for name in protocols if name not in PROTOCOLS]:
        raise ValueError(f'--protocol: "{unknown[0]}" is unknown; allowed: {", ".join(PROTOCOLS)}')
    require_suffix("--samples", samples, ".parquet", ".csv")
    require_suffix("--out", out, ".html", ".htm")
    requested = read("--sizes", sizes)
    options = {
        "host": host,
        "port": port,
        "version": measuring.ip_version(four, six),
        "protocols": protocols,
        "sizes": requested,
        "count": count,
        "interval": duration("--interval", interval, 0, 3600),
        "timeout": duration("--timeout", timeout, 0.001, 3600),
    }
    total = len(protocols) * len(requested) * count

    def line(now: Mapping[str, Any]) -> str:
        last = f", last {now['size']} B in {quantity(now['last_s'], 's')}" if now["answered"] else ""
        return f"{now['answered']} of {total} done{last}"

    progress = display(log=False)
    interrupt_on_sigterm()
    try:
        report = json.loads(_native.transact(json.dumps(options), measuring.shower(progress, line)))
    finally:
        progress.close()
    found = rows(report)
    summary = summarise(found, protocols)
    result = document(host, port, report, summary)
    if samples is not None and found:
        measuring.write_samples(samples, found)
    if out is not None and summary.done:
        write_whole(out, page(result, summary).encode())
    if as_json:
        typer.echo(json.dumps(result, indent=2))
    else:
        if summary.groups:
            head, *body = table(summary)
            tables.show(tables.table(*head, right=range(1, len(head)), rows=body))
        for text in result["notes"]:
            typer.echo(text)
    measuring.finish(interrupted=report["interrupted"], measured=summary.done > 0)


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


def table(summary: Summary) -> list[list[str]]:
    """Returns the table's rows, the header first."""
    from longfat.cli.measuring import with_bounds
    from longfat.presentation.formatting import DASH, scale_for

    scale, unit = scale_for([one.application.value for one in summary.groups], "s")
    rows = [
        ["protocol", "size B", "done", f"application {unit}", "wire", "stack", "packets", "bytes on the wire"]
    ]
    for one in summary.groups:
        varies = "" if one.packets_usual else " (varies)"
        rows.append(
            [
                one.protocol,
                str(one.size),
                f"{one.count - one.failed} of {one.count}",
                with_bounds(one.application, scale),
                with_bounds(one.wire, scale),
                with_bounds(one.stack, scale),
                f"{one.packets:g}{varies}" if math.isfinite(one.packets) else DASH,
                f"{one.bytes_on_wire:,.0f}" if math.isfinite(one.bytes_on_wire) else DASH,
            ]
        )
    return rows


def page(result: Mapping[str, Any], summary: Summary) -> str:
    """Returns the HTML report."""
    from longfat.cli.measuring import chart_points
    from longfat.presentation import measurement_report

    points = chart_points(
        [
            (f"{one.protocol}, {key}", one.size, getattr(one, key))
            for key in ("application", "wire")
            for one in summary.groups
        ]
    )
    chart = ("Transactions by size", measurement_report.by_size(points, "Transaction (ms)"))
    title = f"Transactions with {result['host']}"
    return measurement_report.page(title, result["notes"], table(summary), chart, result)
