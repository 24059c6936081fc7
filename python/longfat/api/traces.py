"""`trace`: what happens in a trial over time, as data frames and charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path as File
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex

from longfat.api.quantities import Duration
from longfat.api.quantities import duration as seconds_of
from longfat.api.specification import specification, whole_number
from longfat.presentation.displayed import Displayed, TextTable, altair_chart
from longfat.presentation.trace import drawing as trace_drawing
from longfat.presentation.trace import frames
from longfat.presentation.trace.drawing import ALL, LADDER, OVER_TIME, QUEUE_CDF, View, traced
from longfat.runner import tracing
from longfat.runner.tracing import Capture, Interval
from longfat.study import Overrides, load_study
from longfat.study.plain import plain, study_tables
from longfat.study.points import find_cells
from longfat.system.parameters import ParameterError

if TYPE_CHECKING:
    import polars

    from longfat.presentation.trace.drawing import Trace
    from longfat.study import Study
    from longfat.study.tables import Path, Topology

Side = Literal["sender", "receiver", "both"]
"""Ends of a flow for a capture."""
Part = Literal["window", "rtt", "queue", "goodput", "controller", "sequence"]
TABLES = ("events", "samples", "queues")
_TABLE_OF = {
    **dict.fromkeys(("window", "rtt", "goodput", "controller"), "samples"),
    **dict.fromkeys(("queue", QUEUE_CDF), "queues"),
}


@dataclass(frozen=True, repr=False)
class Traces(Displayed):
    """Traced trials of one or several protocols and worlds.

    Every frame has the columns `protocol` and `world`. Times are in s, sizes in B, rates in bit/s.

    - `samples`: a row for each flow and sampling time: `cwnd_bytes`, `ssthresh_bytes`, `in_flight_bytes`,
      `rtt_s` (newest sample), `srtt_s`, `pacing_bps`, `delivery_bps`, `goodput_bps` (read in order since
      the last sample), `received_bps` (payload that arrived since then, duplicates included),
      `retransmissions` (so far), `rwnd_limited_s` and `sndbuf_limited_s` (seconds so far in which the receive
      window or the send buffer limited the sender) and `state`; null where the protocol has none.
      `controller_NAME` is a value of the controller's own state (`metrics` of a controller): its unit is the
      end of its name.
    - `queues`: a row for each bottleneck and sampling time: `packets` and `bytes`.
    - `events`: a row for each event: `what` is send, receive, drop, mark, corrupt, duplicate, deliver or
      timeout;
      `frame` the kind of packet (data, ack, syn, ...); `sequence`, `acknowledgement`, `window`, `sack`,
      `length` and `size` (on the wire) are those of the packet.
    """

    traces: tuple[Trace, ...]

    @property
    def events(self) -> polars.DataFrame:
        """Every segment, ACK, loss, timeout and read of an application, in order of time."""
        return frames.events(self.traces)

    @property
    def samples(self) -> polars.DataFrame:
        """Windows, RTTs and rates of flows over time."""
        return frames.samples(self.traces)

    @property
    def queues(self) -> polars.DataFrame:
        """Queues of bottlenecks over time."""
        return frames.queues(self.traces)

    @property
    def metrics(self) -> dict[str, dict[str, float]]:
        """The metrics of each trial by protocol; by protocol and world if there are several worlds."""
        labels = trace_drawing.labels(self.traces)
        return {
            label or trace.protocol: {
                name: value for name, value in (trace.record["metrics"] or {}).items() if value is not None
            }
            for trace, label in zip(self.traces, labels, strict=True)
        }

    @property
    def title(self) -> str:
        """Protocols, trial and seed in one line."""
        return "; ".join(trace_drawing.headings(self.traces))

    def frame(self, table: Literal["events", "samples", "queues"]) -> polars.DataFrame:
        """Returns one of the frames by name."""
        found: polars.DataFrame = getattr(self, table)
        return found

    def to_polars(self) -> polars.DataFrame:
        """Returns `samples`."""
        return self.samples

    def table(self) -> TextTable:
        """Returns means over time of each flow: window, RTT and goodput."""
        from longfat.presentation.formatting import DASH, quantity

        units = {"cwnd_bytes": "B", "rtt_s": "s", "srtt_s": "s", "goodput_bps": "bit/s"}
        head = ("protocol", "world", "flow", "mean window", "RTT", "smoothed RTT", "goodput")
        frame = self.samples
        rows = []
        groups = (
            frame.group_by("protocol", "world", "flow", "name", maintain_order=True) if frame.width else ()
        )
        for (protocol, world, _, name), one in groups:
            means = {key: one[key].mean() if key in one.columns else None for key in units}
            shown = [
                DASH if not isinstance(mean, float) else quantity(mean, units[key])
                for key, mean in means.items()
            ]
            rows.append([str(protocol), str(world), str(name), *shown])
        return TextTable(head, rows, right=range(3, 7))

    def drawing(self, *parts: Part, flows: Sequence[str] = ()) -> dict[str, Any] | None:
        """Returns charts over time as Vega-Lite; None without samples."""
        if not all(trace.record.get("series") for trace in self.traces):
            return None
        view = View("html", ALL, tuple(flows))
        return trace_drawing.chart(view, self.traces, parts or OVER_TIME[:-1])

    def chart(self, *parts: Part, flows: Sequence[str] = ()) -> Any:
        """Returns charts over one time axis as an Altair chart, all protocols overlaid.

        Args:
            *parts: "window", "rtt", "queue", "goodput", "controller" (its own state) and "sequence" (every
                segment); by default all but the last.
            flows: Names of the flows to draw; by default all.

        Raises:
            ValueError: for an unknown part or flow, and for trials without samples.
        """
        _check(parts)
        return altair_chart(self.drawing(*parts, flows=flows))

    def queue_cdf(self, *, first: str | None = None, last: str | None = None) -> Any:
        """Returns the share of the time in which each queue has at most a length, as an Altair chart.

        Args:
            first: Start of the time, e.g. "300ms"; by default that of the samples.
            last: End of the time.

        Raises:
            ValueError: for trials without samples of queues.
        """
        start, end = (
            None if time is None else seconds_of(name, time)
            for name, time in (("first", first), ("last", last))
        )
        view = View("html", QUEUE_CDF, first=start, last=end)
        return altair_chart(trace_drawing.occupancy(view, self.traces))

    def ladder(self, *, flow: str | None = None, first: str | None = None, packets: int | None = None) -> str:
        """Returns a ladder of packets as text: departures left, arrivals right, time down.

        Args:
            flow: Name of the flow; by default the first.
            first: Start ("40ms"); by default shortly before the first loss.
            packets: Number of packets; by default 44.
        """
        start = None if first is None else seconds_of("first", first)
        view = View("text", LADDER, () if flow is None else (flow,), start, None, packets)
        return trace_drawing.draw(view, self.traces).decode()

    def qlog(self, flow: str | None = None, side: Literal["sender", "receiver"] = "sender") -> bytes:
        """Returns one connection of TCP or QUIC as qlog: what one end sent, received and measured.

        A JSON text sequence of draft-ietf-quic-qlog-main-schema-13. Times are in ms.

        Args:
            flow: Name of the flow; by default the first.
            side: The end.

        Raises:
            ValueError: for several trials, an unknown flow, trials without samples, and other protocols.
        """
        from longfat.presentation.trace import qlog

        return qlog.encoded(self.traces, () if flow is None else (flow,), side)

    def write(self, file: str | File, *parts: Part) -> None:
        """Writes data or a drawing, by the file's suffix.

        `.parquet` and `.csv` hold the table of the first part: `samples` for window, rtt, goodput and
        controller, `queues` for queue, and else `events`. `.html`, `.svg`, `.png`, `.pdf` and `.txt` are
        drawings of the parts, by default of all but the sequence. `.qlog` is `qlog()`.

        Raises:
            ValueError: for an unknown suffix or part. OSError if the file cannot be written.
        """
        from longfat.system.files import write_whole

        _check(parts)
        target = File(file)
        kind = target.suffix.removeprefix(".")
        if kind in ("parquet", "csv"):
            write_whole(target, data_file(self, kind, parts[0] if parts else ALL))
        elif kind == "qlog":
            write_whole(target, self.qlog())
        elif kind == "txt":
            shown = trace_drawing.text(View("text", ALL), self.traces, parts or OVER_TIME[:-1])
            write_whole(target, shown.encode())
        elif kind in ("html", "svg", "png", "pdf"):
            drawn = self.drawing(*parts)
            if drawn is None:
                raise ValueError("this trial has no samples to draw")
            write_whole(target, trace_drawing.rendering(drawn, self.traces, kind))  # type: ignore[arg-type]
        else:
            raise ValueError(
                f"{target}: unknown suffix; allowed: .parquet, .csv, .qlog, .html, .svg, .png, .pdf, .txt"
            )

    def _repr_html_(self) -> str:
        return Displayed._repr_html_(self)


def _check(parts: Sequence[str]) -> None:
    for part in parts:
        if part not in OVER_TIME:
            raise ParameterError("parts", f'"{part}" is no chart; allowed: {", ".join(OVER_TIME)}')


def data_file(traces: Traces, kind: str, chart: str) -> bytes:
    """Returns the table of a chart as Parquet or CSV."""
    from longfat.presentation.data_files import encoded

    return encoded(getattr(traces, _TABLE_OF.get(chart, "events")), kind)


def trace(
    protocol: Any = None,
    path: Path | Topology | Mapping[str, Any] | None = None,
    size: str | None = None,
    *,
    topology: Topology | Mapping[str, Any] | None = None,
    traffic: Any = (),
    workload: Any = None,
    duration: str | None = None,
    study: str | File | Mapping[str, Any] | Study | None = None,
    cell: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    trial: SupportsIndex = 0,
    pcapng: File | str | None = None,
    side: Side | None = None,
    snap: SupportsIndex | None = None,
    first: Duration | None = None,
    last: Duration | None = None,
    interval: Duration | None = None,
    samples: bool = True,
    world: Sequence[str] | str = ("sim",),
    seed: SupportsIndex | None = None,
) -> Traces:
    """Runs one trial for each protocol, and returns windows, RTTs, queues, goodput and every packet.

    Args:
        protocol: One protocol or a list, as in `simulate`; with a study, names of its protocols.
        path: As in `simulate`.
        size: As in `simulate`.
        topology: As in `simulate`.
        traffic: As in `simulate`.
        workload: As in `simulate`.
        duration: As in `simulate`.
        study: Instead of these: a study file, the name of a built-in study, or a `Study`.
        cell: With a study, the point of its sweep: `{"path.loss": "2%"}`; by default the first.
        settings: With a study, keys to change: `{"path.rate": "5Mbit/s"}`.
        trial: Number of the trial.
        pcapng: Output file for the packets, for Wireshark.
        side: End whose packets `pcapng` has; by default sender.
        snap: Bytes of each packet in `pcapng`; by default all.
        first: Start of the drawing, e.g. "40ms"; by default start of the trial; for a ladder, 5 data packets
            before the first lost one.
        last: End of the drawing, e.g. "90ms".
        interval: Time between samples, e.g. "1ms"; by default 1000 samples per drawing.
        samples: Whether to sample windows, RTTs and queues, which charts over time need.
        world: World: sim (virtual time) or netns (Linux kernels); several are overlaid in charts.
        seed: Random seed; by default the study's, or 1.

    Returns:
        The traced trials, in the order of protocols and then worlds.

    Raises:
        ValueError: with the key, the value and what is allowed.
        OSError: if this machine lacks what "netns" needs.

    >>> path = {"rate": "10Mbit/s", "delay": "5ms", "queue": "20pkt"}
    >>> found = trace(["reno", "cubic"], path, "200kB")
    >>> found.events.filter(what="send", frame="data", protocol="reno").height >= 200_000 // 1448
    True
    """
    worlds = tracing.worlds([world] if isinstance(world, str) else world)
    for name, value in (("side", side), ("snap", snap)):
        if value is not None and pcapng is None:
            raise ParameterError(name, "requires {pcapng}")
    if study is None:
        if cell is not None or settings is not None:
            raise ParameterError("cell" if cell is not None else "settings", "requires {study}")
        places = _of_arguments(
            protocol,
            (path, size),
            {"topology": topology, "traffic": traffic, "workload": workload, "duration": duration},
            (1 if seed is None else seed, trial),
        )
    else:
        if any(one is not None for one in (path, size, topology, workload, duration)) or traffic:
            raise ParameterError("study", "has its own path, workload and traffic")
        places = _of_study(load_study(study, _changes(settings, seed)), protocol, cell or {}, trial)
    for name, several in (("world", worlds), ("protocol", places)):
        if pcapng is not None and len(several) > 1:
            raise ParameterError("pcapng", f"takes one {{{name}}} only")
    span = (seconds("first", first), seconds("last", last))
    every = Interval(interval, seconds("interval", interval), samples)
    target = None if pcapng is None else File(pcapng)
    capture = Capture(target, None if side == "both" else side or "sender", plain(snap))
    found = []
    for place in places:
        records = tracing.run(worlds, place.spec, every, span, capture)
        for where, record in records.items():
            one = traced(place.protocol, where, place.spec, place.params, record)
            found.append(replace(one, name=place.label) if place.label else one)
    return Traces(tuple(found))


def seconds(parameter: str, text: str | None) -> float | None:
    """Returns a time in s. Raises ParameterError."""
    return None if text is None else seconds_of(parameter, text)


@dataclass(frozen=True)
class Place:
    """A trial to trace: the protocol's name, its specification, the point of the sweep, and its label."""

    protocol: str
    spec: dict[str, Any]
    params: Mapping[str, Any]
    label: str = ""


