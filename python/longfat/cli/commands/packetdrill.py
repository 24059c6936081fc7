"""`longfat packetdrill`: conformance scripts against longfat's TCP on virtual time."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

_OUTCOMES = ("pass", "fail", "unsupported", "invalid")
_LABELS = {"pass": "passed", "fail": "failed", "unsupported": "unsupported", "invalid": "invalid"}


def packetdrill(
    scripts: Annotated[
        list[Path],
        typer.Argument(help="Scripts, or directories with *.pkt files."),
    ],
    summary: Annotated[
        bool,
        typer.Option("--summary", help="Print only the number of passed scripts per directory and in total."),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON list with one object per script.")
    ] = False,
) -> None:
    """Run packetdrill scripts against longfat's TCP on virtual time and report the first mismatch of each.

    The exit code is 1 if a script failed or is invalid. A script that needs an unsupported feature is listed
    with the feature; docs/packetdrill.md describes the language.
    """
    from longfat import _native
    from longfat.cli import describe
    from longfat.snippets import Snippets

    try:
        for path in scripts:
            path.stat()
        paths = [str(path) for path in scripts]
        reports: list[dict[str, Any]] = json.loads(_native.packetdrill(paths, Snippets))
    except OSError as error:
        message = f"cannot read {describe(error)}" if error.filename else error
        typer.echo(f"longfat: {message}", err=True)
        raise typer.Exit(2) from None
    if not reports:
        typer.echo("longfat: no *.pkt files in the given directories", err=True)
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
    label = "unsupported" if report["outcome"] == "unsupported" else "INVALID"
    return f"{label} {place} {report['what']}"


def _directories(reports: list[dict[str, Any]]) -> list[str]:
    counts: dict[str, Counter[str]] = {}
    for report in reports:
        directory = str(Path(report["path"]).parent)
        counts.setdefault(directory, Counter())[report["outcome"]] += 1
    return [f"{directory}: {_total(count)}" for directory, count in counts.items()]


def _total(counts: Counter[str]) -> str:
    named = [f"{counts[outcome]} {_LABELS[outcome]}" for outcome in _OUTCOMES if counts[outcome]]
    return f"{', '.join(named)} of {counts.total()}"
