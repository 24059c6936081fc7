"""`longfat handout`: a study without its answers."""

from __future__ import annotations

from pathlib import Path

import typer

from longfat.cli.arguments.from_function import command
from longfat.cli.arguments.options import OneStudy, StudySettings


@command()
def handout(study: OneStudy, *, out: Path | None = None, settings: StudySettings = None) -> None:
    """Print a study for students: without claims and readings, each claim as a question.

    \b
    Examples:
      longfat handout congestion/loss
      longfat handout congestion/loss --out handout.toml

    Args:
        out: Output file; by default standard output.
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat.cli.arguments.cells import load
    from longfat.study.handout import handout_of
    from longfat.system.files import write_whole

    text = handout_of(load(study, settings))
    if out is None:
        typer.echo(text, nl=False)
    else:
        write_whole(out, text.encode())
        typer.echo(f"Handout: {out}", err=True)
