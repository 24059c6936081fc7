"""Durations of a captured transfer with changes of the path or of the hosts.

A capture leaves open which controller the sender has, how probable a random loss is, what the RTT is to a
hundredth, and sometimes how long the queue is and which rate the link has. Each simulated trial has one of
the possible controllers, probabilities, RTTs and queues. Changes whose duration depends on an unknown rate
have no prediction.

The duration of a change is that of the captured transfer: the same packets are lost. Its interval is that of
transfers with other losses, which can take twice as long or half as long.
"""

from __future__ import annotations

import json
import math
import statistics
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from longfat import _native
from longfat.analysis.binomial import inverse_beta
from longfat.analysis.captures.replayed import Change
from longfat.analysis.forecast import bounded, prediction_interval
from longfat.api.explanation_losses import independent_losses, same_losses, shows_queue
from longfat.api.parallel import parallel
from longfat.api.specification import specification
from longfat.api.trials import TransferError, trial_of
from longfat.results.run import Interval
from longfat.study import units
from longfat.study.vocabulary import canonical
from longfat.worlds.environment import available_cores

if TYPE_CHECKING:
    from longfat.analysis.captures.explained import Direction

Show = Callable[[str], None]
Protocols = Mapping[str, Mapping[str, Any]]
"""The protocol of the capture with each controller that the sender may have, by its name."""

MODEL_ERROR = 0.03
"""Relative standard deviation between Linux kernels and the simulation of the same path."""
_MOST_PACKETS = 4e6
"""Packets of all simulated changes."""
_BUFFERS = {"receive_buffer", "send_buffer"}
_LEAST_PROBABILITY = 0.05
_GOLDEN = (math.sqrt(5) - 1) / 2
_SILVER = math.sqrt(2) - 1
_THIRD = math.sqrt(3) - 1
_RTT_ERROR = 0.01
"""Largest relative error of an RTT that a capture shows.

A tenth of it can decide in how many recoveries a sender repairs the drops of CoDel after slow start, and
so how often it halves its window.
"""
_QUEUE_ERROR = 2
"""Largest ratio of a queue to the assumed one, and the other way round.

Some lengths let the last packets of slow start overflow the queue, which takes an RTT or more to repair.
"""
_CERTAIN = 5
"""Trials if the controller is known and nothing is lost at random."""
FASTER = 10.0
"""The rate of the link if it is unknown, as a multiple of what it has carried: nearly unlimited."""
_SAME = 0.1
"""Relative difference of durations up to which an unknown rate does not matter."""


@dataclass(frozen=True)
class _Trial:
    """A sender and a path that the capture allows."""

    number: int
    controller: str
    loss: float | None
    rtt: float
    """As a multiple of that of the capture."""
    queue: float
    """As a multiple of that of the model."""


@dataclass(frozen=True)
class _Job:
    """A change in a trial.

    `is_other`: the link has another rate that the capture allows. `is_random`: other packets are lost than in
    the capture.
    """

    name: str
    trial: _Trial
    protocol: Mapping[str, Any]
    path: Mapping[str, Any]
    is_other: bool = False
    is_random: bool = False


_Metrics = Mapping[str, float]


