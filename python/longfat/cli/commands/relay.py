"""`longfat relay`: an emulated path between UDP programs, in wall time."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from longfat.api import addresses, relays
from longfat.cli import standard_output
from longfat.cli.arguments.from_function import command_of
from longfat.cli.arguments.options import AsJson, PathSettings, Seed
from longfat.cli.arguments.sections import Given, SectionOptions
from longfat.cli.arguments.subscriber import NEAR, as_subscriber

_PATH = SectionOptions("path", left_out=("reverse", "hops"), defaults={"subscriber": NEAR})


@_PATH.added_to
@command_of(relays.relay, without=["path", "listen", "wait"], to=typer.Option(metavar="HOST:PORT"), seed=Seed)
def relay(
    *,
    call: partial[relays.Relay],
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Local address for clients; port 0 for any free one.")
    ] = addresses.LISTEN,
    settings: PathSettings = None,
    as_json: AsJson = False,
    given: Given,
) -> None:
    """Relay UDP datagrams over an emulated path until Ctrl-C.

    \b
    Examples:
      longfat relay --listen 127.0.0.1:9001 --to 127.0.0.1:9000 --rate 10Mbit/s --delay 20ms --loss 2%
      longfat relay --to 127.0.0.1:9000 --preset dsl --set reverse.loss=1%
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat.cli.display.relay import late, table
    from longfat.cli.signals import interrupt_on_sigterm
    from longfat.presentation import tables

    path = as_subscriber(_PATH.read(given, settings or ()))
    interrupt_on_sigterm()
    done = call(path, listen=listen, wait=True)
    report = done.stop()
    if as_json:
        about = {"listening": done.address, "path": done.path, "to": done.to}
        standard_output.document({**about, "seed": call.keywords["seed"], **report})
        return
    tables.show(table(report))
    typer.echo(late(report))
