"""`longfat path`: latency and bandwidth of each link to a host."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from longfat.api.defaults import ProbeProtocol
from longfat.cli import standard_output
from longfat.cli.arguments.options import AsJson, ReportFile


def path(
    host: Annotated[str, typer.Argument(help="Name or address of the host at the end of the path.")],
    protocol: Annotated[
        ProbeProtocol | None,
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
    from longfat.api.links import path as measure
    from longfat.cli import INTERRUPTED, SYSTEM_ERROR
    from longfat.cli.signals import interrupt_on_sigterm
    from longfat.presentation import tables
    from longfat.system.files import write_whole

    interrupt_on_sigterm()
    found = measure(
        host,
        protocol=protocol,
        max_hops=max_hops,
        sizes=sizes,
        rounds=rounds,
        budget=budget,
        time=limit,
        precision=precision,
        interval=interval,
        window=window,
        timeout=timeout,
        port=port,
        samples=samples,
        progress=True,
    )
    if found.by_default_udp is not None:
        typer.echo(f"Using UDP: {found.by_default_udp}", err=True)
    if model is not None and found.links:
        found.write_model(model)
    if out is not None and found.links:
        write_whole(out, found.page().encode())
    if as_json:
        standard_output.document(found.document)
    else:
        shown = found.table()
        tables.show(tables.table(*shown.head, right=shown.right, rows=shown.rows))
        for line in found.remarks():
            tables.show(line)
    code = INTERRUPTED if found.interrupted else 0
    if not found.links:
        typer.echo(f"longfat: {found.failure()}", err=True)
        code = code or SYSTEM_ERROR
    raise typer.Exit(code)
