"""`longfat trace`: one trial as charts over time, or as a ladder of its packets."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from longfat.cli import standard_output
from longfat.cli.arguments.formats import format_of
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


class CaptureSide(StrEnum):
    """Ends of a flow for a capture."""

    SENDER = "sender"
    RECEIVER = "receiver"
    BOTH = "both"


def trace(
    context: typer.Context,
    study: OneStudy,
    cell: Point = None,
    protocol: Annotated[
        list[str] | None,
        typer.Option(
            help="Name of the protocol in the study; repeatable, for overlaid charts or ladders side by side."
        ),
    ] = None,
    trial: Annotated[int, typer.Option(min=0, help="Number of the trial.")] = 0,
    chart: Annotated[
        TraceChart | None,
        typer.Option(
            help="A ladder of packets, or charts over time.  [default: all charts for TCP, else ladder]"
        ),
    ] = None,
    flow: Annotated[
        list[str] | None,
        typer.Option(help="Flow to show, named after its sending host; repeatable.  [default: all]"),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Output file.  [default: standard output]")] = None,
    pcapng: Annotated[Path | None, typer.Option(help="Output file for the packets, for Wireshark.")] = None,
    side: Annotated[
        CaptureSide | None,
        typer.Option(help="End whose packets --pcapng has.  [default: sender]"),
    ] = None,
    snap: Annotated[
        int | None, typer.Option(min=1, max=65_535, help="Bytes of each packet in --pcapng.  [default: all]")
    ] = None,
    format_: Annotated[
        TraceFormat | None,
        typer.Option("--format", help="Format.  [default: suffix of --out, else text]"),
    ] = None,
    first: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="Start of the drawing, e.g. 40ms.  [default: start of the trial; for a ladder, "
            "5 data packets before the first lost one]",
        ),
    ] = None,
    last: Annotated[str | None, typer.Option("--to", help="End of the drawing, e.g. 90ms.")] = None,
    packets: Annotated[int | None, typer.Option(min=1, max=5000, help="Packets in a ladder.")] = None,
    interval: Annotated[
        str | None,
        typer.Option(help="Time between samples, e.g. 1ms.  [default: 1000 samples per drawing]"),
    ] = None,
    world: Annotated[
        list[str] | None,
        typer.Option(help="World: sim or netns; repeatable, for overlaid charts.  [default: sim]"),
    ] = None,
    settings: StudySettings = None,
    seed: StudySeed = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Data of the chart as JSON: a list of rows, like --format json.")
    ] = False,
) -> None:
    """Draw one trial: windows, RTTs, queues, segments or packets.

    \b
    Examples:
      longfat trace arq/loss --protocol gbn-adaptive --chart ladder --out ladder.svg
      longfat trace congestion/delay --protocol vegas --out events.parquet
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat.api.traces import Place, data_file, run_traces
    from longfat.cli.arguments.cells import find_cell, load
    from longfat.presentation.trace.drawing import View, draw
    from longfat.runner import tracing

    if as_json and format_ not in (None, TraceFormat.JSON):
        raise ValueError(f"--json contradicts --format {format_.value}")
    format_ = TraceFormat.JSON if as_json else format_
    chosen = format_of(out, format_, TraceFormat.TEXT)
    standard_output.reserve(context, out is None and chosen is not TraceFormat.TEXT)
    span = (_time("first", first), _time("last", last))
    loaded = load(study, settings, seed)
    places = [find_cell(loaded, name, cell or ()) for name in dict.fromkeys(protocol or ())] or [
        find_cell(loaded, None, cell or ())
    ]
    over_time = all(place.spec["protocol"].get("kind") == "tcp" for place in places)
    drawn = chart or (TraceChart.ALL if over_time else TraceChart.LADDER)
    is_data = chosen in (TraceFormat.PARQUET, TraceFormat.CSV, TraceFormat.JSON)
    _check(drawn, chosen, out, packets)
    if pcapng is None and (side is not None or snap is not None):
        raise ValueError(f"{'--side' if side is not None else '--snap'}: requires --pcapng")
    worlds = tracing.worlds(world or ())
    if len(worlds) > 1 and drawn is TraceChart.LADDER and not is_data:
        raise ValueError("--chart ladder: shows one --world only")
    for option, several in (("--world", worlds), ("--protocol", places)):
        if pcapng is not None and len(several) > 1:
            raise ValueError(f"--pcapng: takes one {option} only")
    if drawn is TraceChart.LADDER and interval is not None:
        raise ValueError("--interval: a ladder has no samples; choose another --chart")
    if chart is None and chosen in (TraceFormat.PARQUET, TraceFormat.CSV) and interval is not None:
        raise ValueError("--interval: packets have no interval; samples need a --chart such as window")
    every = tracing.Interval(interval, _time("interval", interval), drawn is not TraceChart.LADDER)
    listener = None if side is CaptureSide.BOTH else (side or CaptureSide.SENDER).value
    capture = tracing.Capture(pcapng, listener, snap)
    traces = run_traces(
        [
            Place(place.protocol, {**place.spec, "seed": loaded.seed, "trial": trial}, place.params)
            for place in places
        ],
        worlds,
        every,
        span,
        capture,
    )
    if is_data:
        content = data_file(traces, chosen.value, drawn.value)
    else:
        content = draw(View(chosen.value, drawn.value, tuple(flow or ()), *span, packets), traces.traces)
    if out is not None:
        from longfat.system.files import write_whole

        write_whole(out, content)
        typer.echo(f"Trace: {out}", err=True)
    else:
        standard_output.write(content.decode())
    if pcapng is not None:
        typer.echo(f"Packets: {pcapng}", err=True)


def _time(parameter: str, text: str | None) -> float | None:
    from longfat.api.quantities import duration

    return None if text is None else duration(parameter, text)


def _check(chart: TraceChart, chosen: TraceFormat, out: Path | None, packets: int | None) -> None:
    """Raises ValueError for options that exclude each other, before a trial runs."""
    if chart is not TraceChart.LADDER and packets is not None:
        raise ValueError("--packets requires --chart ladder")
    if out is None and chosen in (TraceFormat.PNG, TraceFormat.PDF, TraceFormat.PARQUET):
        raise ValueError(f"--format {chosen.value} needs --out")
