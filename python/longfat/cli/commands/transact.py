"""`longfat transact`: request-reply transactions, timed by the application and on the wire."""

from __future__ import annotations

from functools import partial

import typer

from longfat.api import transactions
from longfat.cli import measuring
from longfat.cli.arguments.from_function import command_of
from longfat.cli.arguments.options import AsJson, IPv4Only, IPv6Only, ReportFile, SamplesFile


@command_of(
    transactions.transact,
    without=["ip"],
    protocol=typer.Option(metavar="LIST"),
    sizes=typer.Option(metavar="LIST"),
    count=typer.Option(min=1, max=100_000),
    port=typer.Option(min=1, max=65_535),
)
def transact(
    call: partial[transactions.MeasuredTransactions],
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
    ip = measuring.ip_version(four, six)
    found = measuring.measured(call, ip, samples=samples, out=out, as_json=as_json)
    measuring.finish(interrupted=found.interrupted, measured=found.done > 0)
