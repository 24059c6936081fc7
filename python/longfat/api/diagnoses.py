"""`diagnose`: what limits TCP on the path to a host, by measurement and simulation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path as File
from typing import TYPE_CHECKING, Any

from longfat.analysis import diagnosis
from longfat.api import diagnosis_load, diagnosis_trials, path_figures
from longfat.api.diagnosis_input import KnownPath, saved
from longfat.api.diagnosis_study import CONTROLLERS as CONTROLLERS  # noqa: PLC0414 - re-exported
from longfat.api.diagnosis_study import protocol, study
from longfat.api.links import path as measure_path
from longfat.api.quantities import Duration, Size, whole_bytes
from longfat.api.quantities import duration as checked_duration
from longfat.measurement.host_window import host_window
from longfat.measurement.path_document import measured as measured_table
from longfat.presentation import names
from longfat.presentation.displayed import Displayed, TextTable
from longfat.presentation.measured import diagnosis_chart, diagnosis_text
from longfat.system.parameters import ParameterError
from longfat.system.progress import watching

if TYPE_CHECKING:
    import polars

    from longfat.analysis.diagnosis import PathFigures
    from longfat.api.diagnosis_trials import Prediction
    from longfat.api.links import MeasuredPath
    from longfat.measurement.load import Loaded
    from longfat.study.tables import Path

LONGEST_LOAD_S = 600
VERIFIED_TRIALS = 2
"""Trials of each controller between kernels."""
_RELIEF, _RELIEF_TRIALS = "fq-codel", 3


@dataclass(frozen=True, repr=False)
class Diagnosis(Displayed):
    """What limits TCP on a path: `cause` ("bandwidth", "window", "loss", "latency") and `conclusion`.

    `figures` are the numbers that decide, `path` is the model as the table of a study, `hops` the measured
    links with their intervals, `predictions` the trials of each controller, `measured` and `load` the
    measurements (None for a saved model). `interrupted` is true if Ctrl-C or SIGTERM stopped it.
    """

    host: str
    path: dict[str, Any]
    figures: PathFigures
    predictions: Sequence[Prediction] = ()
    hops: Sequence[Mapping[str, Any]] = ()
    relieved: float | None = None
    measured: MeasuredPath | None = None
    load: Loaded | None = None
    notes: tuple[str, ...] = ()
    interrupted: bool = False

    @property
    def cause(self) -> str:
        """The cause that decides."""
        return diagnosis.decisive(self.figures).cause

    @property
    def goodputs(self) -> dict[str, float]:
        """The mean simulated goodput by controller, in bit/s."""
        found = {one.controller: one.interval(diagnosis_trials.GOODPUT) for one in self.predictions}
        return {name: interval.value for name, interval in found.items() if interval is not None}

    @property
    def conclusion(self) -> str:
        """The cause with the goodputs, in one or two sentences."""
        return diagnosis_text.conclusion(self.figures, self.goodputs, self.relieved)

    @property
    def title(self) -> str:
        """The host and the conclusion."""
        return f"{self.host}: {self.conclusion}"

    def table(self) -> TextTable:
        """Returns a row for each controller: means, and intervals that contain 95 % of transfers."""
        metrics = (diagnosis_trials.GOODPUT, diagnosis_trials.RTT)
        return diagnosis_text.table(
            [
                (
                    one.controller,
                    [
                        (one.interval(metric), one.between_kernels(metric), one.covers(metric))
                        for metric in metrics
                    ],
                )
                for one in self.predictions
                if one.trials
            ]
        )

    def remarks(self) -> list[str]:
        """Returns the rate that each cause allows, the worst links, and the queue under load."""
        links = path_figures.worst_links(self.path, self.host, self.hops)
        problems = [
            f"Not verified: {names.protocol(one.controller)}: {one.problem}"
            for one in self.predictions
            if one.problem
        ]
        return [
            *diagnosis_text.reasons(self.figures),
            *([links] if links else []),
            diagnosis_text.queue(self.figures),
            *self.notes,
            *problems,
            diagnosis_text.SCOPE,
        ]

    def to_polars(self) -> polars.DataFrame:
        """Returns one row for each trial: controller, world, trial, and metrics in SI units."""
        import polars as pl

        rows = [
            {"controller": one.controller, "world": world, "trial": number, **trial}
            for one in self.predictions
            for world, trials in (("sim", one.trials), ("netns", one.kernel))
            for number, trial in enumerate(trials)
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    def drawing(self) -> dict[str, Any] | None:
        """Returns the goodput of the controllers as Vega-Lite; None without trials."""
        found = [
            (names.protocol(one.controller), interval)
            for one in self.predictions
            if (interval := one.interval(diagnosis_trials.GOODPUT)) is not None
        ]
        return diagnosis_chart.goodputs(found) if found else None

    def to_study(self) -> dict[str, Any]:
        """Returns the tables of the study that compares the controllers, for the worlds sim and netns."""
        return study(self.host, self.path, self.figures)

    def write_study(self, file: str | File) -> None:
        """Writes the study for `longfat run`, with the conclusion as comment. Raises OSError."""
        import tomli_w

        from longfat.system.files import write_whole

        comments = "".join(f"# {line}\n" for line in (self.title, *self.remarks()))
        write_whole(File(file), (comments + tomli_w.dumps(self.to_study())).encode())

    def document(self) -> dict[str, Any]:
        """Returns all figures as JSON values; `diagnose(model=FILE)` reads them again."""
        figures = self.figures
        return {
            "host": self.host,
            "cause": self.cause,
            "conclusion": self.conclusion,
            "interrupted": self.interrupted,
            "rate_bps": figures.rate,
            "round_trip_s": figures.round_trip,
            "loss_each_way": figures.loss,
            "window_bytes": figures.window if math.isfinite(figures.window) else None,
            "size_bytes": figures.size,
            "queueing_s": figures.queueing,
            "queue_limit": figures.queue_limit,
            "queueing_relieved_s": self.relieved,
            "allowed_bps": {one.cause: one.rate for one in diagnosis.ceilings(figures)},
            "controllers": [one.document() for one in self.predictions if one.trials],
            "notes": list(self.notes),
            "load": None if self.load is None else self.load.to_json(),
            "measured": None if self.measured is None else self.measured.document,
            "path": self.path,
        }


def diagnose(
    host: str | None = None,
    *,
    model: File | str | Path | Mapping[str, Any] | None = None,
    size: Size | None = None,
    window: Size | None = None,
    limit_bytes: Size = "50MB",
    duration: Duration = "10s",
    time: Duration = "60s",
    port: int | None = None,
    seeds: int = 20,
    verify: bool = False,
    progress: bool | None = None,
) -> Diagnosis:
    """Finds what limits TCP on the path from here to a host: bandwidth, window, loss or latency (Linux).

    Measures the links of the path, then RTT and loss under load (echo requests of full packets), and
    simulates all controllers on random paths that fit the measurement. The connections of programs are not
    examined.

    Args:
        host: Name or address of a host that answers ICMP echo, or runs `longfat echo` at `port`.
        model: Path model (.toml) or an earlier diagnosis (the output of --json, .json) instead of a host.
        size: Size of a file; by default a transfer without end.
        window: Largest TCP window; by default half of this host's smaller buffer limit.
        limit_bytes: Most bytes of load.
        duration: Longest load.
        time: Longest measurement of the path before the load.
        port: UDP port of `longfat echo` at the host, for the load; by default ICMP echo.
        seeds: Simulated trials of each controller, each on another path.
        verify: Trials of each controller between Linux kernels on the measured path as well, for comparison
            (root or user namespaces).
        progress: Whether to show the progress; by default in a notebook or at a prompt.

    Returns:
        Cause, conclusion, and the goodput of each controller with the interval of 95 % of transfers. After
        Ctrl-C, what was found so far.

    Raises:
        ValueError: with the parameter and what is allowed; also if no link's bandwidth was measured.
        OSError: if the system refuses to probe.
        KeyboardInterrupt: on Ctrl-C before any link's bandwidth was measured.
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
    measured, loaded, notes, interrupted = None, None, [], False
    if host is not None:
        measured = measure_path(host, time=time, window=2, progress=progress)
        known = KnownPath(host, measured_path(measured), measured_table(measured.document)["hops"])
        if measured.interrupted:
            interrupted, known = True, replace(known, queue_limit="assumed")
            notes = ["Path: Ctrl-C or SIGTERM stopped the measurement; no load"]
        else:
            loaded = diagnosis_load.load(host, known.path, measured, limits, port, progress)
            path, limit = diagnosis_load.with_measured_queue(known.path, host, loaded)
            known = replace(known, path=path, queueing=loaded.queueing, queue_limit=limit)
            interrupted, notes = loaded.ended_by == "interrupt", diagnosis_load.notes(loaded)
    else:
        known = saved(model)
    figures = path_figures.figures(
        known.path, known.name, queueing=known.queueing, queue_limit=known.queue_limit, **more
    )
    found = Diagnosis(
        known.name, known.path, figures, (), known.hops, None, measured, loaded, tuple(notes), interrupted
    )
    if interrupted:
        return replace(found, notes=(*notes, "Simulation: not started"))
    return _predicted(found, seeds, progress, verify=verify)


