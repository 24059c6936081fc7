"""`longfat shell`: a command behind an emulated path, between real kernels."""

from __future__ import annotations

import enum
import json
import signal
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longfat.cli.arguments.options import PathSettings, Seed
from longfat.cli.arguments.sections import Given, SectionOptions
from longfat.cli.arguments.subscriber import as_subscriber

if TYPE_CHECKING:
    from collections.abc import Sequence

_PATH = SectionOptions("path", left_out=("reverse", "hops"))
_TCP = SectionOptions(
    "protocol", whole=lambda keys: json.dumps({"kind": "tcp", **json.loads(keys)}), setter="--tcp"
)


class Place(enum.StrEnum):
    """At which end of the path."""

    HERE = "here"
    THERE = "there"
    BOTH = "both"


@_PATH.added_to
def shell(
    given: Given,
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- COMMAND", help="What to run, with its arguments; your shell by default."),
    ] = None,
    server: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="A line for sh at the far end of the path, started first and ended with the command, "
            "e.g. 'iperf3 -s'.",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--path",
            metavar="FILE",
            help="A path model: a TOML file with a table [path], maybe of several hops, whose keys --set "
            "changes, e.g. hops.2.loss=1%.",
        ),
    ] = None,
    settings: PathSettings = None,
    stack: Annotated[
        Place | None,
        typer.Option(
            help="Carry TCP connections over the path by longfat's own TCP instead of the kernel's: at the "
            "command's end, at the far end, or at both."
        ),
    ] = None,
    tcp: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="Set a key of longfat's TCP (longfat list protocols), e.g. congestion=vegas, "
            "receive_buffer=16KiB; may be repeated.",
        ),
    ] = None,
    seed: Seed = 1,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Tell at the end in one JSON document, the last line of standard error."),
    ] = False,
) -> None:
    """Run a command, or your shell, behind a path that delays, limits and loses packets (Linux).

    The command runs at a host of its own with the system's real TCP/IP; the path is the one of a study's
    [path], on wall time. Forward is from the command to the far end, whose address is in LONGFAT_PEER and
    which answers pings. The command is at the subscriber's end of a preset: with dsl it uploads at 1 Mbit/s
    and downloads at 16 (--subscriber far exchanges the ends). Nothing reaches the network outside. Inside
    another shell, the far end stands behind both paths. With --stack the packets on the path are those of
    longfat's TCP, which meets the kernel's at the other end or itself at both; programs use sockets as ever.
    At the end standard error has what each link did; the exit code is the command's, 127 where there is no
    such command and 126 where it may not be executed.

    \b
    Examples:
      longfat shell --rate 20Mbit/s --delay 30ms --loss 1% --queue 100pkt
      longfat shell --path measured.toml -- sh -c 'traceroute $LONGFAT_PEER'
      longfat shell --preset lte -- sh -c 'ping -c 10 $LONGFAT_PEER'
      longfat shell --delay 30ms --server 'iperf3 -s' -- sh -c 'sleep 1; iperf3 -c $LONGFAT_PEER'
      longfat shell --loss 1% --stack here --tcp congestion=bbr-tolerant -- sh -c 'curl http://$LONGFAT_PEER:8000/'
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat import _native
    from longfat.cli.signals import end_like_ctrl_c
    from longfat.testbed import children

    path = as_subscriber(_PATH.read(given, settings or (), _model(model)))
    own = _own_tcp(stack, tcp or ())
    if not command and sys.stdin.isatty():
        typer.echo("Behind the path. The far end is at $LONGFAT_PEER; exit ends.", err=True)
    # Ctrl-C is for the command; what its links did is told all the same. A handler, unlike SIG_IGN, is not
    # inherited.
    before = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    end_like_ctrl_c()  # what it raises ends the command: the native part takes it
    try:
        report: dict[str, Any] = json.loads(
            _native.shell(json.dumps(path), command or [], seed=seed, server=server, tcp=own)
        )
    except OSError as error:
        if error.errno is None or not error.filename:
            raise
        typer.echo(f"longfat: {children.why(error)}", err=True)
        raise typer.Exit(children.code_of(error)) from None
    finally:
        signal.signal(signal.SIGINT, before)
    if as_json:
        typer.echo(json.dumps({"seed": seed, **report}), err=True)
    else:
        from longfat.cli.display.shell import show

        show(report)
    raise typer.Exit(report["code"])


def _model(file: str | None) -> dict[str, Any] | None:
    """The path of a model's file; ValueError says what is wrong with it."""
    if file is None:
        return None
    from longfat.study import path_model

    try:
        return path_model.read(file).path
    except ValueError as error:
        raise ValueError(f"--path: {error}") from None


def _own_tcp(stack: Place | None, settings: Sequence[str]) -> tuple[str | None, str | None]:
    """Longfat's TCP at either end, as JSON; ValueError says what is wrong with its keys."""
    if stack is None:
        if settings:
            raise ValueError("--tcp: it needs --stack here, there or both")
        return None, None
    found = _TCP.read({}, settings)
    for key in ("kind", "stack"):
        if key in found:
            raise ValueError(f"--tcp: {key}: it is always longfat's TCP")
    for key in ("fast_open", "ttcp"):
        if found.get(key):
            raise ValueError(f"--tcp: {key}: a program connects before it writes: there is no data yet")
    config = json.dumps({"kind": "tcp", **found})
    return (config if stack != Place.THERE else None, config if stack != Place.HERE else None)
