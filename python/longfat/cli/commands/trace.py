"""`longfat trace`: what a trial did in a world or two, as a ladder of its packets or as charts over time."""

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
    """What a drawing can be written as."""

    SVG = "svg"
    HTML = "html"
    PNG = "png"
    PDF = "pdf"
    TEXT = "text"


class TraceChart(StrEnum):
    """What can be drawn of a trial."""

    LADDER = "ladder"
    WINDOW = "window"
    RTT = "rtt"
    QUEUE = "queue"
    GOODPUT = "goodput"
    SEQUENCE = "sequence"
    ALL = "all"


class CaptureSide(StrEnum):
    """Who listens to a flow for a capture."""

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
            help="Name of the protocol in the study; several are overlaid, or their ladders set side by side."
        ),
    ] = None,
    trial: Annotated[int, typer.Option(min=0, help="Number of the trial.")] = 0,
    chart: Annotated[
        TraceChart | None,
        typer.Option(
            help="A ladder of packets, or charts over time; by default all charts for TCP, else a ladder."
        ),
    ] = None,
    flow: Annotated[
        list[str] | None,
        typer.Option(help="Show this flow alone, named after its sending host; may be repeated."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The file; standard output by default.")] = None,
    pcapng: Annotated[
        Path | None, typer.Option(help="Write the packets to this file, for Wireshark.")
    ] = None,
    side: Annotated[
        CaptureSide | None,
        typer.Option(help="Whose packets --pcapng holds; by default what the senders of flows saw."),
    ] = None,
    snap: Annotated[
        int | None, typer.Option(min=1, max=65_535, help="Bytes of each packet in --pcapng; by default all.")
    ] = None,
    format_: Annotated[
        TraceFormat | None, typer.Option("--format", help="By default that of --out's name, else text.")
    ] = None,
    first: Annotated[
        str | None,
        typer.Option("--from", help="Show from here on, e.g. 40ms; a ladder begins at the first loss."),
    ] = None,
    last: Annotated[str | None, typer.Option("--to", help="Show up to here, e.g. 90ms.")] = None,
    packets: Annotated[
        int | None, typer.Option(min=1, max=5000, help="Number of packets that leave in a ladder.")
    ] = None,
    interval: Annotated[
        str | None,
        typer.Option(help="Time between samples, e.g. 1ms; by default 1000 in the time that is shown."),
    ] = None,
    world: Annotated[
        list[str] | None,
        typer.Option(help="Where it runs: sim (default) or netns; of several the charts lie on each other."),
    ] = None,
    settings: StudySettings = None,
    seed: StudySeed = None,
) -> None:
    """Draw a trial: its windows, round trips, queues and segments over time, or every packet."""
    from longfat.cli import tracing as traced
    from longfat.cli.arguments.cells import find_cell
    from longfat.study import Overrides, load_study, read_setting

    chosen = format_of(out, format_, TraceFormat.TEXT)
    start, end = _time("--from", first), _time("--to", last)
    loaded = load_study(study, Overrides(tuple(map(read_setting, settings or ())), (), None, seed))
    places = [find_cell(loaded, name, cell or ()) for name in dict.fromkeys(protocol or ())] or [
        find_cell(loaded, None, cell or ())
    ]
    over_time = all(place.spec["protocol"].get("kind") == "tcp" for place in places)
    drawn = chart or (TraceChart.ALL if over_time else TraceChart.LADDER)
    _check(drawn, chosen, out, packets)
    if pcapng is None and (side is not None or snap is not None):
        raise ValueError(f"{'--side' if side is not None else '--snap'}: it is about a capture (--pcapng)")
    worlds = traced.worlds(world or ())
    if len(worlds) > 1 and drawn is TraceChart.LADDER:
        raise ValueError("--chart: a ladder is of one --world")
    for option, several in (("--world", worlds), ("--protocol", places)):
        if pcapng is not None and len(several) > 1:
            raise ValueError(f"--pcapng: a capture is of one {option}")
    if drawn is TraceChart.LADDER and interval is not None:
        raise ValueError("--interval: a ladder has no samples")
    every = traced.Interval(interval, _time("--interval", interval), drawn is not TraceChart.LADDER)
    listener = None if side is CaptureSide.BOTH else (side or CaptureSide.SENDER).value
    capture = traced.Capture(pcapng, listener, snap)
    view = View(chosen, drawn, tuple(flow or ()), start, end, packets)
    traces = []
    for place in places:
        spec = {**place.spec, "seed": loaded.seed, "trial": trial}
        records = traced.run(worlds, spec, every, (start, end), capture)
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
    from longfat.study import units

    if text is None:
        return None
    try:
        parsed = units.parse(text)
    except ValueError as error:
        raise ValueError(f"{option}: {error}") from None
    if parsed.dimension != "duration":
        raise ValueError(f'{option}: "{text}" is no time: write e.g. "40ms"')
    return float(parsed.value)


@dataclass(frozen=True)
class View:
    """What of a trial is drawn, and as what. Times in s; `packets` counts those of a ladder."""

    format: TraceFormat
    chart: TraceChart
    flows: tuple[str, ...] = ()
    first: float | None = None
    last: float | None = None
    packets: int | None = None


def _check(chart: TraceChart, chosen: TraceFormat, out: Path | None, packets: int | None) -> None:
    """Refuses what does not go together before a trial is run."""
    if chart is not TraceChart.LADDER and packets is not None:
        raise ValueError("--packets: only a ladder shows single packets (--chart ladder)")
    if out is None and chosen in (TraceFormat.PNG, TraceFormat.PDF):
        raise ValueError(f"--format {chosen.value} needs --out")


@dataclass(frozen=True)
class Trace:
    """A traced trial: whose it is, its record, and the lines above its drawing."""

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
            raise ValueError(
                f"--chart {view.chart.value}: this trial was not sampled; a ladder shows its packets"
            )
        whole = series.choose(series.read(record["series"]), view.flows)
        whole = series.labelled(whole, label) if label else whole
        samples.append(whole)
        if TraceChart.SEQUENCE in parts:
            names = {flow.number: flow.name for flow in whole.flows}
            sequences += series_sequence.read(record["events"], names)
    shown = series.cut(series.overlaid(samples), view.first, view.last)
    sequences = [series_sequence.cut(one, view.first, view.last) for one in sequences]
    told = [part.value for part in parts]
    title = " and ".join(dict.fromkeys(trace.title for trace in traces))
    subtitle = "; ".join([*dict.fromkeys(trace.subtitle for trace in traces), *_worlds(traces)])
    rendered = _RENDERED.get(view.format)
    if rendered is None:
        width = shutil.get_terminal_size((series_text.WIDTH, 24)).columns
        return series_text.draw(shown, sequences, told, title, subtitle, width).encode()
    from longfat.presentation import charts, series_charts

    made = series_charts.charts(shown, sequences, told, title, subtitle)
    return charts.render(made, rendered)


def _worlds(traces: Sequence[Trace]) -> list[str]:
    """The worlds of traces in words, where there is more than the simulation."""
    worlds = list(dict.fromkeys(trace.world for trace in traces))
    return [] if worlds == ["sim"] else [" and ".join(worlds)]


def _labels(traces: Sequence[Trace]) -> list[str]:
    """What tells the lines of traces apart: protocol, world, or both; nothing for a single one."""
    several = [len({getattr(trace, of) for trace in traces}) > 1 for of in ("protocol", "world")]
    return [
        ", ".join(name for name, needed in zip((trace.protocol, trace.world), several, strict=True) if needed)
        for trace in traces
    ]


def _one_flow(record: dict[str, Any], asked: Sequence[str]) -> tuple[int, str]:
    """The number of the flow that a ladder shows, and where there are several what to say about it."""
    from longfat.analysis import series
    from longfat.flow_table import flow_table

    if len(asked) > 1:
        raise ValueError(f"--flow: a ladder shows one flow, not {len(asked)}")
    columns = record.get("flows")
    if not columns:
        return 0, ""
    names = series.flow_names(flow_table(columns))
    chosen = series.named(asked[0], names) if asked else min(names)
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
