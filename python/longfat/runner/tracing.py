"""Traced trials, in simulation and on real kernels."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longfat.analysis.series_arrivals import add_arrivals
from longfat.system.parameters import ParameterError

WORLDS = ("sim", "netns")
SAMPLES, MOST_SAMPLES = 1000, 20_000
"""Samples in a drawing, and the most in a whole trial."""
SHORTEST = {"sim": 1e-6, "netns": 1e-3}
"""Shortest time between samples, in s: a thread must wake up to sample a kernel's connections."""

Span = tuple[float | None, float | None]
"""Start and end of a drawing, in s."""


@dataclass(frozen=True)
class Interval:
    """The requested time between samples, as text and in s; without `wanted` there are no samples."""

    text: str | None
    seconds: float | None
    wanted: bool


@dataclass(frozen=True)
class Capture:
    """The file of packets, the end that captures them (None: both), and the bytes of each packet."""

    path: Path | None
    side: str | None
    snap: int | None


def worlds(requested: Sequence[str]) -> tuple[str, ...]:
    """Returns the requested worlds without duplicates. Raises ParameterError for a world without traces."""
    from longfat.study.vocabulary import allowed

    for name in requested:
        if name not in WORLDS:
            raise ParameterError("world", f'"{name}" has no traces; {allowed(name, WORLDS)}')
    return tuple(dict.fromkeys(requested)) or WORLDS[:1]


def run(
    chosen: Sequence[str], spec: Mapping[str, Any], interval: Interval, span: Span, capture: Capture
) -> dict[str, dict[str, Any]]:
    """Returns the trial's record in each world, with events and samples, and writes the capture."""
    for world in chosen:
        if interval.seconds is not None and interval.seconds < SHORTEST[world]:
            least = "1us" if world == "sim" else "1ms in netns"
            raise ParameterError("interval", f"{interval.text} is out of range: at least {least}")
    needs_length = "netns" in chosen or (interval.wanted and interval.seconds is None)
    whole = length(spec) if needs_length else 0.0
    records = {}
    for world in chosen:
        every = None
        if interval.wanted:
            every = interval.seconds or max(_between(whole, span), SHORTEST[world])
        records[world] = _captured(_tracer(world, spec, whole), every, capture)
        add_arrivals(records[world])
    return records


def length(spec: Mapping[str, Any]) -> float:
    """Returns the duration of a trial in s: its flows' ends, or else its last event, in a simulation."""
    from longfat import _native
    from longfat.study import units
    from longfat.system.flow_table import flow_table

    record = json.loads(_native.simulate(json.dumps(spec)))
    ends: list[float] = []
    if columns := record.get("flows"):
        flows = flow_table(columns)
        ends += (flows["opened_s"] + flows["fct_s"].fill_null(0.0)).to_list()
    duration = spec["workload"].get("duration")
    ends += [float(units.parse(duration).value)] if duration is not None else []
    if not any(ends):
        # Requests and pages have no flow completion time.
        ends = [event["time"] for event in json.loads(_native.trace(json.dumps(spec)))["events"]]
    return max(ends, default=1.0)


def _between(whole: float, span: Span) -> float:
    """Returns the time between samples in s: 1/1000 of the drawing, or more for a long trial."""
    first, last = span
    shown = min(whole, whole if last is None else last) - (first or 0.0)
    exact = max(shown / SAMPLES, whole / MOST_SAMPLES, SHORTEST["sim"])
    # A round number of nanoseconds: 1, 2 or 5 and zeros.
    power = 10.0 ** math.floor(math.log10(exact))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= exact * 0.999)


Tracer = Callable[[dict[str, Any]], dict[str, Any]]


def _tracer(world: str, spec: Mapping[str, Any], whole: float) -> Tracer:
    """Returns a function that runs the trial in a world with the keywords of `_native.trace`."""
    if world == "netns":
        return lambda options: _on_kernels(dict(spec), options, whole)
    from longfat import _native

    return lambda options: dict(json.loads(_native.trace(json.dumps(spec), **options)))


def _on_kernels(spec: dict[str, Any], options: dict[str, Any], whole: float) -> dict[str, Any]:
    from longfat.worlds.netns import Netns
    from longfat.worlds.processes import TIMEOUT_FACTOR, TIMEOUT_MARGIN_S, EndpointError

    executor = Netns(1)
    try:
        return executor.trace(spec, options, whole * TIMEOUT_FACTOR + TIMEOUT_MARGIN_S)
    except EndpointError as error:
        raise OSError(str(error)) from None
    finally:
        executor.close()


def _captured(tracer: Tracer, every: float | None, capture: Capture) -> dict[str, Any]:
    """Returns the record; the capture appears at its path once it is complete."""
    from longfat.system.files import produce_whole

    if capture.path is None:
        return tracer({"interval": every})
    extent = {"interval": every, "side": capture.side, "snap": capture.snap}
    return produce_whole(capture.path, lambda file: tracer({"pcapng": str(file), **extent}))
