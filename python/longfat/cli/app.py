"""The list of commands. A new command is a module in `commands` and one entry here.

The sentences are those of the commands' help, so that `longfat --help` imports no command.
"""

from __future__ import annotations

from collections import UserDict
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

_GROUPS = {
    "Studies": {
        "demo": "Answer one question by simulation, then move a real file.",
        "run": "Run studies and check their claims; resume an interrupted run.",
        "grade": "Grade a folder of submissions, studies or controllers, by the claims of a lab study.",
        "handout": "Print a study for students: without claims and readings, each claim as a question.",
        "list": "List protocols, keys, metrics and studies, or the cells of a study.",
        "schema": "Print the JSON Schema of study files, for editors.",
        "chart": "Draw a metric of a run with its confidence intervals.",
        "compare": "Report which cells differ between two runs, corrected for the number of comparisons.",
        "bundle": "Write a run and all its files into one archive that others can repeat.",
        "reproduce": "Repeat the run of a bundle, and compare all records bit by bit.",
        "open": "Show an index of all runs, or the report of one run, in a browser.",
        "trace": "Draw one trial: windows, RTTs, queues, segments or packets.",
        "explore": "Watch and change simulations, or read a qlog file, in a local web page.",
        "predict": "Predict the duration of a transfer from latency and bandwidth.",
        "packetdrill": "Run packetdrill scripts against longfat's TCP.",
    },
    "Real paths": {
        "send": "Send files, encrypted, to longfat recv; resume interrupted transfers.",
        "recv": "Receive files from longfat send until Ctrl-C; "
        "print the command that sends, with a one-time code.",
        "key": "Print this user's public key for send and recv --keys; create it if there is none.",
        "ping": "Measure round-trip times by packet size (Linux).",
        "transact": "Measure request-reply transactions with longfat echo (Linux).",
        "echo": "Answer longfat ping and longfat transact until Ctrl-C (Linux).",
        "path": "Measure latency and bandwidth of each link to a host (Linux).",
        "diagnose": "Find what limits TCP on the path to a host: bandwidth, window, loss or latency (Linux).",
        "explain": "Explain a capture: what limited each connection, when, and what would help.",
        "mptcp": "Manage the paths of MPTCP connections until Ctrl-C (Linux, root).",
    },
    "Emulation": {
        "shell": "Run a command, or your shell, behind an emulated path (Linux).",
        "relay": "Relay UDP datagrams or TCP connections over an emulated path until Ctrl-C.",
        "check": "Measure the paths of a study as this machine emulates them (Linux).",
        "net": "Emulate the network of a study, with a prompt for commands at its hosts (Linux).",
    },
    "Machine": {
        "doctor": "Check what this machine supports, and print fixes for the rest.",
        "clean": "Stop processes that outlived their emulated network.",
    },
}
_MODULES = {name: f"longfat.cli.commands.{name}" for names in _GROUPS.values() for name in names}
_TAKES_A_COMMAND = ("shell",)
"""Commands whose arguments are a command line with its own options."""


class _Commands(UserDict[str, Any]):
    """The commands by name. Looking one up imports its module."""

    def __getitem__(self, name: str) -> Any:
        if self.data[name] is None:
            self.data[name] = _loaded(name)
        return self.data[name]


class _Grouped(TyperGroup):
    """Lists the commands by group, each with the first sentence of its help."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Commands(dict.fromkeys(_MODULES))

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise typer.Abort from None

    def format_commands(self, _context: Any, formatter: Any) -> None:
        for group, sentences in _GROUPS.items():
            with formatter.section(group):
                formatter.write_dl(list(sentences.items()))


def _loaded(name: str) -> Any:
    """Returns a command. Its module has a function, or an app of several commands, of its name."""
    from longfat.cli.arguments.mistakes import NamingCommand

    module = import_module(_MODULES[name])
    command: Any = getattr(module, name, None) or getattr(module, f"{name}_")
    if isinstance(command, typer.Typer):
        made: Any = typer.main.get_group(command)
        made.name = name
    else:
        alone = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)
        settings = {"allow_interspersed_args": name not in _TAKES_A_COMMAND}
        alone.command(name, cls=NamingCommand, context_settings=settings)(command)
        made = typer.main.get_command(alone)
    made.rich_help_panel = next(group for group, names in _GROUPS.items() if name in names)
    return made


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
