"""`longfat path`: latency and bandwidth of each link on the way to a host."""

from __future__ import annotations

import json
import socket
import sys
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Callable

    from longfat.measurement.path import Progress


LONGEST_S = 60


class Probes(StrEnum):
    """What probes are."""

    ICMP = "icmp"
    UDP = "udp"


def path(
    host: Annotated[str, typer.Argument(help="The host at the end of the path: a name or an address.")],
    protocol: Annotated[
        Probes | None,
        typer.Option(help="ICMP echo requests, or UDP to a closed port. Default: icmp where it is allowed."),
    ] = None,
    max_hops: Annotated[int, typer.Option(min=1, max=64, help="Look no further.")] = 30,
    sizes: Annotated[
        str | None,
        typer.Option(
            metavar="LIST", help="Packets with IP header, e.g. 100,600..1500:100. Default: 14 of them."
        ),
    ] = None,
    rounds: Annotated[
        int, typer.Option(min=1, max=10_000, help="Probes of each size to each router, at most.")
    ] = 64,
    budget: Annotated[int, typer.Option(min=10, max=1_000_000, help="Probes in all, at most.")] = 20_000,
    seconds: Annotated[
        float, typer.Option("--time", min=0, max=86_400, metavar="SECONDS", help="As long, at most.")
    ] = 300.0,
    precision: Annotated[
        str, typer.Option(metavar="%", help="Half of a bandwidth's interval that is narrow enough.")
    ] = "5%",
    interval: Annotated[str, typer.Option(metavar="DURATION", help="Between two probes, at least.")] = "10ms",
    window: Annotated[
        int, typer.Option(min=1, max=16, help="Probes on their way at a time: more may meet each other.")
    ] = 1,
    timeout: Annotated[str, typer.Option(metavar="DURATION", help="So long an answer is waited for.")] = "1s",
    port: Annotated[int, typer.Option(min=1, max=65_000, help="Where UDP probes go.")] = 33_434,
    model: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the path as a model that run, shell and predict take."),
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a report in HTML.")] = None,
    samples: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Keep all samples in this file; what is there of the same path counts too."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Find the routers on the way to a host, and latency and bandwidth of each link (Linux).

    Packets of many sizes end at each router in turn, which says so. Low round trips by size are a line
    for each router, whose slopes and heights differ by what the link before it takes. Where that cannot be
    told, it is said. One packet is on its way at a time. Ctrl-C ends it with what is known.

    \b
    Examples:
      longfat path example.org --model model.toml
      longfat run study.toml --set path=@model.toml
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat import _native
    from longfat.cli import INTERRUPTED, SYSTEM_ERROR
    from longfat.cli.signals import end_like_ctrl_c
    from longfat.measurement.path import Budget, PathMeasurement
    from longfat.measurement.path_document import document
    from longfat.measurement.path_samples import SampleFile
    from longfat.study import units

    address, version = _resolve(host)
    asked = None if sizes is None else _sizes(sizes, version)
    pause, patience = _time("--interval", interval, 0.001), _time("--timeout", timeout, 0.01)
    prober, by = _prober(address, protocol, port, interval=pause, timeout=patience, window=window)
    limits = Budget(
        rate=units.proportion(precision), rounds=rounds, probes=budget, seconds=seconds, max_hops=max_hops
    )
    about = {"host": host, "address": address, "protocol": by}
    kept = None if samples is None else SampleFile(samples, about)
    before = [] if kept is None else kept.open()
    when = datetime.now(UTC).isoformat(timespec="seconds")
    measurement = PathMeasurement(
        prober, limits, asked, version=version, before=before, keep=None if kept is None else kept.add
    )
    tell, close = _display(host)
    end_like_ctrl_c()
    code = 0
    try:
        progress = measurement.run(tell)
        if by == Probes.ICMP:
            # One probe at a time: the host limits its answers to UDP.
            udp = _native.HopProber(
                address, Probes.UDP.value, port, interval=pause, timeout=patience, window=1
            )
            measurement.separate_last_link(udp, tell)
    except KeyboardInterrupt:
        progress, code = measurement.interrupted(), INTERRUPTED
    finally:
        close()
    told = document(progress, {**about, "when": when})
    if model is not None and progress.path.links:
        _write_model(model, told)
    if out is not None and progress.path.links:
        _write_report(out, told, progress)
    if as_json:
        typer.echo(json.dumps(told, indent=2))
    else:
        _print(told)
    if not progress.path.links:
        typer.echo(f"longfat: {_nothing(told)}", err=True)
        code = code or SYSTEM_ERROR
    raise typer.Exit(code)


def _sizes(text: str, version: int) -> tuple[int, ...]:
    from longfat.cli.arguments.sizes import read
    from longfat.measurement.path import LARGEST_SIZE, LEAST, MOST_SIZES

    found = read("--sizes", text)
    least, most = LEAST[version], LARGEST_SIZE
    if not (4 <= len(found) <= MOST_SIZES and least <= found[0] <= found[-1] <= most):
        raise ValueError(f"--sizes: 4 to {MOST_SIZES} sizes, from {least} to {most} bytes")
    return found


def _time(option: str, text: str, least: float) -> float:
    from longfat.cli.arguments.hops import quantity

    try:
        found = quantity(text, "duration")
    except ValueError as error:
        raise ValueError(f"{option}: {error}") from None
    if not least <= found <= LONGEST_S:
        raise ValueError(f"{option}: {text} is not from {least * 1e3:g}ms to {LONGEST_S}s")
    return found


def _resolve(host: str) -> tuple[str, int]:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_DGRAM)
    except OSError as error:
        raise ValueError(f'"{host}" is no host that is known here: {error.strerror}') from None
    family, _, _, _, (address, *_) = found[0]
    return str(address), 4 if family == socket.AF_INET else 6


