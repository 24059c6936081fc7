"""`longfat doctor`: requirements of emulated networks on this machine."""

from __future__ import annotations

import json
from typing import Any

import typer

from longfat.cli import standard_output
from longfat.cli.arguments.options import AsJson


def doctor(as_json: AsJson = False) -> None:
    """Check what this machine supports, and print fixes for the rest.

    \b
    Examples:
      longfat doctor
      longfat doctor --json
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat import _native
    from longfat.presentation import tables

    probes: list[dict[str, Any]] = json.loads(_native.doctor())
    if as_json:
        standard_output.document(probes)
        return
    rows = []
    for probe in probes:
        state = "ok" if probe["ok"] else "busy" if probe["busy"] else "missing"
        rows.append((state, probe["name"], probe["detail"]))
        if probe["remedy"]:
            rows.append(("", "", f"\N{RIGHTWARDS ARROW} {probe['remedy']}"))
    tables.show(tables.table(rows=rows))
    typer.echo(f"{sum(probe['ok'] for probe in probes)} of {len(probes)} ok")
    if any(probe["busy"] for probe in probes):
        typer.echo("busy: other programs load this machine; check again when it is idle")
