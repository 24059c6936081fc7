"""`longfat packetdrill`: conformance scripts against longfat's TCP, in virtual time."""

from __future__ import annotations

import os
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
    table: bool = False,
    passed: bool = False,
    as_json: AsJson = False,
) -> None:
    """Run packetdrill scripts against longfat's TCP.

    \b
    Examples:
      longfat packetdrill tests/packetdrill --summary
      longfat packetdrill tests/packetdrill --table --passed

    Args:
        scripts: packetdrill scripts, or folders with *.pkt files.
        summary: Counts for each folder and in total only.
        table: Markdown table of the scripts that do not pass, with the reason of each, and counts.
        passed: With --table, also the scripts that pass.
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat.api.scripts import ScriptResults, line_of, results, total
    from longfat.cli import describe

    if passed and not table:
        raise ValueError("--passed needs --table")
    if table and as_json:
        raise ValueError("--table and --json exclude each other")
    reports = []
    interrupted = False
    try:
        for report in results(scripts):
            reports.append(report)
            if not (as_json or summary or table):
                typer.echo(line_of(report))
    except OSError as error:
        typer.echo(f"longfat: {f'cannot read {describe(error)}' if error.filename else error}", err=True)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        interrupted = True
    found = ScriptResults(tuple(reports))
    if as_json:
        standard_output.document(found.reports)
    else:
        if table:
            typer.echo(found.markdown(_folder(scripts), passed=passed) + "\n")
        for line in _directories(found.reports, total) if summary else ():
            typer.echo(line)
        typer.echo(found.title)
    if interrupted:
        typer.echo("longfat: interrupted; the scripts that follow did not run", err=True)
        raise typer.Exit(130)
    if not found.is_passed:
        raise typer.Exit(1)


def _folder(scripts: Sequence[File]) -> File:
    """Returns the folder that all scripts are in."""
    folders = [(path if path.is_dir() else path.parent).absolute() for path in scripts]
    return folders[0] if len(folders) == 1 else File(os.path.commonpath(folders))


def _directories(reports: Sequence[dict[str, Any]], total: Callable[[Counter[str]], str]) -> list[str]:
    counts: dict[str, Counter[str]] = {}
    for report in reports:
        directory = str(File(report["path"]).parent)
        counts.setdefault(directory, Counter())[report["outcome"]] += 1
    return [f"{directory}: {total(count)}" for directory, count in counts.items()]
