"""`longfat ping`: round trips by size."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longfat.cli.measuring import ECHO_PORT

if TYPE_CHECKING:
    from longfat.analysis.ping_summary import Summary


class Requests(StrEnum):
    """How it is asked."""

    ICMP = "icmp"
    UDP = "udp"
    TCP = "tcp"


def ping(
    host: Annotated[str, typer.Argument(help="Who answers: a name or an address.")],
    sizes: Annotated[
        str | None,
        typer.Option(
            metavar="LIST", help="Bytes of payload, e.g. 8,100..1400:100. Default: 56; TCP has none."
        ),
    ] = None,
    count: Annotated[int, typer.Option(min=1, max=1_000_000, help="Requests of each size.")] = 10,
    protocol: Annotated[
        Requests, typer.Option(help="ICMP echo, UDP to longfat echo or a closed port, or TCP's handshake.")
    ] = Requests.ICMP,
    port: Annotated[
        int | None,
        typer.Option(min=1, max=65_535, help=f"Of UDP ({ECHO_PORT} by default) and TCP.", show_default=False),
    ] = None,
    interval: Annotated[
        str, typer.Option(metavar="DURATION", help="From one request to the next.")
    ] = "100ms",
    flood: Annotated[
        bool, typer.Option("--flood", help="The next as soon as one is answered, or after 10 ms.")
    ] = False,
    rate: Annotated[
        int, typer.Option(min=1, max=100_000, help="Requests a second of a flood, at most.")
    ] = 10_000,
    window: Annotated[
        int | None,
        typer.Option(
            min=1, max=1024, help="Unanswered at a time. Default: 64, of a flood 1.", show_default=False
        ),
    ] = None,
    timeout: Annotated[str, typer.Option(metavar="DURATION", help="So long an answer is waited for.")] = "2s",
    whole: Annotated[
        bool, typer.Option("--dont-fragment", help="No fragments: what is larger than an MTU fails.")
    ] = False,
    spin: Annotated[
        bool, typer.Option("--spin", help="Wait awake for answers: a processor's time for some µs less.")
    ] = False,
    four: Annotated[bool, typer.Option("-4", help="IPv4 only.")] = False,
    six: Annotated[bool, typer.Option("-6", help="IPv6 only.")] = False,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a report in HTML.")] = None,
    samples: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write all samples: .parquet or .csv.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Measure round trips by size, by the kernel's stamps and the application's clock (Linux).

    Sizes take turns. Medians and 99th percentiles have intervals of 95 % by the order of the samples. Where
    the kernel stamps packets, round trips are between its stamps, and what this program adds stands beside
    them. Ctrl-C ends it with what there is.

    \b
    Examples:
      longfat ping 127.0.0.1
      longfat ping example.org --sizes 8,100..1400:100 --out round-trips.html
      longfat ping 127.0.0.1 --flood --count 1000 --json
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat import _native
    from longfat.analysis.ping_summary import rows, summarise
    from longfat.cli import measuring
    from longfat.cli.arguments.sizes import read
    from longfat.cli.signals import end_like_ctrl_c
    from longfat.presentation.formatting import quantity

    asked = read("--sizes", sizes) if sizes is not None else ((0,) if protocol is Requests.TCP else (56,))
    if protocol is Requests.TCP and port is None:
        raise ValueError("--protocol tcp needs a --port: which one is connected to?")
    measuring.check_samples(samples)
    measuring.check_report(out)
    options = {
        "host": host,
        "port": port or ECHO_PORT,
        "version": measuring.version(four, six),
        "protocol": protocol.value,
        "sizes": asked,
        "count": count,
        "interval": 0.01 if flood else measuring.duration("--interval", interval, 0.0002, 3600),
        "flood": rate if flood else None,
        "window": window or (1 if flood else 64),
        "timeout": measuring.duration("--timeout", timeout, 0.001, 3600),
        "whole": whole,
        "spin": spin,
    }
    total = len(asked) * count

    def line(told: Mapping[str, Any]) -> str:
        last = (
            f", the last of {told['size']} B after {quantity(told['last_s'], 's')}"
            if told["answered"]
            else ""
        )
        return f"{told['sent']} of {total} sent, {told['answered']} answered{last}"

    tell, close = measuring.live(line)
    end_like_ctrl_c()
    try:
        report = json.loads(_native.ping(json.dumps(options), tell))
    finally:
        close()
    found = rows(report)
    summary = summarise(found)
    told = document(host, protocol.value, report, summary)
    if samples is not None and found:
        measuring.write_samples(samples, found)
    if out is not None and summary.answered:
        measuring.write_report(out, page(told, summary))
    if as_json:
        typer.echo(json.dumps(told, indent=2))
    else:
        if summary.sizes:
            measuring.print_table(table(summary), left=0)
        for text in told["notes"]:
            typer.echo(text)
    if not summary.answered and not report["interrupted"]:
        typer.echo(f"longfat: {nothing(host, protocol, summary)}", err=True)
    measuring.ended(report["interrupted"], summary.answered > 0)


def document(host: str, protocol: str, report: Mapping[str, Any], summary: Summary) -> dict[str, Any]:
    """All that was found but the samples, for `--json`."""
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


def nothing(host: str, protocol: Requests, summary: Summary) -> str:
    """Why there is nothing to show, in a line."""
    if summary.errors:
        return f"nothing reached {host}: {', '.join(summary.errors)}"
    hint = {
        Requests.ICMP: "hosts and firewalls may drop echo requests: try --protocol tcp --port 443, or udp",
        Requests.UDP: "start longfat echo there, and see that no firewall is in between",
        Requests.TCP: "a firewall drops the SYN, or nobody is there",
    }[protocol]
    return f"{host} did not answer: {hint}"


def notes(report: Mapping[str, Any], summary: Summary) -> list[str]:
    """What is to be known beside the table, a line each."""
    from longfat.presentation.formatting import digits, quantity

    told: list[str] = []
    if not summary.sizes:
        return told
    if summary.clock == "kernel" and report["method"] == "tcp":
        told.append(
            "Round trips are the kernel's own of each SYN, to the microsecond; application: all of connect"
        )
    elif summary.clock == "kernel":
        told.append("Round trips are from the kernel's stamp of the request to that of its answer")
    else:
        told.append("Round trips are the application's: the kernel did not stamp every packet")
    told.append(
        "In brackets: 95 % intervals by the order of the samples; jitter: mean step between two round trips"
    )
    if summary.line is not None:
        latency, slope = summary.line.latency, summary.line.per_byte
        at = [digits(value * 1e9) for value in (slope.value, slope.low, slope.high)]
        told.append(
            f"Least round trips by size: {quantity(latency.value, 's')} at 0 B, "
            f"and {at[0]} ns [{at[1]}, {at[2]}] a byte"
        )
    if summary.closed:
        every = "All" if summary.closed == summary.answered else str(summary.closed)
        what = (
            "a RST"
            if report["method"] == "tcp"
            else "ICMP's port unreachable, which hosts send seldom (Linux: 1/s)"
        )
        told.append(f"{every} of the answers came from a closed port: {what}")
    late, doubled = (sum(getattr(one, key) for one in summary.sizes) for key in ("late", "duplicates"))
    if late:
        told.append(f"{late} came after the timeout and count as lost")
    if doubled:
        told.append(f"{doubled} answers came again")
    for error, count in summary.errors.items():
        told.append(f"{count} failed: {error}")
    if report["note"]:
        told.append(f"{report['note'][0].upper()}{report['note'][1:]}")
    return told


def table(summary: Summary) -> list[list[str]]:
    """The table, its first row the heading."""
    from longfat.presentation.formatting import DASH, digits, scale_for

    medians = [one.application.median.value for one in summary.sizes]
    scale, unit = scale_for(medians, "s")

    def time(value: float) -> str:
        return digits(value / scale) if math.isfinite(value) else DASH

    def bounded(told: Any) -> str:
        low, high = (digits(v / scale) if math.isfinite(v) else "?" for v in (told.low, told.high))
        return f"{time(told.value)} [{low}, {high}]"

    rows = [
        [
            *("payload B", "sent", "lost", f"RTT least {unit}", "median", "99th percentile", "jitter"),
            *("application, median", "out + in"),
        ]
    ]
    for one in summary.sizes:
        own = one.outbound + one.inbound
        lost = f"{one.loss.value:.1%} [{one.loss.low:.1%}, {one.loss.high:.1%}]"
        rows.append(
            [
                str(one.size),
                str(one.sent),
                lost,
                time(one.rtt.minimum),
                bounded(one.rtt.median),
                bounded(one.rtt.p99),
                time(one.rtt.jitter),
                time(one.application.median.value),
                time(own),
            ]
        )
    return rows


def page(told: Mapping[str, Any], summary: Summary) -> str:
    """The report."""
    from longfat.presentation import measurement_report

    points: list[dict[str, Any]] = []
    series: Sequence[tuple[str, str]] = (
        ("median, application", "application"),
        (f"median, {summary.clock}", "rtt"),
    )
    for name, key in series if summary.clock == "kernel" else series[:1]:
        for one in summary.sizes:
            median = getattr(one, key).median
            if math.isfinite(median.value):
                low, high = (
                    value * 1e3 if math.isfinite(value) else None for value in (median.low, median.high)
                )
                points.append(
                    {"series": name, "size": one.size, "ms": median.value * 1e3, "low": low, "high": high}
                )
    least = [
        {"series": "least", "size": one.size, "ms": one.rtt.minimum * 1e3}
        for one in summary.sizes
        if one.answered
    ]
    title = f"Round trips to {told['host']}"
    chart = ("Round trips by size", measurement_report.by_size([*points, *least], "Round trip (ms)"))
    return measurement_report.page(title, told["notes"], table(summary), chart, told)
