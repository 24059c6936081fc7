"""`longfat recv`: receives files from `longfat send`."""

from __future__ import annotations

import json
from functools import partial
from typing import Annotated, Any

import typer

from longfat.api import transfers
from longfat.cli import INTERRUPTED, SYSTEM_ERROR, standard_output
from longfat.cli.arguments.from_function import command_of
from longfat.cli.arguments.protection import CODE, code_of


@command_of(
    transfers.receive,
    without=["on_event", "wait"],
    directory=typer.Option("--dir", metavar="DIR"),
    listen=typer.Option(metavar="HOST:PORT"),
    code=CODE,
    once=typer.Option(help="Exit after one sender, with code 1 if it failed."),
    max_connections=typer.Option(min=1, max=4096),
)
def recv(
    call: partial[transfers.Receiver],
    as_json: Annotated[
        bool, typer.Option("--json", help="Events as JSON objects, one per line; the last has the totals.")
    ] = False,
) -> None:
    """Receive files from longfat send until Ctrl-C; print the command that sends, with a one-time code.

    \b
    Examples:
      longfat recv --dir inbox
      longfat recv --dir inbox --listen 0.0.0.0:9000 --once
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat.cli import open_files
    from longfat.cli.signals import interrupt_on_sigterm

    interrupt_on_sigterm()
    open_files.raise_limit()
    receiver = call(code=code_of(call), on_event=_write if as_json else None, wait=True)
    if not as_json:
        typer.echo(receiver.received.summary())
    once = call.keywords["once"]
    if receiver.is_interrupted and (receiver.received.active or once):
        raise typer.Exit(INTERRUPTED)
    if once and receiver.failures:
        raise typer.Exit(SYSTEM_ERROR)


def _write(event: dict[str, Any]) -> None:
    """Prints an event on one line."""
    standard_output.write(json.dumps(event, ensure_ascii=False) + "\n")
