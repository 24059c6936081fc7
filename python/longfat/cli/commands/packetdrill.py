"""`longfat packetdrill`: conformance scripts against longfat's TCP, in virtual time."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from longfat.cli.arguments.options import AsJson

_OUTCOMES = ("pass", "fail", "unsupported", "invalid")
_RESULTS = {"pass": "passed", "fail": "failed", "unsupported": "unsupported", "invalid": "invalid"}


def packetdrill(
    scripts: Annotated[
        list[Path],
        typer.Argument(help="packetdrill scripts, or folders with *.pkt files."),
    ],
    summary: Annotated[
        bool, typer.Option("--summary", help="Counts for each folder and in total only.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run packetdrill scripts against longfat's TCP.

    \b
    Examples:
      longfat packetdrill tests/packetdrill --summary
      longfat packetdrill tests/packetdrill/paws.pkt
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat import _native
    from longfat.cli import describe
    from longfat.snippets import Snippets

    try:
        for path in scripts:
            path.stat()
        paths = [str(path) for path in scripts]
        reports: list[dict[str, Any]] = json.loads(_native.packetdrill(paths, Snippets))
    except OSError as error:
        typer.echo(f"longfat: {f'cannot read {describe(error)}' if error.filename else error}", err=True)
        raise typer.Exit(2) from None
    if not reports:
        typer.echo("longfat: no *.pkt files found", err=True)
        raise typer.Exit(2)
    if as_json:
        typer.echo(json.dumps(reports, indent=2, ensure_ascii=False))
    else:
        for line in _directories(reports) if summary else map(_line, reports):
            typer.echo(line)
        typer.echo(_total(Counter(report["outcome"] for report in reports)))
    if any(report["outcome"] in ("fail", "invalid") for report in reports):
        raise typer.Exit(1)


def _line(report: dict[str, Any]) -> str:
    path = report["path"]
    if report["outcome"] == "pass":
        return f"pass {path}"
    place = f"{path}:{report['line']}"
    if report["outcome"] == "fail":
        return f"FAIL {place} expected {report['expected']}, seen {report['seen']} [{report['at_s']:.6f}s]"
    outcome = "unsupported" if report["outcome"] == "unsupported" else "INVALID"
    return f"{outcome} {place} {report['what']}"


def _directories(reports: list[dict[str, Any]]) -> list[str]:
    counts: dict[str, Counter[str]] = {}
    for report in reports:
        directory = str(Path(report["path"]).parent)
        counts.setdefault(directory, Counter())[report["outcome"]] += 1
    return [f"{directory}: {_total(count)}" for directory, count in counts.items()]


def _total(counts: Counter[str]) -> str:
    named = [f"{counts[outcome]} {_RESULTS[outcome]}" for outcome in _OUTCOMES if counts[outcome]]
    return f"{', '.join(named)} of {counts.total()}"
