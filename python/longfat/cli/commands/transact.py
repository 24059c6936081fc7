"""`longfat transact`: request-reply transactions, timed by the application and on the wire."""

from __future__ import annotations

from typing import Annotated

import typer

from longfat.api.defaults import DEFAULT_TRANSACTIONS, ECHO_PORT, TRANSACTIONS
from longfat.cli.arguments.options import AsJson, IPv4Only, IPv6Only, ReportFile, SamplesFile


def transact(
    host: Annotated[str, typer.Argument(help="Name or address of the host that runs longfat echo.")],
    protocol: Annotated[
        str,
        typer.Option(
            metavar="LIST",
            help=f"Protocols, separated by commas: {', '.join(TRANSACTIONS)} "
            "(tcp-user and ttcp: TCP and T/TCP in user space, in UDP datagrams).",
        ),
    ] = DEFAULT_TRANSACTIONS,
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
    from longfat.api.transactions import transact as measure
    from longfat.cli import measuring
    from longfat.cli.signals import interrupt_on_sigterm

    measuring.check_files(samples, out)
    interrupt_on_sigterm()
    found = measure(
        host,
        protocol=protocol,
        sizes=sizes,
        count=count,
        port=port,
        interval=interval,
        timeout=timeout,
        ip=measuring.ip_version(four, six),
        progress=True,
    )
    measuring.present(found, samples=samples, out=out, as_json=as_json)
    measuring.finish(interrupted=found.interrupted, measured=found.done > 0)
