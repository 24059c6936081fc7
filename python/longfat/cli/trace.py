"""`longfat trace`: what a trial did in a world or two, as a ladder of its packets or as charts over time."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from longfat.cli.formats import format_of
from longfat.cli.options import OneStudy, Point, StudySeed, StudySettings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from longfat.results import Cell
    from longfat.study import Study

    Records = Mapping[str, dict[str, Any]]


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
    protocol: Annotated[str | None, typer.Option(help="Name of the protocol in the study.")] = None,
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
        int | None, typer.Option(min=1, max=5000, help="Show so many packets of a ladder.")
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
    """Draw one trial: its windows, round trips, queues and segments over time, or every packet."""
    from longfat.cli import traced
    from longfat.cli.cell import find_cell
    from longfat.study import Overrides, load_study, read_setting

    chosen = format_of(out, format_, TraceFormat.TEXT)
    start, end = _time("--from", first), _time("--to", last)
    loaded = load_study(study, Overrides(tuple(map(read_setting, settings or ())), (), None, seed))
    place = find_cell(loaded, protocol, cell or ())
    kind = place.spec["protocol"].get("kind")
    drawn = chart or (TraceChart.ALL if kind == "tcp" else TraceChart.LADDER)
    _check(drawn, chosen, out, packets)
    if pcapng is None and (side is not None or snap is not None):
        raise ValueError(f"{'--side' if side is not None else '--snap'}: it is about a capture (--pcapng)")
    spec = {**place.spec, "seed": loaded.seed, "trial": trial}
    worlds = traced.worlds(world or ())
    if len(worlds) > 1 and (drawn is TraceChart.LADDER or pcapng is not None):
        what = "--pcapng: a capture" if pcapng is not None else "--chart: a ladder"
        raise ValueError(f"{what} is of one --world")
    if drawn is TraceChart.LADDER and interval is not None:
        raise ValueError("--interval: a ladder has no samples")
    every = traced.Interval(interval, _time("--interval", interval), drawn is not TraceChart.LADDER)
    listener = None if side is CaptureSide.BOTH else (side or CaptureSide.SENDER).value
    capture = traced.Capture(pcapng, listener, snap)
    records = traced.run(worlds, spec, every, (start, end), capture)
    view = View(chosen, drawn, tuple(flow or ()), start, end, packets)
    drawing = draw(view, records, *_titles(loaded, place, trial, records))
    if out is not None:
        from longfat.runner.files import write_whole

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
    if chart is TraceChart.LADDER and chosen in (TraceFormat.PNG, TraceFormat.PDF):
        raise ValueError(f"--format: a ladder is drawn as svg, html or text, not {chosen.value}")
    if chart is not TraceChart.LADDER and packets is not None:
        raise ValueError("--packets: only a ladder shows single packets (--chart ladder)")
    if out is None and chosen in (TraceFormat.PNG, TraceFormat.PDF):
        raise ValueError(f"--format {chosen.value} needs --out")


def _titles(study: Study, cell: Cell, trial: int, records: Records) -> tuple[str, str]:
    from longfat.analysis import formatting

    protocol = cell.spec["protocol"]
    kind = str(protocol.get("kind", cell.protocol))
    control = protocol.get("congestion")
    control = control.get("kind") if isinstance(control, dict) else control
    details = [kind, *([str(control)] if control else [])]
    window = protocol.get("window")
    title = f"{cell.protocol}: {' '.join(details)}" + (f", window {window}" if window is not None else "")
    about = [formatting.place(cell.params), f"trial {trial}, seed {study.seed}"]
    if list(records) != ["sim"]:
        about.append(" and ".join(records))
    about += [f"failed: {record['error']}" for record in records.values() if record.get("error")]
    return title, "; ".join(text for text in about if text)


def draw(view: View, records: Records, title: str, subtitle: str) -> bytes:
    """The drawing of a trial's records, by world, as a file's bytes."""
    if view.chart is TraceChart.LADDER:
        (record,) = records.values()
        return _ladder(view, record, title, subtitle).encode()
    from longfat.analysis import series, series_sequence, series_text

    parts = _OVER_TIME if view.chart is TraceChart.ALL else (view.chart,)
    samples: list[series.Series] = []
    sequences: list[series_sequence.TimeSequence] = []
    for world, record in records.items():
        if not record.get("series"):
            raise ValueError(
                f"--chart {view.chart.value}: this trial was not sampled; a ladder shows its packets"
            )
        whole = series.choose(series.read(record["series"]), view.flows)
        whole = series.labelled(whole, world) if len(records) > 1 else whole
        samples.append(whole)
        if TraceChart.SEQUENCE in parts:
            names = {flow.number: flow.name for flow in whole.flows}
            sequences += series_sequence.read(record["events"], names)
    shown = series.cut(series.overlaid(samples), view.first, view.last)
    sequences = [series_sequence.cut(one, view.first, view.last) for one in sequences]
    told = [part.value for part in parts]
    rendered = _RENDERED.get(view.format)
    if rendered is None:
        width = shutil.get_terminal_size((series_text.WIDTH, 24)).columns
        return series_text.draw(shown, sequences, told, title, subtitle, width).encode()
    from longfat.analysis import charts, series_charts

    made = series_charts.charts(shown, sequences, told, title, subtitle)
    return charts.render(made, rendered)


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


def _ladder(view: View, record: dict[str, Any], title: str, subtitle: str) -> str:
    from longfat.analysis import ladder, ladder_svg, ladder_text

    flow, named = _one_flow(record, view.flows)
    events = [event for event in record["events"] if event.get("flow", 0) == flow]
    subtitle += f"; {named}" if named else ""
    shown = ladder.cut(ladder.read(events), view.first, view.last, view.packets)
    if view.format is TraceFormat.TEXT:
        return ladder_text.draw(shown, title, subtitle)
    drawing = ladder_svg.draw(shown, title, subtitle)
    return drawing if view.format is TraceFormat.SVG else ladder_svg.page([drawing], title)
