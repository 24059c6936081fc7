"""Drawings of traced trials: charts over time, and ladders of packets."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from longfat.analysis import series, series_sequence
from longfat.presentation import formatting, names, series_names
from longfat.presentation.charts.vega import Format, Spec
from longfat.system.parameters import ParameterError

LADDER, ALL, SEQUENCE, QUEUE_CDF = "ladder", "all", "sequence", "queue-cdf"
OVER_TIME = ("window", "rtt", "queue", "goodput", "controller", SEQUENCE)
"""The charts over time."""
_RENDERED: dict[str, Format] = {name: name for name in get_args(Format)}


@dataclass(frozen=True)
class View:
    """Content and format of a drawing. Times in s; `packets` is the number of those in a ladder."""

    format: str
    chart: str
    flows: tuple[str, ...] = ()
    first: float | None = None
    last: float | None = None
    packets: int | None = None


@dataclass(frozen=True)
class Trace:
    """A traced trial with its record, and the lines above its drawing."""

    protocol: str
    world: str
    record: dict[str, Any]
    title: str
    subtitle: str
    name: str = ""
    """The protocol's full name."""


def traced(
    protocol: str, world: str, spec: Mapping[str, Any], params: Mapping[str, Any], record: dict[str, Any]
) -> Trace:
    """Returns a trace with its title. `params` is the point of the sweep, if there is one."""
    title = f"{protocol}: {names.protocol_of(spec['protocol'])}"
    about = [formatting.place(params), f"trial {spec['trial']}, seed {spec['seed']}"]
    about += [f"failed: {record['error']}"] if record.get("error") else []
    subtitle = "; ".join(text for text in about if text)
    return Trace(protocol, world, record, title, subtitle, series_names.title(protocol, spec["protocol"]))


def draw(view: View, traces: Sequence[Trace]) -> bytes:
    """Returns the drawing of traced trials as a file's bytes: charts overlaid, ladders side by side."""
    if view.chart == LADDER:
        return _ladders(view, traces)
    rendered = _RENDERED.get(view.format)
    if view.chart == QUEUE_CDF:
        return _occupancy(view, traces, rendered)
    if rendered is None:
        from longfat.presentation.trace.bars import WIDTH

        return text(view, traces, columns=shutil.get_terminal_size((WIDTH, 24)).columns).encode()
    return rendering(chart(view, traces), traces, rendered)


def occupancy(view: View, traces: Sequence[Trace]) -> Spec:
    """Returns the distribution of queue lengths over the time of the view, as Vega-Lite."""
    from longfat.presentation.trace import occupancy as chart

    return chart.draw(_overlaid(view, traces)[0], *headings(traces))


def _occupancy(view: View, traces: Sequence[Trace], rendered: Format | None) -> bytes:
    from longfat.presentation.charts import files as chart_files
    from longfat.presentation.trace import occupancy as chart

    if rendered is None:
        return chart.text(_overlaid(view, traces)[0], *headings(traces)).encode()
    return chart_files.render(occupancy(view, traces), rendered)


def text(view: View, traces: Sequence[Trace], parts: Sequence[str] = (), columns: int | None = None) -> str:
    """Returns the charts over time as text; `parts` replaces the view's chart."""
    from longfat.presentation.trace import bars

    shown, sequences = _overlaid(view, traces, parts)
    drawn, width = parts or parts_of(view.chart), columns or bars.WIDTH
    return bars.draw(shown, sequences, drawn, *headings(traces), width)


def rendering(spec: Spec, traces: Sequence[Trace], rendered: Format) -> bytes:
    """Returns charts over time as a file: a page with the trial's title, or a picture."""
    from longfat.presentation.charts import files as chart_files
    from longfat.presentation.trace import page

    if rendered == "html":
        title = " and ".join(dict.fromkeys(trace.name or trace.title for trace in traces))
        return page.page(spec, title, headings(traces)[1]).encode()
    return chart_files.render(spec, rendered)


def chart(view: View, traces: Sequence[Trace], parts: Sequence[str] = ()) -> Spec:
    """Returns the charts over time below each other, as Vega-Lite; `parts` replaces the view's chart."""
    from longfat.presentation.trace import charts

    shown, sequences = _overlaid(view, traces, parts)
    drawn = parts or parts_of(view.chart)
    return charts.draw(shown, sequences, drawn, *headings(traces), pointed=view.format == "html")


