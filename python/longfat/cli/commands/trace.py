"""`longfat trace`: one trial as charts over time, or as a ladder of its packets."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from longfat.cli.arguments.formats import format_of
from longfat.cli.arguments.options import OneStudy, Point, StudySeed, StudySettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longfat.results import Cell
    from longfat.study import Study


class TraceFormat(StrEnum):
    """Formats of drawings."""

    SVG = "svg"
    HTML = "html"
    PNG = "png"
    PDF = "pdf"
    TEXT = "text"


class TraceChart(StrEnum):
    """Drawings of a trial."""

    LADDER = "ladder"
    WINDOW = "window"
    RTT = "rtt"
    QUEUE = "queue"
    GOODPUT = "goodput"
    SEQUENCE = "sequence"
    ALL = "all"


class CaptureSide(StrEnum):
    """Ends of a flow for a capture."""

    SENDER = "sender"
    RECEIVER = "receiver"
    BOTH = "both"


_RENDERED: dict[TraceFormat, Literal["svg", "html", "png", "pdf"]] = {
    TraceFormat.SVG: "svg",
    TraceFormat.HTML: "html",
    TraceFormat.PNG: "png",
    TraceFormat.PDF: "pdf",
}
_OVER_TIME = tuple(chart for chart in TraceChart if chart not in (TraceChart.LADDER, TraceChart.ALL))


def trace(
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
) -> None:
    """Draw one trial: windows, RTTs, queues, segments or packets.

    \b
    Examples:
      longfat trace congestion/delay --protocol vegas
      longfat trace arq/loss --protocol gbn-adaptive --chart ladder --out ladder.svg
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat.cli import tracing
    from longfat.cli.arguments.cells import find_cell, load

    chosen = format_of(out, format_, TraceFormat.TEXT)
    start, end = _time("--from", first), _time("--to", last)
    loaded = load(study, settings, seed)
    places = [find_cell(loaded, name, cell or ()) for name in dict.fromkeys(protocol or ())] or [
        find_cell(loaded, None, cell or ())
    ]
    over_time = all(place.spec["protocol"].get("kind") == "tcp" for place in places)
    drawn = chart or (TraceChart.ALL if over_time else TraceChart.LADDER)
    _check(drawn, chosen, out, packets)
    if pcapng is None and (side is not None or snap is not None):
        raise ValueError(f"{'--side' if side is not None else '--snap'}: requires --pcapng")
    worlds = tracing.worlds(world or ())
    if len(worlds) > 1 and drawn is TraceChart.LADDER:
        raise ValueError("--chart ladder: shows one --world only")
    for option, several in (("--world", worlds), ("--protocol", places)):
        if pcapng is not None and len(several) > 1:
            raise ValueError(f"--pcapng: takes one {option} only")
    if drawn is TraceChart.LADDER and interval is not None:
        raise ValueError("--interval: a ladder has no samples; choose another --chart")
    every = tracing.Interval(interval, _time("--interval", interval), drawn is not TraceChart.LADDER)
    listener = None if side is CaptureSide.BOTH else (side or CaptureSide.SENDER).value
    capture = tracing.Capture(pcapng, listener, snap)
    view = View(chosen, drawn, tuple(flow or ()), start, end, packets)
    traces = []
    for place in places:
        spec = {**place.spec, "seed": loaded.seed, "trial": trial}
        records = tracing.run(worlds, spec, every, (start, end), capture)
        for name, record in records.items():
            traces.append(Trace(place.protocol, name, record, *_titles(loaded, place, trial, record)))
    drawing = draw(view, traces)
    if out is not None:
        from longfat.files import write_whole

        write_whole(out, drawing)
        typer.echo(f"Trace: {out}", err=True)
    else:
        typer.echo(drawing.decode(), nl=False)
    if pcapng is not None:
        typer.echo(f"Packets: {pcapng}", err=True)


def _time(option: str, text: str | None) -> float | None:
    from longfat.cli.arguments.quantities import duration

    return None if text is None else duration(option, text)


@dataclass(frozen=True)
class View:
    """Content and format of a drawing. Times in s; `packets` is the number of those in a ladder."""

    format: TraceFormat
    chart: TraceChart
    flows: tuple[str, ...] = ()
    first: float | None = None
    last: float | None = None
    packets: int | None = None


def _check(chart: TraceChart, chosen: TraceFormat, out: Path | None, packets: int | None) -> None:
    """Raises ValueError for options that exclude each other, before a trial runs."""
    if chart is not TraceChart.LADDER and packets is not None:
        raise ValueError("--packets requires --chart ladder")
    if out is None and chosen in (TraceFormat.PNG, TraceFormat.PDF):
        raise ValueError(f"--format {chosen.value} needs --out")


@dataclass(frozen=True)
class Trace:
    """A traced trial with its record, and the lines above its drawing."""

    protocol: str
    world: str
    record: dict[str, Any]
    title: str
    subtitle: str


