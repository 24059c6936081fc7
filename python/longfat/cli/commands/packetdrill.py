"""`longfat packetdrill`: conformance scripts against longfat's TCP, in virtual time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path as File
from typing import Any

import typer

from longfat.cli import standard_output
from longfat.cli.arguments.from_function import command
from longfat.cli.arguments.options import AsJson


@command()
def packetdrill(
    scripts: list[File],
    *,
    summary: bool = False,
    as_json: AsJson = False,
) -> None:
    """Run packetdrill scripts against longfat's TCP.

    \b
    Examples:
      longfat packetdrill tests/packetdrill --summary
      longfat packetdrill tests/packetdrill/paws.pkt

    Args:
        scripts: packetdrill scripts, or folders with *.pkt files.
        summary: Counts for each folder and in total only.
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat.api.scripts import line_of, total
    from longfat.api.scripts import packetdrill as run
    from longfat.cli import describe

    try:
        found = run(scripts)
    except OSError as error:
        typer.echo(f"longfat: {f'cannot read {describe(error)}' if error.filename else error}", err=True)
        raise typer.Exit(2) from None
    if as_json:
        standard_output.document(found.reports)
    else:
        for line in _directories(found.reports, total) if summary else map(line_of, found.reports):
            typer.echo(line)
        typer.echo(found.title)
    if not found.is_passed:
        raise typer.Exit(1)


def _directories(reports: Sequence[dict[str, Any]], total: Callable[[Counter[str]], str]) -> list[str]:
    counts: dict[str, Counter[str]] = {}
    for report in reports:
        directory = str(File(report["path"]).parent)
        counts.setdefault(directory, Counter())[report["outcome"]] += 1
    return [f"{directory}: {total(count)}" for directory, count in counts.items()]