def simulated(
    one: Direction,
    workload: Mapping[str, Any],
    protocols: Protocols,
    probabilities: Mapping[str, float],
    path: Mapping[str, Any],
    trials: int,
    show: Show,
    other_rate: float = FASTER,
) -> tuple[tuple[Change, ...], tuple[str, ...]]:
    """Returns `BASELINE` and the changes with durations, and the names of those without a prediction.

    These take another time if the rate of the path, which is unknown, is multiplied by `other_rate`.
    """
    names = _names(one, protocols, probabilities, path)
    rates = 1 if one.path["rate_bps"] else 2
    packets = max(one.bytes / one.path["mss"], 1.0)
    same = same_losses(one, path)
    losses = 1 if same == path else 2
    affordable = max(2, int(_MOST_PACKETS / packets / len(names) / rates / losses))
    jobs = []
    for trial in _trials(one, probabilities, path, min(trials, affordable)):
        for name in names:
            for base in [path, same][:losses]:
                tcp, changed = dict(protocols[trial.controller]), dict(base)
                is_random = base is path and losses == 2
                changed["delay"] = _scaled(path["delay"], "ms", trial.rtt)
                changed["queue"] = f"{max(2, round(_packets(path) * trial.queue))}pkt"
                if trial.loss is not None and base is path:
                    changed["loss"] = f"{trial.loss:.4%}"
                if name != BASELINE:
                    _CHANGES[name](tcp, changed)
                jobs.append(_Job(name, trial, tcp, changed, is_random=is_random))
                if rates == 2 and not is_random:
                    scaled = {**changed, "rate": _scaled(changed["rate"], "Mbit/s", other_rate)}
                    jobs.append(_Job(name, trial, tcp, scaled, is_other=True))
    fastest = _fastest(jobs) if rates == 1 else {}
    results: dict[tuple[str, bool, bool], list[_Metrics]] = {}
    for job, measured in zip(jobs, _results(jobs, workload, show), strict=True):
        results.setdefault((job.name, job.is_other, job.is_random), []).append(measured)
    found, unknown = [], []
    if rates == 2 and any(_BUFFERS & set(one) for one in protocols.values()):
        unknown.append(_WINDOWS)
    for name in names:
        trials_of = results[name, False, False]
        duration = _interval(trials_of)
        other = _interval(results[name, True, False]).value if rates == 2 else duration.value
        if rates == 2 and name != BASELINE and not abs(other / duration.value - 1) <= _SAME:
            unknown.append(name)
        elif not math.isnan(duration.value):
            others = _interval(results.get((name, False, True), trials_of))
            whole = Interval(duration.value, min(duration.low, others.low), max(duration.high, others.high))
            whole = bounded(whole, least=8 * one.bytes / fastest.get(name, math.inf))
            found.append(Change(name, whole, _mean(trials_of, "rtt_p50_s")))
    return tuple(found), tuple(unknown)


def _fastest(jobs: Sequence[_Job]) -> dict[str, float]:
    """Returns the highest rate of the link with each change, in bit/s."""
    found: dict[str, float] = {}
    for job in jobs:
        rate = units.number(job.path.get("rate"))
        found[job.name] = max(found.get(job.name, 0.0), rate or math.inf)
    return found


def _trials(
    one: Direction, probabilities: Mapping[str, float], path: Mapping[str, Any], count: int
) -> list[_Trial]:
    """Returns trials with controllers, losses, RTTs and queues that the capture allows, by probability.

    Multiples of irrational numbers combine each controller with small and large values of the others.
    """
    possible = {name: weight for name, weight in probabilities.items() if weight >= _LEAST_PROBABILITY}
    controllers, ends = list(possible), list(accumulate(possible.values()))
    is_certain = len(possible) == 1 and "loss" not in path
    found = []
    for number in range(min(count, _CERTAIN) if is_certain else count):
        controller = controllers[bisect_right(ends, (number + 0.5) / count * ends[-1])]
        loss = _loss(one, (0.5 + number * _GOLDEN) % 1) if "loss" in path else None
        rtt = 1 + _RTT_ERROR * (2 * ((0.5 + number * _SILVER) % 1) - 1)
        queue = 1.0
        if not shows_queue(one):
            queue = _QUEUE_ERROR ** (2 * ((0.5 + number * _THIRD) % 1) - 1)
        found.append(_Trial(number, controller, loss, rtt, queue))
    return found


def _loss(one: Direction, quantile: float) -> float:
    """Returns a quantile of the probability of random loss: binomial, with Jeffreys' prior."""
    lost = independent_losses(one)
    kept = max(one.document["data_packets"] - lost, 0)
    return inverse_beta(lost + 0.5, kept + 0.5, quantile)


def _packets(path: Mapping[str, Any]) -> float:
    return float(path["queue"].removesuffix("pkt"))


def _scaled(text: str, unit: str, factor: float) -> str:
    return f"{float(text.removesuffix(unit)) * factor:.6g}{unit}"


