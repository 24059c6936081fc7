"""`longfat trace`: one trial as charts over time, or as a ladder of its packets."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from pathlib import Path as File
from typing import Annotated

import typer

from longfat.api import traces
from longfat.cli import standard_output
from longfat.cli.arguments.formats import format_of
from longfat.cli.arguments.from_function import command_of
from longfat.cli.arguments.options import OneStudy, Point, StudySeed, StudySettings


class TraceFormat(StrEnum):
    """Formats of drawings, and of the data."""

    SVG = "svg"
    HTML = "html"
    PNG = "png"
    PDF = "pdf"
    TEXT = "text"
    PARQUET = "parquet"
    CSV = "csv"
    JSON = "json"


class TraceChart(StrEnum):
    """Drawings of a trial."""

    LADDER = "ladder"
    WINDOW = "window"
    RTT = "rtt"
    QUEUE = "queue"
    GOODPUT = "goodput"
    CONTROLLER = "controller"
    SEQUENCE = "sequence"
    ALL = "all"


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
    chart: TraceChart | None = None,
    flow: list[str] | None = None,
    out: File | None = None,
    format_: TraceFormat | None = None,
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
        chart: A ladder of packets, or charts over time; by default all charts for TCP, else ladder.
        flow: Flow to show, named after its sending host; by default all.
        out: Output file; by default standard output.
        format_: Format; by default suffix of `out`, else text.
        packets: Packets in a ladder.
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat.cli.arguments.cells import conditions, find_cell, load
    from longfat.presentation.trace_drawing import View, draw

    given = call.keywords
    if as_json and format_ not in (None, TraceFormat.JSON):
        raise ValueError(f"--json contradicts --format {format_.value}")
    format_ = TraceFormat.JSON if as_json else format_
    chosen = format_of(out, format_, TraceFormat.TEXT)
    standard_output.reserve(context, out is None and chosen is not TraceFormat.TEXT)
    span = (traces.seconds("first", given["first"]), traces.seconds("last", given["last"]))
    loaded = load(study, settings, given["seed"])
    names = list(dict.fromkeys(given["protocol"] or ())) or [None]
    places = [find_cell(loaded, name, cell or ()) for name in names]
    over_time = all(place.spec["protocol"].get("kind") == "tcp" for place in places)
    drawn = chart or (TraceChart.ALL if over_time else TraceChart.LADDER)
    is_data = chosen in (TraceFormat.PARQUET, TraceFormat.CSV, TraceFormat.JSON)
    _check(drawn, chosen, out, packets)
    if len(set(given["world"])) > 1 and drawn is TraceChart.LADDER and not is_data:
        raise ValueError("--chart ladder: shows one --world only")
    if drawn is TraceChart.LADDER and given["interval"] is not None:
        raise ValueError("--interval: a ladder has no samples; choose another --chart")
    if chart is None and chosen in (TraceFormat.PARQUET, TraceFormat.CSV) and given["interval"] is not None:
        raise ValueError("--interval: packets have no interval; samples need a --chart such as window")
    found = call(
        study=loaded,
        protocol=[place.protocol for place in places],
        cell=conditions(cell or ()),
        samples=drawn is not TraceChart.LADDER,
        seed=None,
    )
    if is_data:
        content = traces.data_file(found, chosen.value, drawn.value)
    else:
        content = draw(View(chosen.value, drawn.value, tuple(flow or ()), *span, packets), found.traces)
    if out is not None:
        from longfat.system.files import write_whole

        write_whole(out, content)
        typer.echo(f"Trace: {out}", err=True)
    else:
        standard_output.write(content.decode())
    if given["pcapng"] is not None:
        typer.echo(f"Packets: {given['pcapng']}", err=True)


def _check(chart: TraceChart, chosen: TraceFormat, out: File | None, packets: int | None) -> None:
    """Raises ValueError for options that exclude each other, before a trial runs."""
    if chart is not TraceChart.LADDER and packets is not None:
        raise ValueError("--packets requires --chart ladder")
    if out is None and chosen in (TraceFormat.PNG, TraceFormat.PDF, TraceFormat.PARQUET):
        raise ValueError(f"--format {chosen.value} needs --out")
