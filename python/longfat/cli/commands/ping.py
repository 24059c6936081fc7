"""`longfat ping`: round-trip times by packet size."""

from __future__ import annotations

from functools import partial

import typer

from longfat.api import round_trips
from longfat.cli import measuring
from longfat.cli.arguments.from_function import command_of
from longfat.cli.arguments.options import AsJson, IPv4Only, IPv6Only, ReportFile, SamplesFile


@command_of(
    round_trips.ping,
    without=["ip"],
    sizes=typer.Option(metavar="LIST"),
    count=typer.Option(min=1, max=1_000_000),
    port=typer.Option(min=1, max=65_535),
    rate=typer.Option(min=1, max=100_000),
    window=typer.Option(min=1, max=1024),
)
def ping(
    call: partial[round_trips.RoundTrips],
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
    ip = measuring.ip_version(four, six)
    found = measuring.measured(call, ip, samples=samples, out=out, as_json=as_json)
    if not found.answered and not found.interrupted:
        typer.echo(f"longfat: {found.failure()}", err=True)
    measuring.finish(interrupted=found.interrupted, measured=found.answered > 0)
