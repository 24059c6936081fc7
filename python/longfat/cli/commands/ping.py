"""`longfat ping`: round-trip times by packet size."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longfat.cli.arguments.options import AsJson, IPv4Only, IPv6Only, ReportFile, SamplesFile
from longfat.cli.measuring import ECHO_PORT

if TYPE_CHECKING:
    from longfat.analysis.ping_summary import Summary


class Requests(StrEnum):
    """Kinds of requests."""

    ICMP = "icmp"
    UDP = "udp"
    TCP = "tcp"


def ping(
    host: Annotated[str, typer.Argument(help="Name or address of the host.")],
    sizes: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="Payload sizes in bytes, e.g. 8,100..1400:100.  [default: 56]"),
    ] = None,
    count: Annotated[int, typer.Option(min=1, max=1_000_000, help="Requests of each size.")] = 10,
    protocol: Annotated[
        Requests,
        typer.Option(help="ICMP echo, UDP to longfat echo or a closed port, or TCP handshake."),
    ] = Requests.ICMP,
    port: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=65_535,
            help=f"TCP (required) or UDP port.  [default: {ECHO_PORT}]",
            show_default=False,
        ),
    ] = None,
    interval: Annotated[str, typer.Option(metavar="DURATION", help="Time between two requests.")] = "100ms",
    flood: Annotated[
        bool, typer.Option("--flood", help="Each request as soon as the last is answered, or after 10 ms.")
    ] = False,
    rate: Annotated[
        int, typer.Option(min=1, max=100_000, help="Highest rate of a flood in requests per second.")
    ] = 10_000,
    window: Annotated[
        int | None,
        typer.Option(
            min=1, max=1024, help="Most unanswered requests.  [default: 64; flood: 1]", show_default=False
        ),
    ] = None,
    timeout: Annotated[str, typer.Option(metavar="DURATION", help="Longest wait for a reply.")] = "2s",
    whole: Annotated[
        bool, typer.Option("--dont-fragment", help="No fragmentation; packets above the MTU fail.")
    ] = False,
    spin: Annotated[
        bool,
        typer.Option("--spin", help="Busy waiting, which saves some µs per reply."),
    ] = False,
    four: IPv4Only = False,
    six: IPv6Only = False,
    out: ReportFile = None,
    samples: SamplesFile = None,
    as_json: AsJson = False,
) -> None:
    """Measure round-trip times by packet size (Linux).

    \b
    Examples:
      longfat ping 127.0.0.1 --sizes 8,100..1400:100 --out round-trips.html
      longfat ping 127.0.0.1 --flood --count 1000 --json
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat import _native
    from longfat.analysis.ping_summary import rows, summarise
    from longfat.cli import measuring
    from longfat.cli.arguments.formats import require_suffix
    from longfat.cli.arguments.quantities import duration
    from longfat.cli.arguments.sizes import read
    from longfat.cli.signals import interrupt_on_sigterm
    from longfat.files import write_whole
    from longfat.presentation import tables
    from longfat.presentation.formatting import quantity
    from longfat.progress import display

    requested = read("--sizes", sizes) if sizes is not None else ((0,) if protocol is Requests.TCP else (56,))
    if protocol is Requests.TCP and port is None:
        raise ValueError("--protocol tcp requires --port")
    require_suffix("--samples", samples, ".parquet", ".csv")
    require_suffix("--out", out, ".html", ".htm")
    options = {
        "host": host,
        "port": port or ECHO_PORT,
        "version": measuring.ip_version(four, six),
        "protocol": protocol.value,
        "sizes": requested,
        "count": count,
        "interval": 0.01 if flood else duration("--interval", interval, 0.0002, 3600),
        "flood": rate if flood else None,
        "window": window or (1 if flood else 64),
        "timeout": duration("--timeout", timeout, 0.001, 3600),
        "whole": whole,
        "spin": spin,
    }
    total = len(requested) * count

    def line(now: Mapping[str, Any]) -> str:
        last = f", last {now['size']} B after {quantity(now['last_s'], 's')}" if now["answered"] else ""
        return f"{now['sent']} of {total} sent, {now['answered']} answered{last}"

    progress = display(log=False)
    interrupt_on_sigterm()
    try:
        report = json.loads(_native.ping(json.dumps(options), measuring.shower(progress, line)))
    finally:
        progress.close()
    found = rows(report)
    summary = summarise(found)
    result = document(host, protocol.value, report, summary)
    if samples is not None and found:
        measuring.write_samples(samples, found)
    if out is not None and summary.answered:
        write_whole(out, page(result, summary).encode())
    if as_json:
        typer.echo(json.dumps(result, indent=2))
    else:
        if summary.sizes:
            head, *body = table(summary)
            tables.show(tables.table(*head, right=range(len(head)), rows=body))
        for text in result["notes"]:
            typer.echo(text)
    if not summary.answered and not report["interrupted"]:
        typer.echo(f"longfat: {failure(host, protocol, summary)}", err=True)
    measuring.finish(interrupted=report["interrupted"], measured=summary.answered > 0)


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


def failure(host: str, protocol: Requests, summary: Summary) -> str:
    """Returns why there is no result, as one line."""
    if summary.errors:
        return f"no request reached {host}: {', '.join(summary.errors)}"
    hint = {
        Requests.ICMP: "hosts and firewalls may drop echo requests: try --protocol tcp --port 443, or udp",
        Requests.UDP: "start longfat echo there and open the port in firewalls",
        Requests.TCP: "a firewall drops the SYN, or the host is down",
    }[protocol]
    return f"{host} did not answer: {hint}"


def notes(report: Mapping[str, Any], summary: Summary) -> list[str]:
    """Returns remarks about the table, one line each."""
    from longfat.presentation.formatting import digits, quantity

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


def table(summary: Summary) -> list[list[str]]:
    """Returns the table's rows, the header first."""
    from longfat.cli.measuring import with_bounds
    from longfat.presentation.formatting import digits, scale_for

    scale, unit = scale_for([one.application.median.value for one in summary.sizes], "s")
    rows = [
        [
            *("payload B", "sent", "lost", f"RTT min {unit}", "median", "99th percentile", "jitter"),
            *("application, median", "out + in"),
        ]
    ]
    for one in summary.sizes:
        lost = f"{one.loss.value:.1%} [{one.loss.low:.1%}, {one.loss.high:.1%}]"
        rows.append(
            [
                str(one.size),
                str(one.sent),
                lost,
                digits(one.rtt.minimum / scale),
                with_bounds(one.rtt.median, scale),
                with_bounds(one.rtt.p99, scale),
                digits(one.rtt.jitter / scale),
                digits(one.application.median.value / scale),
                digits((one.outbound + one.inbound) / scale),
            ]
        )
    return rows


def page(result: Mapping[str, Any], summary: Summary) -> str:
    """Returns the HTML report."""
    from longfat.cli.measuring import chart_points
    from longfat.presentation import measurement_report

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
    title = f"Round-trip times to {result['host']}"
    chart = ("Round-trip times by size", measurement_report.by_size(points, "Round-trip time (ms)"))
    return measurement_report.page(title, result["notes"], table(summary), chart, result)
