"""`longfat path`: latency and bandwidth of each link to a host."""

from __future__ import annotations

import json
import socket
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longfat.cli.arguments.options import AsJson, ReportFile

if TYPE_CHECKING:
    from collections.abc import Callable

    from longfat.measurement.path import Progress
    from longfat.progress import Display

LONGEST_S = 60
LONGEST_MEASUREMENT_S = 86_400


class Probes(StrEnum):
    """Kinds of probes."""

    ICMP = "icmp"
    UDP = "udp"


def path(
    host: Annotated[str, typer.Argument(help="Name or address of the host at the end of the path.")],
    protocol: Annotated[
        Probes | None,
        typer.Option(help="ICMP echo, or UDP to a closed port.  [default: icmp if permitted]"),
    ] = None,
    max_hops: Annotated[int, typer.Option(min=1, max=64, help="Most hops.")] = 30,
    sizes: Annotated[
        str | None,
        typer.Option(
            metavar="LIST", help="Packet sizes with IP header, e.g. 100,600..1500:100.  [default: 14 sizes]"
        ),
    ] = None,
    rounds: Annotated[
        int, typer.Option(min=1, max=10_000, help="Most probes of each size to each router.")
    ] = 64,
    budget: Annotated[int, typer.Option(min=10, max=1_000_000, help="Most probes in total.")] = 20_000,
    limit: Annotated[
        str,
        typer.Option(
            "--time",
            metavar="DURATION",
            help="Longest measurement; up to one --timeout more for last replies.",
        ),
    ] = "300s",
    precision: Annotated[
        str, typer.Option(metavar="%", help="Half-width of a bandwidth's CI at which measuring stops.")
    ] = "5%",
    interval: Annotated[
        str, typer.Option(metavar="DURATION", help="Shortest time between two probes.")
    ] = "10ms",
    window: Annotated[
        int, typer.Option(min=1, max=16, help="Most probes in flight; several may queue behind each other.")
    ] = 1,
    timeout: Annotated[str, typer.Option(metavar="DURATION", help="Longest wait for a reply.")] = "1s",
    port: Annotated[int, typer.Option(min=1, max=65_000, help="Destination port of UDP probes.")] = 33_434,
    model: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Output file for a path model, for run, shell and predict."),
    ] = None,
    out: ReportFile = None,
    samples: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File for all samples; earlier ones of the same path count too."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure latency and bandwidth of each link to a host (Linux).

    \b
    Examples:
      longfat path 127.0.0.1 --model model.toml
      longfat path 127.0.0.1 --protocol udp --time 20s --json
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat import _native
    from longfat.cli import INTERRUPTED, SYSTEM_ERROR
    from longfat.cli.arguments.quantities import duration
    from longfat.cli.signals import interrupt_on_sigterm
    from longfat.measurement.path import Budget, PathMeasurement
    from longfat.measurement.path_document import document
    from longfat.measurement.path_samples import SampleFile
    from longfat.progress import display
    from longfat.study import units

    address, version = _resolve(host)
    requested = None if sizes is None else _sizes(sizes, version)
    pause = duration("--interval", interval, 0.001, LONGEST_S)
    patience = duration("--timeout", timeout, 0.01, LONGEST_S)
    prober, by = _prober(address, protocol, port, interval=pause, timeout=patience, window=window)
    seconds = duration("--time", limit, 0.1, LONGEST_MEASUREMENT_S)
    limits = Budget(
        rate=units.proportion(precision), rounds=rounds, probes=budget, seconds=seconds, max_hops=max_hops
    )
    about = {"host": host, "address": address, "protocol": by}
    store = None if samples is None else SampleFile(samples, about)
    earlier = [] if store is None else store.open()
    when = datetime.now(UTC).isoformat(timespec="seconds")
    measurement = PathMeasurement(
        prober, limits, requested, version=version, earlier=earlier, keep=None if store is None else store.add
    )
    shown = display(log=False)
    show = _shower(shown)
    interrupt_on_sigterm()
    code = 0
    try:
        progress = measurement.run(show)
        if by == Probes.ICMP:
            # One probe at a time: hosts limit their answers to UDP.
            udp = _native.HopProber(
                address, Probes.UDP.value, port, interval=pause, timeout=patience, window=1
            )
            measurement.separate_last_link(udp, show)
    except KeyboardInterrupt:
        progress, code = measurement.interrupted(), INTERRUPTED
    finally:
        shown.close()
    result = document(progress, {**about, "when": when})
    if model is not None and progress.path.links:
        _write_model(model, result)
    if out is not None and progress.path.links:
        _write_report(out, result, progress)
    if as_json:
        typer.echo(json.dumps(result, indent=2))
    else:
        _print(result)
    if not progress.path.links:
        typer.echo(f"longfat: {_failure(result)}", err=True)
        code = code or SYSTEM_ERROR
    raise typer.Exit(code)


def _sizes(text: str, version: int) -> tuple[int, ...]:
    from longfat.cli.arguments.sizes import read
    from longfat.measurement.path import LARGEST_SIZE, MOST_SIZES, SMALLEST_SIZE

    found = read("--sizes", text)
    least, most = SMALLEST_SIZE[version], LARGEST_SIZE
    if not (4 <= len(found) <= MOST_SIZES and least <= found[0] <= found[-1] <= most):
        raise ValueError(f"--sizes: 4 to {MOST_SIZES} sizes from {least} to {most} bytes are allowed")
    return found


