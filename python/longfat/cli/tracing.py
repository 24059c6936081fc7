"""Running a trial so that it can be drawn: in simulation, on real kernels, or in both."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WORLDS = ("sim", "netns")
SAMPLES, MOST_SAMPLES = 1000, 20_000
"""Samples in the time that is drawn, and the most in all of a trial."""
SHORTEST = {"sim": 1e-6, "netns": 1e-3}
"""The least time between samples, in s: a kernel's connections are asked by a thread that must wake up."""

Span = tuple[float | None, float | None]
"""The time that is drawn, in s."""


@dataclass(frozen=True)
class Interval:
    """The time between samples as it was asked for, as text and in s; without `wanted` there are none."""

    text: str | None
    seconds: float | None
    wanted: bool


@dataclass(frozen=True)
class Capture:
    """The file of packets, whose packets it holds (None: both ends'), and how many bytes of each."""

    path: Path | None
    side: str | None
    snap: int | None


def worlds(asked: Sequence[str]) -> tuple[str, ...]:
    """The worlds to run in, each once, in the order asked; ValueError for one that gives no trace."""
    from longfat.study.vocabulary import allowed

    for name in asked:
        if name not in WORLDS:
            raise ValueError(f'--world: "{name}" gives no trace; {allowed(name, WORLDS)}')
    return tuple(dict.fromkeys(asked)) or WORLDS[:1]


def run(
    chosen: Sequence[str], spec: Mapping[str, Any], interval: Interval, span: Span, capture: Capture
) -> dict[str, dict[str, Any]]:
    """The trial's record in each world, with its events and samples; the packets are written beside."""
    for world in chosen:
        if interval.seconds is not None and interval.seconds < SHORTEST[world]:
            least = "1us" if world == "sim" else "1ms in netns"
            raise ValueError(f'--interval: "{interval.text}" is too short: at least {least}')
    needs_length = "netns" in chosen or (interval.wanted and interval.seconds is None)
    whole = _length(spec) if needs_length else 0.0
    records = {}
    for world in chosen:
        every = None
        if interval.wanted:
            every = interval.seconds or max(_between(whole, span), SHORTEST[world])
        records[world] = _written(_tracer(world, spec, whole), every, capture)
    return records


def _length(spec: Mapping[str, Any]) -> float:
    """How long a trial takes, in s: it is run in simulation, which is quick where nobody looks on."""
    from longfat import _native
    from longfat.flow_table import flow_table
    from longfat.study import units

    record = json.loads(_native.simulate(json.dumps(spec)))
    ends: list[float] = []
    if columns := record.get("flows"):
        flows = flow_table(columns)
        ends += (flows["opened_s"] + flows["fct_s"].fill_null(0.0)).to_list()
    duration = spec["workload"].get("duration")
    ends += [float(units.parse(duration).value)] if duration is not None else []
    return max(ends, default=1.0)


def _between(whole: float, span: Span) -> float:
    """Time between samples in s: a thousandth of what is shown, as far as the whole trial is not too long."""
    first, last = span
    shown = min(whole, whole if last is None else last) - (first or 0.0)
    exact = max(shown / SAMPLES, whole / MOST_SAMPLES, SHORTEST["sim"])
    # A round number of nanoseconds: 1, 2 or 5 and zeros.
    power = 10.0 ** math.floor(math.log10(exact))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= exact * 0.999)


Tracer = Callable[[dict[str, Any]], dict[str, Any]]


def _tracer(world: str, spec: Mapping[str, Any], whole: float) -> Tracer:
    """What runs the trial in a world, given the keywords of `_native.trace`."""
    if world == "netns":
        return lambda asked: _on_kernels(dict(spec), asked, whole)
    from longfat import _native

    return lambda asked: dict(json.loads(_native.trace(json.dumps(spec), **asked)))


def _on_kernels(spec: dict[str, Any], asked: dict[str, Any], whole: float) -> dict[str, Any]:
    from longfat.runner.netns import Netns
    from longfat.runner.processes import PATIENCE_FACTOR, PATIENCE_S, EndpointError

    executor = Netns(1)
    try:
        return executor.trace(spec, asked, whole * PATIENCE_FACTOR + PATIENCE_S)
    except EndpointError as error:
        raise OSError(str(error)) from None
    finally:
        executor.close()


def _written(tracer: Tracer, every: float | None, capture: Capture) -> dict[str, Any]:
    """The record; packets are written next to their place and renamed there."""
    from longfat.files import TEMPORARY, is_special

    if capture.path is None:
        return tracer({"interval": every})
    if is_special(capture.path):
        path, side, snap = str(capture.path), capture.side, capture.snap
        return tracer({"pcapng": path, "interval": every, "side": side, "snap": snap})
    temporary = capture.path.with_name(f".{capture.path.name}{TEMPORARY}")
    asked = {"pcapng": str(temporary), "interval": every, "side": capture.side, "snap": capture.snap}
    try:
        record = tracer(asked)
        temporary.replace(capture.path)
    except OSError as error:
        if error.errno is None:
            raise OSError(str(error).replace(str(temporary), str(capture.path))) from None
        raise OSError(error.errno, os.strerror(error.errno), str(capture.path)) from None
    finally:
        temporary.unlink(missing_ok=True)
    return record
