"""`longfat ping`: round-trip times by packet size."""

from __future__ import annotations

from typing import Annotated

import typer

from longfat.api.defaults import ECHO_PORT, PingProtocol
from longfat.cli.arguments.options import AsJson, IPv4Only, IPv6Only, ReportFile, SamplesFile


def ping(
    host: Annotated[str, typer.Argument(help="Name or address of the host.")],
    sizes: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="Payload sizes in bytes, e.g. 8,100..1400:100.  [default: 56]"),
    ] = None,
    count: Annotated[int, typer.Option(min=1, max=1_000_000, help="Requests of each size.")] = 10,
    protocol: Annotated[
        PingProtocol,
        typer.Option(help="ICMP echo, UDP to longfat echo or a closed port, or TCP handshake."),
    ] = "icmp",
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
    from longfat.api.round_trips import ping as measure
    from longfat.cli import measuring
    from longfat.cli.signals import interrupt_on_sigterm

    measuring.check_files(samples, out)
    interrupt_on_sigterm()
    found = measure(
        host,
        sizes=sizes,
        count=count,
        protocol=protocol,
        port=port,
        interval=interval,
        flood=flood,
        rate=rate,
        window=window,
        timeout=timeout,
        dont_fragment=whole,
        spin=spin,
        ip=measuring.ip_version(four, six),
        progress=True,
    )
    measuring.present(found, samples=samples, out=out, as_json=as_json)
    if not found.answered and not found.interrupted:
        typer.echo(f"longfat: {found.failure()}", err=True)
    measuring.finish(interrupted=found.interrupted, measured=found.answered > 0)
