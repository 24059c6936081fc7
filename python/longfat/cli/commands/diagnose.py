"""`longfat diagnose`: what limits TCP on the path to a host."""

from __future__ import annotations

from functools import partial
from pathlib import Path as File

import typer

from longfat.api import diagnoses
from longfat.cli import standard_output
from longfat.cli.arguments.from_function import command_of
from longfat.cli.arguments.options import AsJson


@command_of(
    diagnoses.diagnose,
    model=typer.Option("--from"),
    port=typer.Option(min=1, max=65_535),
    seeds=typer.Option("--repeats", min=2, max=1000),
)
def diagnose(
    call: partial[diagnoses.Diagnosis],
    *,
    study: File | None = None,
    as_json: AsJson = False,
) -> None:
    """Find what limits TCP on the path to a host: bandwidth, window, loss or latency (Linux).

    \b
    Examples:
      longfat diagnose 192.0.2.7 --limit-bytes 20MB --study study.toml
      longfat diagnose --from model.toml --size 1MB --verify

    Args:
        study: Output file for a study of the path, for run.
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat.cli import INTERRUPTED
    from longfat.cli.arguments.formats import require_suffix
    from longfat.cli.signals import interrupt_on_sigterm
    from longfat.presentation import tables

    require_suffix("--study", study, ".toml")
    interrupt_on_sigterm()
    found = call()
    if study is not None:
        found.write_study(study)
    if as_json:
        standard_output.document(found.document())
    else:
        typer.echo(found.conclusion)
        typer.echo()
        if (shown := found.table()).rows:
            tables.show(shown)
        for line in found.remarks():
            tables.show(line)
    if found.interrupted:
        raise typer.Exit(INTERRUPTED)
