"""`longfat doctor`: requirements of emulated networks on this machine."""

from __future__ import annotations

import json
from typing import Any

import typer

from longfat.cli import standard_output
from longfat.cli.arguments.from_function import command
from longfat.cli.arguments.options import AsJson


@command(require=typer.Option(metavar="NAMES"))
def doctor(
    *,
    require: str | None = None,
    as_json: AsJson = False,
) -> None:
    """Check what this machine supports, and print fixes for the rest.

    \b
    Examples:
      longfat doctor
      longfat doctor --require netns,tun

    Args:
        require: Check these only, e.g. netns,tun, and exit with 1 if one is missing; all for all checks.
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat import _native
    from longfat.cli.signals import stopped_at_once

    names = None if require is None else [name.strip() for name in require.split(",")]
    with stopped_at_once():
        try:
            probes: list[dict[str, Any]] = json.loads(_native.doctor(None if names == ["all"] else names))
        except ValueError as error:
            raise ValueError(f"--require: {error}, all") from None
    lacking = [probe for probe in probes if not probe["ok"]]
    if as_json:
        standard_output.document(probes)
    elif require is None:
        _show(probes)
    elif not lacking:
        typer.echo(f"ok: {', '.join(probe['key'] for probe in probes)}")
    if require is not None and lacking:
        typer.echo(f"longfat: doctor: {'; '.join(map(_line, lacking))}", err=True)
        raise typer.Exit(1)


def _line(probe: dict[str, Any]) -> str:
    state = "not met, because this machine is busy" if probe["busy"] else "missing"
    # Some details end with the remedy.
    remedy = "" if probe["remedy"] in probe["detail"] else f": {probe['remedy']}"
    return f"{probe['key']} {state}: {probe['detail']}{remedy}"


def _show(probes: list[dict[str, Any]]) -> None:
    from longfat.presentation import tables

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