def _resolve(host: str) -> tuple[str, int]:
    """Returns a host's address and the version of IP. Raises ValueError for an unknown host."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_DGRAM)
    except OSError as error:
        raise ValueError(f'HOST: "{host}" cannot be resolved: {error.strerror}') from None
    family, _, _, _, (address, *_) = found[0]
    return str(address), 4 if family == socket.AF_INET else 6


def _prober(address: str, protocol: Probes | None, port: int, **keys: Any) -> tuple[Any, str]:
    from longfat import _native

    if protocol is not None:
        return _native.HopProber(address, protocol.value, port, **keys), protocol.value
    try:
        return _native.HopProber(address, "icmp", port, **keys), "icmp"
    except OSError as error:
        typer.echo(f"Using UDP: {error}", err=True)
        return _native.HopProber(address, "udp", port, **keys), "udp"


def _shower(display: Display) -> Callable[[Progress], None]:
    def show(progress: Progress) -> None:
        routers = sum(1 for router in progress.samples.routers.values() if router.answered)
        links = f", {len(progress.path.links)} links found" if progress.path.links else ""
        counts = f"{progress.samples.count} probes, {routers} routers, round {progress.rounds + 1}"
        display.show("", counts + links)

    return show


def _failure(result: dict[str, Any]) -> str:
    """Returns why there is no result, as one line."""
    if not any(hop["address"] for hop in result["hops"]):
        other = "udp" if result["protocol"] == "icmp" else "icmp"
        if result["ended_by"] == "time":
            return f"no router answered in time: increase --time or try --protocol {other}"
        return f"no router answered: try --protocol {other}"
    return "too few sizes were answered to measure any link: increase --time or change --sizes"


def _write_model(target: Path, result: dict[str, Any]) -> None:
    from longfat.measurement.path_document import hops, measured
    from longfat.study.path_model import PathModel, write

    write(target, PathModel({"hops": hops(result)}, measured(result)))


def _write_report(target: Path, result: dict[str, Any], progress: Progress) -> None:
    from longfat.files import write_whole
    from longfat.presentation.path_report import build

    write_whole(target, build(result, progress.samples.path(), _rows(result)).encode())


def _rows(result: dict[str, Any]) -> list[list[str]]:
    """Returns the rows of the table, the header first."""
    from longfat.presentation.formatting import digits

    rows = [
        [
            *("hop", "address", "unanswered", "min RTT ms", "one-way latency ms", "bandwidth Mbit/s"),
            *("loss each way", ""),
        ]
    ]
    for hop in result["hops"]:
        link, rtt = hop["link"], hop["least_rtt_s"]
        rows.append(
            [
                str(hop["ttl"]),
                hop["address"] or "*",
                f"{hop['unanswered']:.1%}",
                "" if rtt is None else digits(rtt * 1e3, 4),
                *(("", "", "") if link is None else _figures(link)),
                "; ".join(_remarks(hop)),
            ]
        )
    return rows


def _figures(link: dict[str, Any]) -> tuple[str, str, str]:
    """Returns latency, bandwidth and loss of a link with their intervals."""
    from longfat.presentation.formatting import digits, quantity

    def span(interval: dict[str, float], scale: float) -> str:
        value, low, high = (interval[key] / scale for key in ("value", "low", "high"))
        return f"{digits(value)} [{digits(low)}, {digits(high)}]"

    if link["rate_bps"] is not None:
        bandwidth = span(link["rate_bps"], 1e6)
    else:
        bandwidth = f"unknown, above {quantity(link['rate_at_least_bps'], 'bit/s')}"
    return span(link["latency_s"], 1e-3), bandwidth, _loss(link)


def _remarks(hop: dict[str, Any]) -> list[str]:
    """Returns remarks about a hop and its link."""
    from longfat.presentation.formatting import quantity

    found = []
    if len(hop["addresses"]) > 1:
        found.append(f"several routes: {', '.join(hop['addresses'])}")
    if hop["limits_answers"]:
        found.append("limits its answers")
    link = hop["link"]
    if link is not None:
        if link["reverse_rate_bps"] is not None:
            found.append(f"reverse {quantity(link['reverse_rate_bps'], 'bit/s')}")
        if len(link["ttls"]) > 1:
            found.append(f"hops {link['ttls'][0]} to {link['ttls'][-1]} as one")
        if link["queue_at_least_bytes"] is not None:
            found.append(f"queue at least {quantity(link['queue_at_least_bytes'], 'B')}")
    elif hop["answers_slowly"]:
        found.append("answers too slowly to measure its link")
    elif hop["address"] is not None:
        found.append("too few answers")
    return found


def _loss(link: dict[str, Any]) -> str:
    from longfat.analysis.inference.losses import one_way

    found = link["loss_round_trip"]
    if found is None:
        return ""
    low, high = one_way(found["low"]), one_way(found["high"])
    return f"{link['loss_each_way']:.2%} [{low:.2%}, {high:.2%}]"


def _print(result: dict[str, Any]) -> None:
    from longfat.presentation import tables
    from longfat.presentation.formatting import quantity

    head, *rows = _rows(result)
    tables.show(tables.table(*head, right=(0, 2, 3), rows=rows))
    if any(hop["link"] for hop in result["hops"]):
        slope, largest = result["seconds_per_byte"], result["largest_packet_bytes"]
        duration = quantity(slope * largest, "s") if slope > 0 else "too short to measure"
        sending = f"transmission of {largest} B over all links: {duration}"
        latency = f"One-way latency {quantity(result['latency_s'], 's')}"
        tables.show(f"{latency}; {sending}; {result['probes']} probes, stopped by: {result['ended_by']}")
    for line in result["assumptions"]:
        tables.show(line)
    if result["clock"] == "application":
        tables.show("Times are on the application's clock: the kernel did not timestamp every packet")
    if result["hops"] and not result["reached"]:
        tables.show(f"{result['host']} itself did not answer")
