"""`diagnose`: what limits TCP on the path to a host, by measurement and simulation."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path as File
from typing import TYPE_CHECKING, Any

from longfat.analysis import diagnosis
from longfat.analysis.ping_summary import rows
from longfat.api import path_figures
from longfat.api.defaults import ECHO_PORT
from longfat.api.links import path as measure_path
from longfat.api.quantities import duration as checked_duration
from longfat.api.quantities import whole_bytes
from longfat.api.round_trips import ping
from longfat.measurement import load as under_load
from longfat.measurement.host_window import host_window
from longfat.parameters import ParameterError
from longfat.presentation import diagnosis_text
from longfat.presentation.displayed import Displayed, TextTable
from longfat.progress import watching
from longfat.study.path_model import read as read_model

if TYPE_CHECKING:
    import polars

    from longfat.analysis.diagnosis import PathFigures
    from longfat.api.links import MeasuredPath
    from longfat.measurement.load import Loaded
    from longfat.presentation.displayed_run import Run
    from longfat.study.tables import Path

CONTROLLERS = ("reno", "cubic", "vegas", "westwood", "bbr", "bbr1", "bbr-tolerant")
"""The controllers of single-path TCP."""
LONGEST_LOAD_S = 600
_HEADERS = 28
_METRICS = ("goodput_bps", "rtt_p50_s", "retransmissions")
"""Bytes of the headers of an echo request over IPv4, by ICMP and by UDP."""
_LEAST_INTERVAL_S = 0.0002
_PACKETS = 50_000
_SHORTEST_S, _LONGEST_S = 5.0, 20.0
_RELIEF = "fq-codel"


@dataclass(frozen=True, repr=False)
class Diagnosis(Displayed):
    """What limits TCP on a path: `cause` ("bandwidth", "window", "loss", "latency") and `conclusion`.

    `figures` are the numbers that decide, `path` is the model as the table of a study, `run` the simulated
    controllers, `measured` and `load` the measurements (None for a saved model).
    """

    host: str
    path: dict[str, Any]
    figures: PathFigures
    run: Run
    relieved: float | None = None
    measured: MeasuredPath | None = None
    load: Loaded | None = None
    notes: tuple[str, ...] = ()

    @property
    def cause(self) -> str:
        """The cause that decides."""
        return diagnosis.decisive(self.figures).cause

    @property
    def goodputs(self) -> dict[str, float]:
        """The simulated goodput by controller, in bit/s."""
        return {
            cell.cell.protocol: cell.metrics["goodput_bps"].value
            for cell in self.run.cells
            if "goodput_bps" in cell.metrics
        }

    @property
    def conclusion(self) -> str:
        """The cause with the goodputs, in one or two sentences."""
        return diagnosis_text.conclusion(self.figures, self.goodputs, self.relieved)

    @property
    def title(self) -> str:
        """The host and the conclusion."""
        return f"{self.host}: {self.conclusion}"

    def table(self) -> TextTable:
        """Returns a row for each controller, simulated on the model."""
        shown = self.run.table("goodput", "rtt_p50")
        names = [[diagnosis_text.controller(row[0]), *row[1:]] for row in shown.rows]
        return TextTable(["Controller", *shown.head[1:]], names, right=shown.right)

    def remarks(self) -> list[str]:
        """Returns the rate that each cause allows, the worst links, and the queue under load."""
        links = path_figures.worst_links(self.path, self.host)
        return [
            *diagnosis_text.reasons(self.figures),
            *([links] if links else []),
            diagnosis_text.queue(self.figures),
            *self.notes,
        ]

    def to_polars(self) -> polars.DataFrame:
        """Returns one row for each simulated trial."""
        return self.run.to_polars()

    def drawing(self) -> dict[str, Any] | None:
        """Returns the goodput of the controllers as Vega-Lite."""
        return self.run.drawing("goodput")

    def to_study(self) -> dict[str, Any]:
        """Returns the tables of the study that simulates the controllers."""
        return study(self.host, self.path, self.figures)

    def write_study(self, file: str | File) -> None:
        """Writes the study for `longfat run`, with the conclusion as comment. Raises OSError."""
        import tomli_w

        from longfat.files import write_whole

        comments = "".join(f"# {line}\n" for line in (self.title, *self.remarks()))
        write_whole(File(file), (comments + tomli_w.dumps(self.to_study())).encode())

    def document(self) -> dict[str, Any]:
        """Returns all figures as JSON values; `diagnose(model=FILE)` reads them again."""
        figures = self.figures
        return {
            "host": self.host,
            "cause": self.cause,
            "conclusion": self.conclusion,
            "rate_bps": figures.rate,
            "round_trip_s": figures.round_trip,
            "loss_each_way": figures.loss,
            "window_bytes": figures.window if math.isfinite(figures.window) else None,
            "size_bytes": figures.size,
            "queueing_s": figures.queueing,
            "queueing_relieved_s": self.relieved,
            "allowed_bps": {one.cause: one.rate for one in diagnosis.ceilings(figures)},
            "controllers": [
                {
                    "name": cell.cell.protocol,
                    **{name: cell.metrics[name].to_json() for name in _METRICS if name in cell.metrics},
                }
                for cell in self.run.cells
                if "goodput_bps" in cell.metrics
            ],
            "notes": list(self.notes),
            "load": None if self.load is None else self.load.to_json(),
            "measured": None if self.measured is None else self.measured.document,
            "path": self.path,
        }


def diagnose(
    host: str | None = None,
    *,
    model: str | File | Path | Mapping[str, Any] | None = None,
    size: str | None = None,
    window: str | None = None,
    limit_bytes: str = "50MB",
    duration: str = "10s",
    time: str = "60s",
    port: int | None = None,
    seeds: int = 10,
    progress: bool | None = None,
) -> Diagnosis:
    """Finds what limits TCP from here to a host: bandwidth, window, loss or latency (Linux).

    Measures the links of the path, then RTT and loss under load (echo requests of full packets), and
    simulates all controllers on the resulting model.

    Args:
        host: Name or address. It must answer ICMP echo, or run `longfat echo` at `port`.
        model: Instead of a host, the file of a path model or of an earlier diagnosis (`--json`), or a path.
        size: Size of a file; by default a transfer without end.
        window: Largest TCP window of the hosts; by default half of this host's smaller buffer limit.
        limit_bytes: Most bytes of load.
        duration: Longest load.
        time: Longest measurement of the path before the load.
        port: UDP port of `longfat echo` on the host, for the load.
        seeds: Simulated trials of each controller.
        progress: Whether to show the progress; by default in a notebook or at a prompt.

    Returns:
        Cause, conclusion, and the goodput of each controller with intervals.

    Raises:
        ValueError: with the parameter and what is allowed; also if no link's bandwidth was measured.
        OSError: if the system refuses to probe.
    """
    if (host is None) == (model is None):
        raise ParameterError("", "set either {host} or {model}")
    limits = (whole_bytes("limit_bytes", limit_bytes), _seconds(duration))
    more: dict[str, Any] = {
        "window": float(host_window() if window is None else whole_bytes("window", window)),
        "size": None if size is None else float(whole_bytes("size", size)),
    }
    if window is not None and more["window"] >= 2**29:
        raise ParameterError("window", f'"{window}" is out of range: below 512MiB')
    measured, loaded, notes = None, None, []
    if host is not None:
        measured = measure_path(host, time=time, window=2, progress=progress)
        name, path = host, measured_path(measured)
        loaded = _load(host, path, measured, limits, port, progress)
        queueing = loaded.queueing
        if loaded.overflows and loaded.longest_queueing:
            _, _, rate = path_figures.bottleneck(path, name)
            path = path_figures.with_queue(path, name, max(loaded.longest_queueing * rate / 8, 3000.0))
        notes = _notes(loaded)
    else:
        name, path, queueing = _saved(model)
    figures = path_figures.figures(path, name, queueing=queueing, **more)
    run = _simulated(study(name, path, figures), seeds, progress)
    fills = diagnosis.decisive(figures).cause == diagnosis.BANDWIDTH
    relieved = _relieved(name, path, figures, progress) if fills and figures.has_long_queue else None
    return Diagnosis(name, path, figures, run, relieved, measured, loaded, tuple(notes))


def study(host: str, path: dict[str, Any], figures: PathFigures) -> dict[str, Any]:
    """Returns the tables of a study of all controllers on a path."""
    return {
        "title": f"Controllers on the path to {host}",
        "repeats": 20,
        "show": ["goodput", "rtt_p50", "retransmissions"],
        "path": path,
        "workload": _workload(figures),
        "protocols": [_protocol(name, figures) for name in CONTROLLERS],
    }


def measured_path(found: MeasuredPath) -> dict[str, Any]:
    """Returns a measured path as the table of a study. Raises ValueError without any bandwidth."""
    path: dict[str, Any] = found.to_path().to_study()
    if not any("rate" in hop for hop in path["hops"]):
        raise ValueError(
            f"{found.document['host']}: every link is too fast to measure its bandwidth, so there is no "
            "bottleneck to diagnose"
        )
    return path


def _seconds(text: str) -> float:
    return checked_duration("duration", text, 0.1, LONGEST_LOAD_S)


def _workload(figures: PathFigures) -> dict[str, Any]:
    if figures.size is not None:
        return {"kind": "file", "size": f"{int(figures.size)}B"}
    by_packets = _PACKETS * 8 * diagnosis.SEGMENT / figures.rate
    seconds = max(min(by_packets, _LONGEST_S), _SHORTEST_S, 50 * figures.round_trip)
    return {"kind": "bulk", "duration": f"{seconds:.1f}s", "warm_up": f"{seconds / 4:.1f}s"}


def _protocol(name: str, figures: PathFigures) -> dict[str, Any]:
    settings: dict[str, Any] = {"name": name, "kind": "tcp", "congestion": name}
    if math.isfinite(figures.window):
        whole = int(figures.window)
        settings |= {
            "receive_buffer": f"{whole}B",
            "receive_overhead": "0B",
            "receive_autotuning": False,
            "send_buffer": f"{4 * whole}B",
        }
    return settings


def _simulated(tables: dict[str, Any], seeds: int, progress: bool | None) -> Run:
    from longfat.api.sweeps import sweep

    return sweep(tables, seeds=seeds, progress=progress)


def _relieved(name: str, path: dict[str, Any], figures: PathFigures, progress: bool | None) -> float:
    """Returns the median queueing delay of CUBIC with FQ-CoDel at the bottleneck, in s."""
    endless = replace(figures, size=None)
    changed = path_figures.with_queue(path, name, _RELIEF)
    tables = study(name, changed, endless)
    tables["protocols"] = [_protocol(diagnosis_text.REFERENCE, endless)]
    (cell,) = _simulated(tables, 3, progress).cells
    return cell.metrics["queueing_delay_p50_s"].value


def _load(
    host: str,
    path: dict[str, Any],
    measured: MeasuredPath,
    limits: tuple[int, float],
    port: int | None,
    progress: bool | None,
) -> Loaded:
    _, _, rate = path_figures.bottleneck(path, host)
    trip = path_figures.echo_round_trip(path, host)
    limit, seconds = limits
    display = watching(progress)
    try:
        return under_load.measure(
            _sender(host, port, trip),
            rate=rate,
            round_trip=trip,
            loss=measured.document["loss_round_trip"] or 0.0,
            seconds=seconds,
            limit=limit,
            show=lambda text: display.show("load", f"Load: {text}"),
        )
    finally:
        display.close()


def _sender(host: str, port: int | None, trip: float) -> Callable[[int, float, int], list[float | None]]:
    protocol: Any = "icmp" if port is None else "udp"
    payload = under_load.PACKET - _HEADERS

    def send(window: int, rate: float, count: int) -> list[float | None]:
        gap = 1 / rate
        pace: dict[str, Any] = (
            {"interval": f"{gap * 1e3:.6f}ms"}
            if gap >= _LEAST_INTERVAL_S
            else {"flood": True, "rate": math.ceil(rate)}
        )
        found = ping(
            host,
            sizes=payload,
            count=count,
            protocol=protocol,
            port=port or ECHO_PORT,
            window=window,
            timeout=f"{max(2.0, 10 * trip):.3f}s",
            progress=False,
            **pace,
        )
        if found.interrupted:
            raise KeyboardInterrupt
        clock = "kernel_s" if found.summary.clock == "kernel" else "application_s"
        return [
            float(row[clock] or row["application_s"]) if row["state"] == "answered" else None
            for row in rows(found.report)
        ]

    return send


def _notes(loaded: Loaded) -> list[str]:
    """Returns remarks about the load."""
    if loaded.idle is None:
        return ["Load: the host does not answer echo requests; run longfat echo there and set its port"]
    sent = f"{loaded.sent_bytes / 1e6:.1f} MB"
    if loaded.overflows:
        assert loaded.loss is not None
        return [f"Load: {sent} until the queue overflowed, with {loaded.loss:.1%} unanswered"]
    reasons = {
        "bytes": "the limit of bytes was reached",
        "time": "the limit of time was reached",
        "window": "the largest window was reached",
        "interrupt": "Ctrl-C stopped it",
        "no answers": "answers stopped",
    }
    return [f"Load: {sent}; the queue did not overflow before {reasons[loaded.ended_by]}"]


def _saved(model: Any) -> tuple[str, dict[str, Any], float | None]:
    """Returns name, path and queueing delay of a saved model, of a document, or of a path."""
    if isinstance(model, str | File):
        file = File(model)
        if file.suffix == ".json":
            return _of_document(file)
        found = read_model(file)
        return str(found.measured.get("host", file.stem)), found.path, None
    from longfat.study.tables import refuse, table_of

    table = table_of(model, "path")
    refuse("path", table)
    return "path", table, None


def _of_document(file: File) -> tuple[str, dict[str, Any], float | None]:
    from longfat.study.tables import refuse

    try:
        document = json.loads(file.read_text(encoding="utf-8"))
        host, path, queueing = document["host"], document["path"], document["queueing_s"]
    except OSError as error:
        raise ValueError(f"{file}: cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{file}: is not the document of longfat diagnose --json") from None
    refuse("path", path)
    return str(host), dict(path), None if queueing is None else float(queueing)
