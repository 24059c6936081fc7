"""`longfat explain`: what limited the connections of a capture."""

from __future__ import annotations

from functools import partial
from pathlib import Path as File

import typer

from longfat.api import explanations
from longfat.cli import standard_output
from longfat.cli.arguments.from_function import command_of
from longfat.cli.arguments.options import AsJson


@command_of(explanations.explain, flow=typer.Option(min=0))
def explain(
    call: partial[explanations.Explanation],
    *,
    out: File | None = None,
    model: File | None = None,
    connections: bool = False,
    as_json: AsJson = False,
) -> None:
    """Explain a capture: what limited each connection, when, and what would help.

    \b
    Examples:
      longfat explain transfer.pcapng
      longfat explain transfer.pcapng --flow 3 --out report.html

    Args:
        out: Output file for the report (.html).
        model: Output file for the path of the connection (.toml), for run, shell and predict.
        connections: List the connections instead.
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat.cli.arguments.formats import require_suffix
    from longfat.presentation import tables

    require_suffix("--out", out, ".html")
    require_suffix("--model", model, ".toml")
    found = call()
    if model is not None:
        found.write_model(model)
    if out is not None:
        found.write(out)
    if as_json:
        standard_output.document(found.to_json())
        return
    if connections and found.one is not None:
        tables.show(found.connections())
        return
    typer.echo(found.title)
    if found.one is not None:
        typer.echo(found.verdict)
        typer.echo()
        tables.show(found.table())
    for line in found.remarks():
        tables.show(line)
