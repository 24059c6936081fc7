"""`longfat transact`: one request, one reply, as the application and as the wire see them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longfat.cli.measuring import ECHO_PORT

if TYPE_CHECKING:
    from longfat.analysis.transaction_summary import Summary

PROTOCOLS = ("udp", "tcp", "tfo", "tcp-user", "ttcp")
"""In the order in which they are shown."""
_USUAL = "udp,tcp,tfo"


def transact(
    host: Annotated[str, typer.Argument(help="Where longfat echo runs: a name or an address.")],
    protocol: Annotated[
        str, typer.Option(metavar="LIST", help=f"Any of {', '.join(PROTOCOLS)}, with commas between them.")
    ] = _USUAL,
    sizes: Annotated[
        str, typer.Option(metavar="LIST", help="Bytes of request and reply, e.g. 8,100..1400:100.")
    ] = "100,1400",
    count: Annotated[int, typer.Option(min=1, max=100_000, help="Transactions of each kind and size.")] = 10,
    port: Annotated[int, typer.Option(min=1, max=65_535, help="Of longfat echo.")] = ECHO_PORT,
    interval: Annotated[
        str, typer.Option(metavar="DURATION", help="From one transaction to the next, at least.")
    ] = "10ms",
    timeout: Annotated[str, typer.Option(metavar="DURATION", help="What takes longer has failed.")] = "5s",
    four: Annotated[bool, typer.Option("-4", help="IPv4 only.")] = False,
    six: Annotated[bool, typer.Option("-6", help="IPv6 only.")] = False,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a report in HTML.")] = None,
    samples: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write all transactions: .parquet or .csv.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Measure transactions with longfat echo: one request, one reply of the same size (Linux).

    The application's time is from before the first call that sends (connect, or sendto with data) to the end
    of the reply; the wire's from the first frame sent to the last that carries the reply or its end. The
    difference is the time in this host's protocol stack. Times on the wire and packets need CAP_NET_RAW.
    tcp-user and ttcp are TCP and T/TCP in user space at both ends, their packets in UDP datagrams.
    Protocols and sizes take turns. Medians have intervals of 95 % by the order of the samples.

    \b
    Examples:
      longfat transact 127.0.0.1
      longfat transact example.org --protocol tcp,tfo --sizes 100..1400:100 --count 50 --out transactions.html
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat import _native
    from longfat.analysis.ping_summary import rows
    from longfat.analysis.transaction_summary import summarise
    from longfat.cli import measuring
    from longfat.cli.arguments.sizes import read
    from longfat.cli.signals import end_like_ctrl_c
    from longfat.presentation.formatting import quantity

    protocols = list(dict.fromkeys(name.strip() for name in protocol.split(",")))
    if wrong := [name for name in protocols if name not in PROTOCOLS]:
        raise ValueError(f'--protocol: "{wrong[0]}" is none: allowed: {", ".join(PROTOCOLS)}')
    measuring.check_samples(samples)
    measuring.check_report(out)
    asked = read("--sizes", sizes)
    options = {
        "host": host,
        "port": port,
        "version": measuring.version(four, six),
        "protocols": protocols,
        "sizes": asked,
        "count": count,
        "interval": measuring.duration("--interval", interval, 0, 3600),
        "timeout": measuring.duration("--timeout", timeout, 0.001, 3600),
    }
    total = len(protocols) * len(asked) * count

    def line(told: Mapping[str, Any]) -> str:
        last = (
            f", the last of {told['size']} B in {quantity(told['last_s'], 's')}" if told["answered"] else ""
        )
        return f"{told['answered']} of {total} done{last}"

    tell, close = measuring.live(line)
    end_like_ctrl_c()
    try:
        report = json.loads(_native.transact(json.dumps(options), tell))
    finally:
        close()
    found = rows(report)
    summary = summarise(found, protocols)
    told = document(host, port, report, summary)
    if samples is not None and found:
        measuring.write_samples(samples, found)
    if out is not None and summary.done:
        measuring.write_report(out, page(told, summary))
    if as_json:
        typer.echo(json.dumps(told, indent=2))
    else:
        if summary.groups:
            measuring.print_table(table(summary), left=1)
        for text in told["notes"]:
            typer.echo(text)
    measuring.ended(report["interrupted"], summary.done > 0)


def document(host: str, port: int, report: Mapping[str, Any], summary: Summary) -> dict[str, Any]:
    """All that was found but the samples, for `--json`."""
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
    """What is to be known beside the table, a line each."""
    told: list[str] = []
    if summary.groups:
        told.append(
            "Application: from before connect or sendto to the end of the reply; "
            "wire: from the first frame sent to the server's FIN, or the reply's last fragment"
        )
        told.append(
            "Medians; in brackets 95 % intervals by the order of the samples; packets: all, both ways"
        )
    told += [f"{note[0].upper()}{note[1:]}" for note in report["notes"]]
    if again := sum(one.retransmissions for one in summary.groups):
        told.append(f"{again} segments were sent again")
    if report["dropped"]:
        told.append(f"The capture lost {report['dropped']} frames: times on the wire are not to be trusted")
    told += [f"{count} failed: {error}" for error, count in summary.errors.items()]
    return told


def table(summary: Summary) -> list[list[str]]:
    """The table, its first row the heading."""
    from longfat.presentation.formatting import DASH, digits, scale_for

    scale, unit = scale_for([one.application.value for one in summary.groups], "s")

    def bounded(told: Any) -> str:
        if not math.isfinite(told.value):
            return DASH
        low, high = (digits(v / scale) if math.isfinite(v) else "?" for v in (told.low, told.high))
        return f"{digits(told.value / scale)} [{low}, {high}]"

    rows = [
        ["protocol", "size B", "done", f"application {unit}", "wire", "stack", "packets", "bytes on the wire"]
    ]
    for one in summary.groups:
        packets = (
            DASH
            if not math.isfinite(one.packets)
            else f"{one.packets:g}{'' if one.packets_usual else ' (varies)'}"
        )
        size = DASH if not math.isfinite(one.bytes_on_wire) else f"{one.bytes_on_wire:,.0f}"
        rows.append(
            [
                one.protocol,
                str(one.size),
                f"{one.count - one.failed} of {one.count}",
                bounded(one.application),
                bounded(one.wire),
                bounded(one.stack),
                packets,
                size,
            ]
        )
    return rows


def page(told: Mapping[str, Any], summary: Summary) -> str:
    """The report."""
    from longfat.presentation import measurement_report

    points = []
    for key in ("application", "wire"):
        for one in summary.groups:
            median = getattr(one, key)
            if math.isfinite(median.value):
                low, high = (
                    value * 1e3 if math.isfinite(value) else None for value in (median.low, median.high)
                )
                points.append(
                    {
                        "series": f"{one.protocol}, {key}",
                        "size": one.size,
                        "ms": median.value * 1e3,
                        "low": low,
                        "high": high,
                    }
                )
    chart = ("Transactions by size", measurement_report.by_size(points, "Transaction (ms)"))
    title = f"Transactions with {told['host']}"
    return measurement_report.page(title, told["notes"], table(summary), chart, told)