def _titles(study: Study, cell: Cell, trial: int, record: dict[str, Any]) -> tuple[str, str]:
    from longfat.presentation import formatting, names

    protocol = cell.spec["protocol"]
    kind = str(protocol.get("kind", cell.protocol))
    control = protocol.get("congestion")
    control = control.get("kind") if isinstance(control, dict) else control
    details = [names.protocol(kind), *([names.protocol(formatting.label(control))] if control else [])]
    window = protocol.get("window")
    title = f"{cell.protocol}: {' '.join(details)}" + (f", window {window}" if window is not None else "")
    about = [formatting.place(cell.params), f"trial {trial}, seed {study.seed}"]
    about += [f"failed: {record['error']}"] if record.get("error") else []
    return title, "; ".join(text for text in about if text)


def draw(view: View, traces: Sequence[Trace]) -> bytes:
    """Returns the drawing of traced trials as a file's bytes: charts overlaid, ladders side by side."""
    if view.chart is TraceChart.LADDER:
        return _ladders(view, traces)
    from longfat.analysis import series, series_sequence
    from longfat.presentation import series_text

    parts = _OVER_TIME if view.chart is TraceChart.ALL else (view.chart,)
    labels = _labels(traces)
    samples: list[series.Series] = []
    sequences: list[series_sequence.TimeSequence] = []
    for trace, label in zip(traces, labels, strict=True):
        record = trace.record
        if not record.get("series"):
            raise ValueError(f"--chart {view.chart.value}: this trial has no samples; use --chart ladder")
        whole = series.choose(series.read(record["series"]), view.flows)
        whole = series.labelled(whole, label) if label else whole
        samples.append(whole)
        if TraceChart.SEQUENCE in parts:
            names = {flow.number: flow.name for flow in whole.flows}
            sequences += series_sequence.read(record["events"], names)
    shown = series.cut(series.overlaid(samples), view.first, view.last)
    sequences = [series_sequence.cut(one, view.first, view.last) for one in sequences]
    names_of_parts = [part.value for part in parts]
    title = " and ".join(dict.fromkeys(trace.title for trace in traces))
    subtitle = "; ".join([*dict.fromkeys(trace.subtitle for trace in traces), *_worlds(traces)])
    rendered = _RENDERED.get(view.format)
    if rendered is None:
        width = shutil.get_terminal_size((series_text.WIDTH, 24)).columns
        return series_text.draw(shown, sequences, names_of_parts, title, subtitle, width).encode()
    from longfat.presentation import charts, series_charts

    made = series_charts.charts(shown, sequences, names_of_parts, title, subtitle)
    return charts.render(made, rendered)


def _worlds(traces: Sequence[Trace]) -> list[str]:
    """Returns the worlds of traces as text, nothing for simulation alone."""
    worlds = list(dict.fromkeys(trace.world for trace in traces))
    return [] if worlds == ["sim"] else [" and ".join(worlds)]


def _labels(traces: Sequence[Trace]) -> list[str]:
    """Returns a label for each trace: protocol, world or both, as far as they differ."""
    several = [len({getattr(trace, of) for trace in traces}) > 1 for of in ("protocol", "world")]
    return [
        ", ".join(name for name, needed in zip((trace.protocol, trace.world), several, strict=True) if needed)
        for trace in traces
    ]


def _one_flow(record: dict[str, Any], names_given: Sequence[str]) -> tuple[int, str]:
    """Returns the number of the flow that a ladder shows, and its name if there are several."""
    from longfat.analysis import series
    from longfat.flow_table import flow_table

    if len(names_given) > 1:
        raise ValueError(f"--flow: a ladder shows one flow, not {len(names_given)}")
    columns = record.get("flows")
    if not columns:
        return 0, ""
    names = series.flow_names(flow_table(columns))
    chosen = series.named(names_given[0], names) if names_given else min(names)
    return chosen, f"flow {names[chosen]} of {len(names)}" if len(names) > 1 else ""


def _ladders(view: View, traces: Sequence[Trace]) -> bytes:
    from longfat.analysis import ladder
    from longfat.presentation import ladder_svg, ladder_text

    wholes, subtitles = [], []
    for trace in traces:
        flow, named = _one_flow(trace.record, view.flows)
        wholes.append(ladder.read(event for event in trace.record["events"] if event.get("flow", 0) == flow))
        subtitles.append("; ".join([trace.subtitle, *_worlds([trace]), *([named] if named else [])]))
    parts = ladder.cut_alike(wholes, view.first, view.last, view.packets)
    panels = [
        ladder_svg.Panel(part, trace.title, subtitle)
        for part, trace, subtitle in zip(parts, traces, subtitles, strict=True)
    ]
    rendered = _RENDERED.get(view.format)
    if rendered is None:
        return "\n".join(ladder_text.draw(one.ladder, one.title, one.subtitle) for one in panels).encode()
    drawing = ladder_svg.draw_panels(panels)
    if rendered == "html":
        return ladder_svg.page([drawing], " and ".join(trace.title for trace in traces)).encode()
    return drawing.encode() if rendered == "svg" else ladder_svg.picture(drawing, rendered)