def _prober(address: str, protocol: Probes | None, port: int, **keys: Any) -> tuple[Any, str]:
    from longfat import _native

    if protocol is not None:
        return _native.HopProber(address, protocol.value, port, **keys), protocol.value
    try:
        return _native.HopProber(address, "icmp", port, **keys), "icmp"
    except OSError as error:
        typer.echo(f"By UDP: {error}", err=True)
        return _native.HopProber(address, "udp", port, **keys), "udp"


def _display(host: str) -> tuple[Callable[[Progress], None], Callable[[], None]]:
    """A line that changes at a terminal, and nothing elsewhere."""
    if not sys.stderr.isatty():
        return lambda _progress: None, lambda: None
    from rich.console import Console

    status = Console(stderr=True).status(f"Looking for the routers to {host}")
    status.start()

    def tell(progress: Progress) -> None:
        routers = sum(1 for router in progress.samples.routers.values() if router.answered)
        known = f", {len(progress.path.links)} links seen" if progress.path.links else ""
        status.update(
            f"{progress.samples.count} probes, {routers} routers, round {progress.rounds + 1}{known}"
        )

    return tell, status.stop


def _nothing(told: dict[str, Any]) -> str:
    if not any(hop["address"] for hop in told["hops"]):
        other = "udp" if told["protocol"] == "icmp" else "icmp"
        return f"nobody on the way answers: try --protocol {other}"
    return "too few sizes were answered to tell of any link: give more --time or another --sizes"


def _write_model(target: Path, told: dict[str, Any]) -> None:
    from longfat.measurement.path_document import hops, measured
    from longfat.study.path_model import PathModel, write

    write(target, PathModel({"hops": hops(told)}, measured(told)))


def _write_report(target: Path, told: dict[str, Any], progress: Progress) -> None:
    from longfat.files import write_whole
    from longfat.presentation.path_report import build

    write_whole(target, build(told, progress.samples.path(), _rows(told)).encode())


def _rows(told: dict[str, Any]) -> list[list[str]]:
    from longfat.presentation.formatting import digits, quantity

    def span(interval: dict[str, float], scale: float) -> str:
        value, low, high = (interval[key] / scale for key in ("value", "low", "high"))
        return f"{digits(value)} [{digits(low)}, {digits(high)}]"

    rows = [
        [
            *("hop", "address", "unanswered", "least RTT ms", "latency ms, one way", "bandwidth Mbit/s"),
            *("loss each way", ""),
        ]
    ]
    for hop in told["hops"]:
        link, rtt = hop["link"], hop["least_rtt_s"]
        notes = []
        if len(hop["addresses"]) > 1:
            notes.append(f"the route changes: {', '.join(hop['addresses'])}")
        latency = bandwidth = loss = ""
        if hop["limits_answers"]:
            notes.append("limits its answers")
        if link is not None:
            loss = _loss(link)
            latency = span(link["latency_s"], 1e-3)
            if link["rate_bps"] is not None:
                bandwidth = span(link["rate_bps"], 1e6)
            else:
                bandwidth = f"cannot tell, over {quantity(link['rate_at_least_bps'], 'bit/s')}"
            if link["reverse_rate_bps"] is not None:
                notes.append(f"back {quantity(link['reverse_rate_bps'], 'bit/s')}")
            if len(link["ttls"]) > 1:
                notes.append(f"hops {link['ttls'][0]} to {link['ttls'][-1]} as one")
            if link["queue_at_least_bytes"] is not None:
                notes.append(f"queue at least {quantity(link['queue_at_least_bytes'], 'B')}")
        elif hop["answers_slowly"]:
            notes.append("answers too slowly to tell its link")
        elif hop["address"] is not None:
            notes.append("too few answers")
        rows.append(
            [
                str(hop["ttl"]),
                hop["address"] or "*",
                f"{hop['unanswered']:.1%}",
                "" if rtt is None else digits(rtt * 1e3, 4),
                latency,
                bandwidth,
                loss,
                "; ".join(notes),
            ]
        )
    return rows


def _loss(link: dict[str, Any]) -> str:
    from longfat.analysis.inference.losses import one_way

    found = link["loss_round_trip"]
    if found is None:
        return ""
    low, high = one_way(found["low"]), one_way(found["high"])
    return f"{link['loss_each_way']:.2%} [{low:.2%}, {high:.2%}]"


def _print(told: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    from longfat.presentation.formatting import quantity

    head, *rows = _rows(told)
    table = Table(box=None, pad_edge=False, header_style="dim")
    for number, name in enumerate(head):
        table.add_column(name, justify="right" if number in (0, 2, 3) else "left")
    for row in rows:
        table.add_row(*row)
    console = Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else 160)
    console.print(table)
    if any(hop["link"] for hop in told["hops"]):
        slope, largest = told["seconds_per_byte"], told["largest_packet_bytes"]
        sending = f"{quantity(slope * largest, 's')} to send {largest} B at all links"
        latency = f"{quantity(told['latency_s'], 's')} one way"
        console.print(f"{latency}, and {sending}; {told['probes']} probes, ended by {told['ended_by']}")
    for line in told["assumptions"]:
        console.print(line, soft_wrap=True)
    if told["clock"] == "application":
        console.print("Times are the application's: the kernel did not stamp every packet")
    if told["hops"] and not told["reached"]:
        console.print(f"{told['host']} itself did not answer")
