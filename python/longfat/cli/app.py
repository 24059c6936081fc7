"""The list of commands. A new one is a function in a module of its own, and one entry here."""

from __future__ import annotations

from typing import Annotated

import typer

from longfat.cli.commands import (
    chart,
    check,
    clean,
    demo,
    doctor,
    echo,
    mptcp,
    net,
    packetdrill,
    path,
    ping,
    predict,
    recv,
    relay,
    run,
    schema,
    send,
    shell,
    trace,
    transact,
)
from longfat.cli.commands import (
    list as list_,
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


app.command("demo", short_help="Answer one question in 15 seconds, and show what to try next.")(demo.demo)
app.command("run", short_help="Run studies; hold their claims against what was measured.")(run.run)
app.command("list", short_help="List what a study file may say, with units and defaults.")(list_.list_)
app.command("schema", short_help="Print the JSON Schema of a study file, for editors.")(schema.schema)
app.command("chart", short_help="Draw a run's measurements as SVG, PDF, PNG or HTML.")(chart.chart)
app.command("trace", short_help="Draw one trial: windows, round trips, queues, segments.")(trace.trace)
app.command("packetdrill", short_help="Run packetdrill scripts against this TCP.")(packetdrill.packetdrill)
app.command("recv", short_help="Receive files from longfat send.")(recv.recv)
app.command("send", short_help="Send files to longfat recv; resume what was broken off.")(send.send)
app.command("relay", short_help="Relay UDP datagrams over an emulated path.")(relay.relay)
# What follows the command's first word is the command's own.
app.command(
    "shell",
    short_help="Run a command, or your shell, behind an emulated path.",
    context_settings={"allow_interspersed_args": False},
)(shell.shell)
app.command("check", short_help="Measure a study's paths as built on this machine.")(check.check)
app.add_typer(net.net, name="net", short_help="Build a study's network between real kernels; work in it.")
app.command("mptcp", short_help="Decide which paths Linux's MPTCP connections use.")(mptcp.mptcp)
app.command("path", short_help="Find latency and bandwidth of each link to a host.")(path.path)
app.command("predict", short_help="Predict how long a transfer takes: latency or bandwidth.")(predict.predict)
app.command("ping", short_help="Measure round trips by size, with the kernel's time stamps.")(ping.ping)
app.command("echo", short_help="Answer longfat ping and longfat transact.")(echo.echo)
app.command("transact", short_help="Measure transactions: application, wire, protocol stack.")(
    transact.transact
)
app.command("doctor", short_help="Say what this machine can do for emulated networks.")(doctor.doctor)
app.command("clean", short_help="End what killed emulations have left behind.")(clean.clean)
