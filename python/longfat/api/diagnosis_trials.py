"""Trials of a diagnosis: simulated on random paths that fit the measurement, and between Linux kernels."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from longfat import _native
from longfat.analysis.forecast import bounded, prediction_interval
from longfat.api import path_figures
from longfat.api.parallel import parallel
from longfat.measurement.path_draws import drawn
from longfat.study.vocabulary import canonical
from longfat.worlds.environment import available_cores

if TYPE_CHECKING:
    from longfat.analysis.diagnosis import PathFigures, QueueLimit
    from longfat.results.run import Interval

GOODPUT, RTT = "goodput_bps", "rtt_p50_s"
METRICS = (GOODPUT, RTT, "retransmissions")
MODEL_ERROR = {GOODPUT: 0.03, RTT: 0.07}
"""Relative standard deviation between Linux kernels and the simulation of the same path: phases of
controllers differ, and hosts delay packets. Set by eye after the first paths of
benchmarks/diagnose_accuracy.py."""
_SEED = 0xD1A6
_TIMEOUT_FACTOR, _TIMEOUT_S = 4, 60.0
_PACKETS_PER_CORE = 6_000
"""Load of parallel trials between kernels for each core, in packets/s of both directions."""
_MOST_JOBS = 4
_BOTH_DIRECTIONS = 1.5

Metrics = Mapping[str, float]
Show = Callable[[str], None]


@dataclass(frozen=True)
class Prediction:
    """The trials of one controller: simulated ones, and those between Linux kernels of `verify`.

    `problem` is why there are none between kernels. No goodput is above `fastest`, in bit/s.
    """

    controller: str
    trials: tuple[Metrics, ...]
    kernel: tuple[Metrics, ...] = ()
    problem: str | None = None
    fastest: float = math.inf

    def interval(self, metric: str) -> Interval | None:
        """Returns the mean of a metric, and the interval in which one transfer is expected with 95 %."""
        values = [trial[metric] for trial in self.trials if metric in trial]
        if not values:
            return None
        found = prediction_interval(values, MODEL_ERROR.get(metric, 0.0))
        return bounded(found, most=self.fastest) if metric == GOODPUT else found

    def between_kernels(self, metric: str) -> list[float]:
        """Returns a metric of each trial between kernels."""
        return [trial[metric] for trial in self.kernel if metric in trial]

    def covers(self, metric: str) -> bool | None:
        """Whether the interval contains the mean between kernels; None without such trials."""
        values, interval = self.between_kernels(metric), self.interval(metric)
        if not values or interval is None:
            return None
        found = sum(values) / len(values)
        return interval.low <= found <= interval.high

    def document(self) -> dict[str, Any]:
        """Returns the intervals and the trials between kernels as JSON values."""
        found: dict[str, Any] = {"name": self.controller}
        for metric in METRICS:
            interval = self.interval(metric)
            if interval is not None:
                found[metric] = interval.to_json()
        if self.kernel or self.problem:
            found["between_kernels"] = {
                **{metric: self.between_kernels(metric) for metric in METRICS},
                "is_covered": {metric: self.covers(metric) for metric in (GOODPUT, RTT)},
                "problem": self.problem,
            }
        return found


def simulated(
    tables: Mapping[str, Any],
    hops: Sequence[Mapping[str, Any]],
    figures: PathFigures,
    trials: int,
    show: Show,
) -> tuple[list[Prediction], bool]:
    """Simulates each protocol of a study once on each of `trials` random paths.

    `hops` are the measured links with their intervals. Returns the predictions, and whether Ctrl-C stopped
    them: then the finished trials are there.
    """
    paths = _paths(tables["path"], hops, figures.queue_limit, trials)
    cancel = _native.Cancel()
    specs = [(one, number) for number in range(trials) for one in tables["protocols"]]

    def run(protocol: Mapping[str, Any], number: int) -> Metrics | str:
        spec = _spec(tables, protocol, paths[number], number)
        return _metrics(json.loads(_native.simulate(canonical(spec), cancel)))

    found, interrupted = parallel(
        [partial(run, one, number) for one, number in specs],
        available_cores(),
        cancel.cancel,
        lambda done: show(f"simulation: {done} of {len(specs)} trials"),
    )
    by_name: dict[str, list[Metrics]] = {one["name"]: [] for one in tables["protocols"]}
    for (one, _), metrics in zip(specs, found, strict=True):
        if isinstance(metrics, Mapping):
            by_name[one["name"]].append(metrics)
    fastest = max(path_figures.bottleneck(path, "path")[2] for path in paths)
    return [Prediction(name, tuple(kept), fastest=fastest) for name, kept in by_name.items()], interrupted


def verified(
    predictions: Sequence[Prediction], tables: Mapping[str, Any], rate: float, trials: int, show: Show
) -> tuple[list[Prediction], bool]:
    """Runs each protocol of a study between Linux kernels, on the study's path.

    `rate` is that of the bottleneck in bit/s. Returns the predictions with these trials, and whether Ctrl-C
    stopped them.
    """
    from longfat.runner.tracing import length
    from longfat.worlds.netns import Netns

    specs = [(one, number) for number in range(trials) for one in tables["protocols"]]
    load = rate / (8 * 1500) * _BOTH_DIRECTIONS
    jobs = max(1, min(_MOST_JOBS, int(_PACKETS_PER_CORE * available_cores() / load)))
    executor = Netns(jobs)

    def run(protocol: Mapping[str, Any], number: int) -> Metrics | str:
        from longfat.worlds.processes import EndpointError

        spec = _spec(tables, protocol, tables["path"], number)
        try:
            record = executor.measure(spec, length(spec) * _TIMEOUT_FACTOR + _TIMEOUT_S)
        except EndpointError as error:
            return str(error)
        return record.metrics or str(record.error)

    try:
        found, interrupted = parallel(
            [partial(run, one, number) for one, number in specs],
            jobs,
            executor.cancel,
            lambda done: show(f"between kernels: {done} of {len(specs)} trials"),
        )
    finally:
        executor.close()
    kept: dict[str, list[Metrics]] = {}
    problems: dict[str, str] = {}
    for (one, _), outcome in zip(specs, found, strict=True):
        if isinstance(outcome, Mapping):
            kept.setdefault(one["name"], []).append(outcome)
        elif outcome is not None and not interrupted:
            problems[one["name"]] = outcome
    return [
        replace(one, kernel=tuple(kept.get(one.controller, ())), problem=problems.get(one.controller))
        for one in predictions
    ], interrupted


def _paths(
    path: dict[str, Any], hops: Sequence[Mapping[str, Any]], queue: QueueLimit, trials: int
) -> list[dict[str, Any]]:
    number, is_reverse, _ = path_figures.bottleneck(path, "path")
    random = np.random.default_rng(_SEED)
    return [drawn(path, hops, (number, is_reverse), queue, random) for _ in range(trials)]


def _spec(
    tables: Mapping[str, Any], protocol: Mapping[str, Any], path: dict[str, Any], number: int
) -> dict[str, Any]:
    from longfat.api.specification import specification

    settings = {key: value for key, value in protocol.items() if key != "name"}
    return specification(settings, path, None, workload=tables["workload"], trial=number)


def _metrics(record: Mapping[str, Any]) -> Metrics | str:
    if record["metrics"] is None:
        return str(record["error"])
    return {name: value for name, value in record["metrics"].items() if value is not None}