_Settings = dict[str, Any]
_WINDOWS = "no limit by windows"
_NO_LOSS = "no random loss"
BASELINE = "no change"
"""The transfer as it was captured, in the trials of the changes."""
_OF_RATE = {_WINDOWS, "twice the rate", "FQ-CoDel at the bottleneck"}
"""Changes that are simulated only over a known rate."""
_OF_CONTROLLERS = {"bbr1": "BBRv1", "cubic": "CUBIC"}
_CHANGES: Mapping[str, Callable[[_Settings, _Settings], object]] = {
    _WINDOWS: lambda tcp, _: [tcp.pop(key, None) for key in _BUFFERS],
    "BBRv1": lambda tcp, _: tcp.update(congestion="bbr1"),
    "CUBIC": lambda tcp, _: tcp.update(congestion="cubic"),
    _NO_LOSS: lambda _, path: path.pop("loss"),
    "half the RTT": lambda _, path: path.update(delay=_scaled(path["delay"], "ms", 0.5)),
    "initial window of 30 packets": lambda tcp, _: tcp.update(
        congestion={"kind": tcp["congestion"], "initial_window": 30}
    ),
    "twice the rate": lambda _, path: path.update(rate=_scaled(path["rate"], "Mbit/s", 2)),
    "FQ-CoDel at the bottleneck": lambda _, path: path.update(queue={"kind": "fq-codel"}),
}
"""The changes by their names: each changes the protocol or the path of a trial."""


def _names(
    one: Direction, protocols: Protocols, probabilities: Mapping[str, float], path: Mapping[str, Any]
) -> list[str]:
    """Returns `BASELINE` and the names of the changes that a capture suggests."""
    best = max(probabilities, key=probabilities.__getitem__)
    left_out = {_OF_CONTROLLERS.get(best)}
    if "loss" not in path:
        left_out.add(_NO_LOSS)
    if not _BUFFERS & set(protocols[best]):
        left_out.add(_WINDOWS)
    if not one.path["rate_bps"]:
        left_out |= _OF_RATE
    return [BASELINE, *(name for name in _CHANGES if name not in left_out)]


def _results(jobs: Sequence[_Job], workload: Mapping[str, Any], show: Show) -> list[_Metrics]:
    """Returns the metrics of simulated jobs; those of failed transfers are empty."""
    cancel = _native.Cancel()

    def run(job: _Job) -> _Metrics:
        spec = specification(job.protocol, job.path, None, workload=workload, trial=job.trial.number)
        record = json.loads(_native.simulate(canonical(spec), cancel))
        try:
            return trial_of(record, spec).metrics
        except TransferError:
            return {}

    calls: list[Callable[[], _Metrics]] = [partial(run, job) for job in jobs]
    outcomes, interrupted = parallel(
        calls,
        available_cores(),
        cancel.cancel,
        lambda done: show(f"simulation: {done} of {len(jobs)} trials"),
    )
    if interrupted:
        raise KeyboardInterrupt
    return [metrics or {} for metrics in outcomes]


def _interval(trials: Sequence[_Metrics]) -> Interval:
    """Returns the median: between two groups of durations, the mean would be that of no transfer."""
    values = [time for one in trials if (time := _duration(one)) is not None]
    if not values:
        return Interval(math.nan, math.nan, math.nan)
    middle = statistics.median(values)
    found = prediction_interval(values, MODEL_ERROR)
    return Interval(middle, min(found.low, middle), max(found.high, middle))


def _duration(metrics: _Metrics) -> float | None:
    """Returns the time from the first data to its last ACK; of requests, to the last answer."""
    if "completion_s" in metrics:
        return metrics["completion_s"]
    whole, setup = metrics.get("fct_mean_s"), metrics.get("setup_s")
    return None if whole is None or setup is None else whole - setup


def _mean(trials: Sequence[_Metrics], metric: str) -> float | None:
    values = [one[metric] for one in trials if metric in one]
    return sum(values) / len(values) if values else None