def _predicted(found: Diagnosis, trials: int, progress: bool | None, *, verify: bool) -> Diagnosis:
    """Returns a diagnosis with the trials of all controllers."""
    tables, figures = found.to_study(), found.figures
    notes = list(found.notes)
    display = watching(progress)

    def show(text: str) -> None:
        display.show("trials", text)

    try:
        predictions, interrupted = diagnosis_trials.simulated(tables, found.hops, figures, trials, show)
        if interrupted:
            done = sum(len(one.trials) for one in predictions)
            notes.append(
                f"Simulation: Ctrl-C or SIGTERM stopped it after {done} of {trials * len(predictions)} trials"
            )
        relieved = None
        if not interrupted and found.cause == diagnosis.BANDWIDTH and figures.has_long_queue:
            relieved, interrupted = _relieved(found, show)
        if verify and not interrupted:
            predictions, interrupted = diagnosis_trials.verified(
                predictions, tables, figures.rate, VERIFIED_TRIALS, show
            )
            if interrupted:
                notes.append("Verification: Ctrl-C or SIGTERM stopped it")
    finally:
        display.close()
    return replace(
        found, predictions=tuple(predictions), relieved=relieved, notes=tuple(notes), interrupted=interrupted
    )


def measured_path(found: MeasuredPath) -> dict[str, Any]:
    """Returns a measured path as the table of a study.

    Raises ValueError without any bandwidth, KeyboardInterrupt if that is because Ctrl-C stopped it.
    """
    if found.interrupted and not found.links:
        raise KeyboardInterrupt
    path: dict[str, Any] = found.to_path().to_study()
    if not any("rate" in hop for hop in path["hops"]):
        if found.interrupted:
            raise KeyboardInterrupt
        raise ValueError(
            f"{found.document['host']}: every link is too fast to measure its bandwidth, so there is no "
            "bottleneck to diagnose"
        )
    return path


def _seconds(text: str) -> float:
    return checked_duration("duration", text, 0.1, LONGEST_LOAD_S)


def _relieved(found: Diagnosis, show: diagnosis_trials.Show) -> tuple[float | None, bool]:
    """Returns the 99th percentile of CUBIC's queueing delay with FQ-CoDel at the bottleneck, in s."""
    endless = replace(found.figures, size=None, queue_limit="given")
    changed = path_figures.with_queue(found.path, found.host, _RELIEF)
    tables = study(found.host, changed, endless)
    tables["protocols"] = [protocol(diagnosis_text.REFERENCE, endless)]
    (cubic,), interrupted = diagnosis_trials.simulated(tables, (), endless, _RELIEF_TRIALS, show)
    delay = cubic.interval("queueing_delay_p99_s")
    return (None if delay is None else delay.value), interrupted
