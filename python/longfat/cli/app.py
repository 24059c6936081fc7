"""The list of commands. A new one is a function in a module of its own, and one line here."""

from __future__ import annotations

from typing import Annotated

import typer

from longfat.cli import (
    chart,
    check,
    clean,
    doctor,
    listing,
    mptcp,
    net,
    packetdrill,
    recv,
    relay,
    run,
    schema,
    send,
    shell,
    trace,
)

app = typer.Typer(
    name="longfat",
    help="A laboratory for transport protocols: one study file in, one answer with error bars out.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        from longfat import _native

        typer.echo(f"longfat {_native.version()}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    del version  # its callback has done what there is to do


app.command("run")(run.run)
app.command("list")(listing.listing)
app.command("schema")(schema.schema)
app.command("chart")(chart.chart)
app.command("trace")(trace.trace)
app.command("packetdrill")(packetdrill.packetdrill)
app.command("recv")(recv.recv)
app.command("send")(send.send)
app.command("relay")(relay.relay)
# What follows the command's first word is the command's own.
app.command("shell", context_settings={"allow_interspersed_args": False})(shell.shell)
app.command("check")(check.check)
app.add_typer(net.net, name="net")
app.command("mptcp")(mptcp.mptcp)
app.command("doctor")(doctor.doctor)
app.command("clean")(clean.clean)
