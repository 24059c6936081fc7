"""`longfat trace`: one trial as charts over time, or as a ladder of its packets."""

from __future__ import annotations

from functools import partial
from pathlib import Path as File
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import typer

from longfat.api import traces
from longfat.cli import standard_output
from longfat.cli.arguments.formats import format_of, require_folder
from longfat.cli.arguments.from_function import command_of
from longfat.cli.arguments.options import OneStudy, Point, StudySeed, StudySettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longfat.results.run import Cell
    from longfat.study import Study

Format = Literal["svg", "html", "png", "pdf", "text", "parquet", "csv", "json", "qlog"]
"""Formats of drawings, and of the data."""
Chart = Literal["ladder", "window", "rtt", "queue", "goodput", "controller", "sequence", "all", "queue-cdf"]
"""Drawings of a trial."""
_OF_A_TRIAL = ("path", "size", "topology", "traffic", "workload", "duration")
"""Parameters that a study replaces."""


@command_of(
    traces.trace,
    without=[
        "path",
        "size",
        "topology",
        "traffic",
        "workload",
        "duration",
        "study",
        "cell",
        "settings",
        "samples",
    ],
    protocol=Annotated[
        list[str] | None,
        typer.Option(
            help="Name of the protocol in the study; repeatable, for overlaid charts or ladders side by side."
        ),
    ],
    trial=typer.Option(min=0),
    snap=typer.Option(min=1, max=65_535),
    first=typer.Option("--from"),
    last=typer.Option("--to"),
    world=Annotated[list[str], typer.Option()],
    seed=StudySeed,
    format_=typer.Option("--format"),
    packets=typer.Option(min=1, max=5000),
)
def trace(
    context: typer.Context,
    study: OneStudy,
    *,
    cell: Point = None,
    call: partial[traces.Traces],
    chart: Chart | None = None,
    flow: list[str] | None = None,
    out: File | None = None,
    format_: Format | None = None,
    packets: int | None = None,
    settings: StudySettings = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Data of the chart as JSON: a list of rows, like --format json.")
    ] = False,
) -> None:
    """Draw one trial: windows, RTTs, queues, segments or packets.

    \b
    Examples:
      longfat trace arq/loss --protocol gbn-adaptive --chart ladder --out ladder.svg
      longfat trace congestion/delay --protocol vegas --out events.parquet

    Args:
        chart: A ladder of packets, charts over time, or the distribution of queue lengths (queue-cdf); by
            default all charts over time for TCP, else ladder.
        flow: Flow to show, named after its sending host; by default all.
        out: Output file; by default standard output.
        format_: Format; by default suffix of `out`, else text.
        packets: Packets in a ladder.
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat.cli.arguments.cells import conditions, find_cell, load
    from longfat.presentation.trace import qlog
    from longfat.presentation.trace.drawing import ALL, LADDER, View, draw

    given = call.keywords
    if as_json and format_ not in (None, "json"):
        raise ValueError(f"--json contradicts --format {format_}")
    require_folder("--out", out)
    chosen = format_of(out, "json" if as_json else format_, get_args(Format), "text")
    standard_output.reserve(context, out is None and chosen != "text")
    span = (traces.seconds("first", given["first"]), traces.seconds("last", given["last"]))
    loaded = load(study, settings, given["seed"])
    names = list(dict.fromkeys(given["protocol"] or ())) or [None]
    places = [find_cell(loaded, name, cell or ()) for name in names]
    over_time = all(place.spec["protocol"].get("kind") == "tcp" for place in places)
    drawn = chart or (ALL if over_time else LADDER)
    is_data = chosen in ("parquet", "csv", "json", "qlog")
    is_qlog = chosen == "qlog"
    if is_qlog and chart is not None:
        raise ValueError("--chart: --format qlog has all events and samples")
    _check(drawn, chosen, out, packets)
    if len(set(given["world"])) > 1 and drawn == LADDER and not is_data:
        raise ValueError("--chart ladder: shows one --world only")
    if drawn == LADDER and not is_qlog and given["interval"] is not None:
        raise ValueError("--interval: a ladder has no samples; choose another --chart")
    if chart is None and chosen in ("parquet", "csv") and given["interval"] is not None:
        raise ValueError("--interval: packets have no interval; samples need a --chart such as window")
    found = call(
        study=loaded,
        protocol=[place.protocol for place in places],
        cell=conditions(cell or ()),
        samples=is_qlog or drawn != LADDER,
        seed=None,
        side=None if given["pcapng"] is None and is_qlog else given["side"],
    )
    if is_qlog:
        content = qlog.encoded(found.traces, flow or (), given["side"] or "sender", span)
    elif is_data:
        content = traces.data_file(found, chosen, drawn)
    else:
        content = draw(View(chosen, drawn, tuple(flow or ()), *span, packets), found.traces)
    if out is not None:
        from longfat.system.files import write_whole

        write_whole(out, content)
        typer.echo(f"Trace: {out}", err=True)
    else:
        standard_output.write(content.decode())
    if given["pcapng"] is not None:
        typer.echo(f"Packets: {given['pcapng']}", err=True)
    if note := _comparison(loaded, places, given["trial"], found):
        typer.echo(note, err=True)


def _comparison(study: Study, cells: Sequence[Cell], trial: int, found: traces.Traces) -> str:
    """Returns how the trial compares with the study's run; without a run, how to choose another trial."""
    from longfat.presentation.run import typical
    from longfat.runner import load
    from longfat.runner.runner import default_folder

    if {one.world for one in found.traces} != {"sim"} or study.trials_in("sim") < 2:
        return ""
    try:
        run = load(default_folder(study))
    except (ValueError, OSError):
        return f"trial {trial} of {study.trials_in('sim')}; --trial N traces another one"
    if run.study.seed != study.seed:
        return ""
    traced = [one.record["metrics"] or {} for one in found.traces]
    return typical.line(run.study, run.cells, cells, trial, traced)


def _check(chart: str, chosen: str, out: File | None, packets: int | None) -> None:
    """Raises ValueError for options that exclude each other, before a trial runs."""
    if chart != "ladder" and packets is not None:
        raise ValueError("--packets requires --chart ladder")
    if out is None and chosen in ("png", "pdf", "parquet"):
        raise ValueError(f"--format {chosen} needs --out")
