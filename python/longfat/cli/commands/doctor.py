"""`longfat doctor`: what this machine can do for emulated networks."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer

_WIDTH_ELSEWHERE = 140


def _state(probe: dict[str, Any]) -> str:
    return "ok" if probe["ok"] else "busy" if probe["busy"] else "missing"


def doctor(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON list with one object a probe.")
    ] = False,
) -> None:
    """Say what this machine can do for emulated networks, and what to do about what is missing.

    Nothing is changed, and no packet leaves the machine. It takes a second or two.
    """
    from longfat import _native

    probes: list[dict[str, Any]] = json.loads(_native.doctor())
    if as_json:
        typer.echo(json.dumps(probes, indent=2, ensure_ascii=False))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("", "", "", box=None, pad_edge=False, show_header=False)
    for probe in probes:
        table.add_row(_state(probe), probe["name"], probe["detail"])
        if probe["remedy"]:
            table.add_row("", "", f"\N{RIGHTWARDS ARROW} {probe['remedy']}")
    width = None if sys.stdout.isatty() else _WIDTH_ELSEWHERE
    Console(highlight=False, markup=False, width=width).print(table)
    typer.echo(f"{sum(probe['ok'] for probe in probes)} of {len(probes)} ok")
    if any(probe["busy"] for probe in probes):
        typer.echo("busy: the machine has other work now; look again when it has not")
