"""`longfat path`: latency and bandwidth of each link to a host."""

from __future__ import annotations

from functools import partial
from pathlib import Path as File

import typer

from longfat.api import links
from longfat.cli import standard_output
from longfat.cli.arguments.from_function import command_of
from longfat.cli.arguments.options import AsJson, ReportFile


@command_of(
    links.path,
    max_hops=typer.Option(min=1, max=64),
    sizes=typer.Option(metavar="LIST"),
    rounds=typer.Option(min=1, max=10_000),
    budget=typer.Option(min=10, max=1_000_000),
    precision=typer.Option(metavar="%"),
    window=typer.Option(min=1, max=16),
    port=typer.Option(min=1, max=65_000),
)
def path(
    call: partial[links.MeasuredPath],
    *,
    model: File | None = None,
    out: ReportFile = None,
    as_json: AsJson = False,
) -> None:
    """Measure latency and bandwidth of each link to a host (Linux).

    \b
    Examples:
      longfat path 127.0.0.1 --model model.toml
      longfat path 127.0.0.1 --protocol udp --time 20s --json

    Args:
        model: Output file for a path model, for run, shell and predict.
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat.cli import INTERRUPTED, SYSTEM_ERROR
    from longfat.cli.signals import interrupt_on_sigterm
    from longfat.presentation import tables
    from longfat.system.files import write_whole

    interrupt_on_sigterm()
    found = call()
    if found.by_default_udp is not None:
        typer.echo(f"Using UDP: {found.by_default_udp}", err=True)
    if model is not None and found.links:
        found.write_model(model)
    if out is not None and found.links:
        write_whole(out, found.page().encode())
    if as_json:
        standard_output.document(found.document)
    else:
        tables.show(found.table())
        for line in found.remarks():
            tables.show(line)
    code = INTERRUPTED if found.interrupted else 0
    if not found.links:
        typer.echo(f"longfat: {found.failure()}", err=True)
        code = code or SYSTEM_ERROR
    raise typer.Exit(code)