def _of_arguments(
    protocol: Any, trip: tuple[Any, Any], others: dict[str, Any], numbers: tuple[Any, Any]
) -> list[Place]:
    if protocol is None:
        raise ParameterError("protocol", 'required, e.g. "cubic"')
    listed = plain(protocol, "protocol")
    listed = listed if isinstance(listed, list) else [listed]
    named = study_tables({"protocols": listed})["protocols"]
    path, size = trip
    seed, trial = numbers
    places = []
    for one in named:
        spec = specification(one, path, size, **others, seed=seed, trial=trial)
        places.append(Place(str(one.get("name")), spec, {}, one.get("label") or ""))
    if len({place.protocol for place in places}) < len(places):
        raise ParameterError("protocol", 'two protocols have the same name; set "name"')
    return places


def _changes(settings: Mapping[str, Any] | None, seed: Any) -> Overrides:
    number = None if seed is None else whole_number(seed, "seed")
    return Overrides(tuple(plain(settings or {}).items()), seed=number, label="settings")


def _of_study(loaded: Study, protocol: Any, at: Mapping[str, Any], trial: SupportsIndex) -> list[Place]:
    names = [protocol] if isinstance(protocol, str) or protocol is None else list(protocol)
    places = []
    for name in names:
        found = find_cells(loaded, name, {key: plain(value, key) for key, value in at.items()})[0]
        spec = {**found.spec, "seed": loaded.seed, "trial": whole_number(trial, "trial")}
        places.append(Place(found.protocol, spec, found.params, found.label))
    return places
