"""`longfat shell`: a command behind an emulated path, between real kernels."""

from __future__ import annotations

import json
import signal
import sys
from typing import Annotated, Any

import typer

from longfat.cli.settings import Given, SectionOptions

_PATH = SectionOptions("path", left_out=("reverse",))


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
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Set a key of the path (longfat list path), also a nested one, e.g. reverse.loss=0%, "
            "loss.model=every; may be repeated.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**64 - 1, help="What all randomness derives from.")] = 1,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Tell at the end in one JSON document, the last line of standard error."),
    ] = False,
) -> None:
    """Run a command, or your shell, behind a path that delays, limits and loses packets (Linux).

    The command runs at a host of its own with the system's real TCP/IP; the path is the one of a study's
    [path], on wall time. Forward is from the command to the far end, whose address is in LONGFAT_PEER and
    which answers pings. Nothing reaches the network outside. Inside another shell, the far end stands behind
    both paths. At the end standard error has what each link did; the exit code is the command's.

    \b
    Examples:
      longfat shell --rate 20Mbit/s --delay 30ms --loss 1% --queue 100pkt
      longfat shell --preset lte -- sh -c 'ping -c 10 $LONGFAT_PEER'
      longfat shell --delay 30ms --server 'iperf3 -s' -- sh -c 'sleep 1; iperf3 -c $LONGFAT_PEER'
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat import _native

    path = _PATH.read(given, settings or ())
    if not command and sys.stdin.isatty():
        typer.echo("Behind the path. The far end is at $LONGFAT_PEER; exit ends.", err=True)
    # Ctrl-C is for the command; what its links did is told all the same. A handler, unlike SIG_IGN, is not
    # inherited.
    before = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        report: dict[str, Any] = json.loads(
            _native.shell(json.dumps(path), command or [], seed=seed, server=server)
        )
    finally:
        signal.signal(signal.SIGINT, before)
    if as_json:
        typer.echo(json.dumps({"seed": seed, **report}), err=True)
    else:
        from longfat.cli.shell_report import show

        show(report)
    raise typer.Exit(report["code"])