def parts_of(chart: str) -> tuple[str, ...]:
    """Returns the charts over time of a name."""
    return OVER_TIME if chart == ALL else (chart,)


def headings(traces: Sequence[Trace]) -> tuple[str, str]:
    """Returns title and subtitle of a drawing of several traces."""
    title = " and ".join(dict.fromkeys(trace.title for trace in traces))
    return title, "; ".join([*dict.fromkeys(trace.subtitle for trace in traces), *_worlds(traces)])


def _overlaid(
    view: View, traces: Sequence[Trace], parts: Sequence[str] = ()
) -> tuple[series.Series, list[series_sequence.TimeSequence]]:
    """Returns the samples of all traces in the view's period, and the sequences if they are drawn."""
    samples: list[series.Series] = []
    sequences: list[series_sequence.TimeSequence] = []
    for trace, label in zip(traces, _full_labels(traces), strict=True):
        record = trace.record
        if not record.get("series"):
            raise ParameterError("chart", f"{view.chart}: this trial has no samples; use the chart {LADDER}")
        whole = series.choose(series.read(record["series"]), view.flows)
        whole = series.labelled(whole, label) if label else whole
        samples.append(whole)
        if SEQUENCE in (parts or parts_of(view.chart)):
            known = {flow.number: flow.name for flow in whole.flows}
            sequences += series_sequence.read(record["events"], known)
    shown = series.cut(series.overlaid(samples), view.first, view.last)
    return shown, [series_sequence.cut(one, view.first, view.last) for one in sequences]


def _worlds(traces: Sequence[Trace]) -> list[str]:
    """Returns the worlds of traces as text, nothing for simulation alone."""
    worlds = list(dict.fromkeys(trace.world for trace in traces))
    return [] if worlds == ["sim"] else [" and ".join(worlds)]


def labels(traces: Sequence[Trace]) -> list[str]:
    """Returns a label for each trace: protocol, world or both, as far as they differ."""
    several = [len({getattr(trace, of) for trace in traces}) > 1 for of in ("protocol", "world")]
    return [
        ", ".join(name for name, needed in zip((trace.protocol, trace.world), several, strict=True) if needed)
        for trace in traces
    ]


def _full_labels(traces: Sequence[Trace]) -> list[str]:
    """Returns the labels with full names of protocols."""
    return labels([replace(trace, protocol=trace.name or trace.protocol) for trace in traces])


def one_flow(record: dict[str, Any], names_given: Sequence[str]) -> tuple[int, str]:
    """Returns the number of the flow that a ladder or a log shows, and its name if there are several."""
    from longfat.system.flow_table import flow_table

    if len(names_given) > 1:
        raise ParameterError("flow", f"takes one flow here, not {len(names_given)}")
    columns = record.get("flows")
    if not columns:
        return 0, ""
    names = series.flow_names(flow_table(columns))
    chosen = series.named(names_given[0], names) if names_given else min(names)
    return chosen, f"flow {names[chosen]} of {len(names)}" if len(names) > 1 else ""


def _ladders(view: View, traces: Sequence[Trace]) -> bytes:
    from longfat.analysis import ladder
    from longfat.presentation.trace.ladder import lines, svg

    wholes, subtitles = [], []
    for trace in traces:
        flow, named = one_flow(trace.record, view.flows)
        wholes.append(ladder.read(event for event in trace.record["events"] if event.get("flow", 0) == flow))
        subtitles.append("; ".join([trace.subtitle, *_worlds([trace]), *([named] if named else [])]))
    parts = ladder.cut_alike(wholes, view.first, view.last, view.packets)
    panels = [
        svg.Panel(part, trace.title, subtitle)
        for part, trace, subtitle in zip(parts, traces, subtitles, strict=True)
    ]
    rendered = _RENDERED.get(view.format)
    if rendered is None:
        return "\n".join(lines.draw(one.ladder, one.title, one.subtitle) for one in panels).encode()
    drawing = svg.draw_panels(panels)
    if rendered == "html":
        return svg.page([drawing], " and ".join(trace.title for trace in traces)).encode()
    return drawing.encode() if rendered == "svg" else svg.picture(drawing, rendered)
