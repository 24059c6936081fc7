"""`longfat reproduce`: the run of a bundle, once more."""

from __future__ import annotations

from functools import partial

import typer

from longfat.api import bundles
from longfat.cli.arguments.from_function import command_of
from longfat.cli.arguments.options import AsJson


@command_of(bundles.reproduce)
def reproduce(*, call: partial[bundles.Reproduced], as_json: AsJson = False) -> None:
    """Repeat the run of a bundle, and compare all records bit by bit.

    Exits with 1 if a record differs.

    \b
    Examples:
      longfat reproduce loss.zip
      longfat reproduce controllers.zip --allow-code --out repeated
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat.api.runs import InterruptedRun
    from longfat.cli import INTERRUPTED, standard_output
    from longfat.cli.signals import interrupt_on_sigterm

    interrupt_on_sigterm()
    try:
        found = call()
    except InterruptedRun:
        typer.echo("longfat: interrupted; the same command resumes", err=True)
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        standard_output.document(found.document())
    else:
        typer.echo(str(found.comparison))
        for world in found.left_out:
            typer.echo(f"{world}: not compared: it runs on wall time", err=True)
        typer.echo(f"Report: {found.folder / 'report.html'}")
    if not found.identical:
        raise typer.Exit(1)
