"""`longfat clean`: removes leftovers of emulated networks."""

from __future__ import annotations

import json
from typing import Any

import typer

from longfat.cli import standard_output
from longfat.cli.arguments.options import AsJson


def clean(as_json: AsJson = False) -> None:
    """Stop processes that outlived their emulated network.

    \b
    Examples:
      longfat clean
      sudo longfat clean
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat import _native

    # Namespaces and devices end with the process that made them; only processes of commands can stay.
    found: dict[str, list[dict[str, Any]]] = json.loads(_native.clean())
    if as_json:
        standard_output.document({"stopped": found["ended"], "left": found["left"]})
    for process in [] if as_json else found["ended"]:
        typer.echo(f"stopped process {process['process']}: {process['what']}")
    for process in found["left"]:
        typer.echo(
            f"longfat: no permission to stop process {process['process']} ({process['what']}): "
            "run longfat clean as its owner or as root",
            err=True,
        )
    if found["left"]:
        raise typer.Exit(1)
    if not found["ended"] and not as_json:
        typer.echo("No leftovers found")
