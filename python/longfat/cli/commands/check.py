"""`longfat check`: whether this machine holds the paths of a study."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longfat.cli.arguments.options import OneStudy, StudySettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longfat.results import Cell
    from longfat.study import Study

_SECONDS = (3, 8)
"""The least and the most that a path takes."""


def check(
    study: OneStudy,
    cell: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE,...", help="One point of the sweep; all of them by default."),
    ] = None,
    protocol: Annotated[
        str | None, typer.Option(help="Name of the protocol; all of them by default.")
    ] = None,
    settings: StudySettings = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Build each path of a study between real kernels and measure it beside what was asked for (Linux).

    Each kind of path is built by itself and takes 3 to 8 s: delay and jitter of datagrams far apart, losses
    among many, rate and queue under more than the path carries. The exit code is 1 where the machine does not
    hold a path, or a path is not as asked.
    """
    from longfat import _native
    from longfat.runner.capacity import machine_capacity
    from longfat.study import Overrides, load_study, read_setting

    loaded = load_study(study, Overrides(tuple(map(read_setting, settings or ())), (), None, None))
    paths = _paths(loaded, protocol, cell or ())
    low, high = (seconds * len(paths) for seconds in _SECONDS)
    kinds = "1 kind of path" if len(paths) == 1 else f"{len(paths)} kinds of paths"
    typer.echo(f"{kinds}, {low} to {high} s in all", err=True)
    reports = []
    for path in paths:
        report = json.loads(_native.check_path(json.dumps(path.spec), path.number))
        reports.append({**path.told(), **report})
        if not as_json:
            _print(reports[-1])
    holds = all(_holds(report) for report in reports)
    capacity = machine_capacity()
    if as_json:
        machine = None if capacity is None else vars(capacity)
        typer.echo(json.dumps({"holds": holds, "machine": machine, "paths": reports}, indent=2))
    elif capacity is not None:
        busy = ", while it is busy" if capacity.is_busy else ""
        typer.echo(
            f"This machine emulates {capacity.packets_per_second:,.0f} packets/s, at a light load "
            f"{capacity.late_p99_s * 1e6:,.0f} µs late (99th percentile){busy}"
        )
    for report in reports:
        for reason in report["refusals"]:
            typer.echo(
                f"longfat: {report['cell'] or report['from'] + ' to ' + report['to']}: {reason}", err=True
            )
    raise typer.Exit(0 if holds else 1)


@dataclass(frozen=True)
class _Path:
    """A kind of path, and where it was first met."""

    cell: str
    spec: dict[str, Any]
    number: int
    ends: tuple[str, str]
    links: tuple[str, ...]

    def told(self) -> dict[str, Any]:
        return {"cell": self.cell, "from": self.ends[0], "to": self.ends[1], "links": list(self.links)}


def _paths(study: Study, protocol: str | None, conditions: Sequence[str]) -> list[_Path]:
    """The kinds of paths of the cells that are asked for."""
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
        find_cell(study, protocol, ())  # says which protocols there are
    return [one for one in cells(study) if one.world == study.worlds[0] and protocol in (None, one.protocol)]


def _holds(report: dict[str, Any]) -> bool:
    return not report["refusals"] and all(figure["holds"] is not False for figure in report["figures"])


def _print(report: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    where = f"{report['from']} to {report['to']}"
    table = Table(where, "asked", "as built", "", "", box=None, pad_edge=False, header_style="dim")
    for figure in report["figures"]:
        asked = "unlimited" if figure["asked"] is None else _value(figure["asked"], figure["unit"])
        verdict = {True: "holds", False: "differs", None: ""}[figure["holds"]]
        seen = figure["measured"]
        table.add_row(
            figure["name"],
            asked,
            "" if seen is None else _value(seen, figure["unit"]),
            verdict,
            figure["detail"],
        )
    console = Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else 140)
    if report["cell"]:
        console.print(report["cell"])
    console.print(table)
    for reason in report["refusals"]:
        console.print(f"not held: {reason}")
    console.print()


def _value(value: float, unit: str) -> str:
    from longfat.presentation.formatting import quantity

    if unit == "share":
        return f"{value * 100:.3g} %"
    return f"{value:,.0f} packets" if unit == "packets" else quantity(value, unit)
