"""The list of commands. A new command is a module in `commands` and one entry here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from longfat.cli.commands import (
    chart,
    check,
    clean,
    demo,
    diagnose,
    doctor,
    echo,
    key,
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
from longfat.cli.commands import list as list_
from longfat.cli.commands import open as open_

_GROUPS: dict[str, Sequence[Callable[..., None]]] = {
    "Studies": (
        demo.demo,
        run.run,
        list_.list_,
        schema.schema,
        chart.chart,
        open_.open_,
        trace.trace,
        predict.predict,
        packetdrill.packetdrill,
    ),
    "Real paths": (
        send.send,
        recv.recv,
        key.key,
        ping.ping,
        transact.transact,
        echo.echo,
        path.path,
        diagnose.diagnose,
        mptcp.mptcp,
    ),
    "Emulation": (shell.shell, relay.relay, check.check),
    "Machine": (doctor.doctor, clean.clean),
}
_TAKES_A_COMMAND = (shell.shell,)
"""Commands whose arguments are a command line with its own options."""


class _Grouped(TyperGroup):
    """Lists the commands by group, each with the first sentence of its help."""

    def format_commands(self, _context: Any, formatter: Any) -> None:
        for group in _GROUPS:
            members = [one for one in self.commands.values() if getattr(one, "rich_help_panel", "") == group]
            with formatter.section(group):
                formatter.write_dl([(one.name, str(one.help).partition("\n\n")[0]) for one in members])


app = typer.Typer(
    name="longfat",
    cls=_Grouped,
    help="Simulate, emulate and measure transport protocols.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _version(requested: bool) -> None:
    if requested:
        from longfat import _native

        typer.echo(f"longfat {_native.version()}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Version of longfat.")
    ] = False,
) -> None:
    del version  # its callback has printed it


for _group, _commands in _GROUPS.items():
    for _command in _commands:
        app.command(
            _command.__name__.rstrip("_"),
            rich_help_panel=_group,
            context_settings={"allow_interspersed_args": _command not in _TAKES_A_COMMAND},
        )(_command)
app.add_typer(net.net, name="net", rich_help_panel="Emulation")
