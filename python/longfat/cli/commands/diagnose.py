"""`longfat diagnose`: what limits TCP on the path to a host."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from longfat.cli import standard_output
from longfat.cli.arguments.options import AsJson


def diagnose(
    host: Annotated[
        str | None, typer.Argument(help="Name or address of a host that answers echo requests.")
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Path model (.toml) or the output of --json (.json), instead of a measurement.",
        ),
    ] = None,
    size: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Size of a file.  [default: a transfer without end]"),
    ] = None,
    window: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE", help="Largest TCP window.  [default: half of this host's smaller buffer limit]"
        ),
    ] = None,
    limit_bytes: Annotated[str, typer.Option(metavar="SIZE", help="Most bytes of load.")] = "50MB",
    duration: Annotated[str, typer.Option(metavar="DURATION", help="Longest load.")] = "10s",
    time: Annotated[
        str, typer.Option(metavar="DURATION", help="Longest measurement of the path before the load.")
    ] = "60s",
    port: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=65_535,
            help="UDP port of longfat echo at the host, for the load.  [default: ICMP echo]",
            show_default=False,
        ),
    ] = None,
    repeats: Annotated[
        int,
        typer.Option(min=2, max=1000, help="Simulated trials of each controller, each on another path."),
    ] = 20,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="Also run each controller between Linux kernels on the measured path, and compare.",
        ),
    ] = False,
    study: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Output file for a study of the path, for run.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Find what limits TCP on the path to a host: bandwidth, window, loss or latency (Linux).

    \b
    Examples:
      longfat diagnose 192.0.2.7 --limit-bytes 20MB --study study.toml
      longfat diagnose --from model.toml --size 1MB --verify
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat.api.diagnoses import diagnose as find
    from longfat.cli import INTERRUPTED
    from longfat.cli.arguments.formats import require_suffix
    from longfat.cli.signals import interrupt_on_sigterm
    from longfat.presentation import tables

    require_suffix("--study", study, ".toml")
    interrupt_on_sigterm()
    found = find(
        host,
        model=model,
        size=size,
        window=window,
        limit_bytes=limit_bytes,
        duration=duration,
        time=time,
        port=port,
        seeds=repeats,
        verify=verify,
        progress=True,
    )
    if study is not None:
        found.write_study(study)
    if as_json:
        standard_output.document(found.document())
    else:
        typer.echo(found.conclusion)
        typer.echo()
        shown = found.table()
        if shown.rows:
            tables.show(tables.table(*shown.head, right=shown.right, rows=shown.rows))
        for line in found.remarks():
            tables.show(line)
    if found.interrupted:
        raise typer.Exit(INTERRUPTED)
