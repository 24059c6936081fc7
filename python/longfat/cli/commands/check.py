"""`longfat check`: a study's paths as this machine emulates them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from longfat.cli import standard_output
from longfat.cli.arguments.from_function import command
from longfat.cli.arguments.options import AsJson, OneStudy, StudySettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longfat.results.run import Cell
    from longfat.study import Study

_SECONDS = (3, 8)
"""Shortest and longest measurement of a path."""


@command(cell=typer.Option(metavar="KEY=VALUE,..."))
def check(
    study: OneStudy,
    *,
    cell: list[str] | None = None,
    protocol: str | None = None,
    settings: StudySettings = None,
    as_json: AsJson = False,
) -> None:
    """Measure the paths of a study as this machine emulates them (Linux).

    \b
    Examples:
      longfat check congestion/delay
      longfat check arq/loss --cell path.loss=2% --json

    Args:
        cell: Point of the sweep; by default all.
        protocol: Name of the protocol in the study; by default all.
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat import _native
    from longfat.cli.arguments.cells import load
    from longfat.worlds.capacity import machine_capacity

    paths = _paths(load(study, settings), protocol, cell or ())
    low, high = (seconds * len(paths) for seconds in _SECONDS)
    typer.echo(f"{len(paths)} {'path' if len(paths) == 1 else 'paths'}, {low} to {high} s in total", err=True)
    reports = []
    for path in paths:
        report = json.loads(_native.check_path(json.dumps(path.spec), path.number))
        place = {"cell": path.cell, "from": path.ends[0], "to": path.ends[1], "links": list(path.links)}
        reports.append({**place, **report})
        if not as_json:
            _print(reports[-1])
    holds = all(_holds(report) for report in reports)
    capacity = machine_capacity()
    if as_json:
        machine = None if capacity is None else vars(capacity)
        standard_output.document({"holds": holds, "machine": machine, "paths": reports})
    elif capacity is not None:
        busy = "; measured while it was busy" if capacity.is_busy else ""
        typer.echo(
            f"Capacity of this machine: {capacity.packets_per_second:,.0f} packets/s; delay error at light "
            f"load {capacity.late_p99_s * 1e6:,.0f} µs (99th percentile){busy}"
        )
    for report in reports:
        for reason in report["refusals"]:
            where = report["cell"] or f"{report['from']} to {report['to']}"
            typer.echo(f"longfat: {where}: {reason}", err=True)
    raise typer.Exit(0 if holds else 1)


@dataclass(frozen=True)
class _Path:
    """A path, and the first cell with it."""

    cell: str
    spec: dict[str, Any]
    number: int
    ends: tuple[str, str]
    links: tuple[str, ...]


def _paths(study: Study, protocol: str | None, conditions: Sequence[str]) -> list[_Path]:
    """Returns the different paths of the chosen cells."""
    from longfat import _native
    from longfat.presentation import formatting

    found: dict[str, _Path] = {}
    for cell in _cells(study, protocol, conditions):
        spec = {**cell.spec, "seed": study.seed, "trial": 0}
        for number, path in enumerate(json.loads(_native.checked_paths(json.dumps(spec)))):
            ends, links = (path["from"], path["to"]), tuple(path["links"])
            place = _Path(formatting.place(cell.params), spec, number, ends, links)
            found.setdefault(path["asked"], place)
    return list(found.values())


def _cells(study: Study, protocol: str | None, conditions: Sequence[str]) -> list[Cell]:
    from longfat.cli.arguments.cells import find_cell
    from longfat.study import cells

    if conditions:
        return [find_cell(study, protocol or study.protocols[0].name, conditions)]
    if protocol is not None:
        find_cell(study, protocol, ())  # raises for an unknown protocol
    return [one for one in cells(study) if one.world == study.worlds[0] and protocol in (None, one.protocol)]


def _holds(report: dict[str, Any]) -> bool:
    return not report["refusals"] and all(figure["holds"] is not False for figure in report["figures"])


def _print(report: dict[str, Any]) -> None:
    from longfat.presentation import tables

    rows = []
    for figure in report["figures"]:
        requested = "unlimited" if figure["asked"] is None else _value(figure["asked"], figure["unit"])
        verdict = {True: "holds", False: "differs", None: ""}[figure["holds"]]
        measured = "" if figure["measured"] is None else _value(figure["measured"], figure["unit"])
        rows.append((figure["name"], requested, measured, verdict, figure["detail"]))
    if report["cell"]:
        tables.show(report["cell"])
    where = f"{report['from']} to {report['to']}"
    tables.show(tables.table(where, "study", "measured", "", "", rows=rows))
    for reason in report["refusals"]:
        tables.show(f"not emulated: {reason}")
    typer.echo()


def _value(value: float, unit: str) -> str:
    from longfat.presentation.formatting import quantity

    if unit == "share":
        return f"{value * 100:.3g} %"
    return f"{value:,.0f} packets" if unit == "packets" else quantity(value, unit)
