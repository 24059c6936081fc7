"""Durations of a captured transfer with changes of the path or of the hosts.

A capture leaves open which controller the sender has, how probable a random loss is, and sometimes which rate
the link has. Each simulated trial has one of the possible controllers and probabilities. Changes whose
duration depends on an unknown rate have no prediction.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from longfat import _native
from longfat.analysis.binomial import inverse_beta
from longfat.analysis.captures.replayed import Change
from longfat.analysis.forecast import prediction_interval
from longfat.api.parallel import parallel
from longfat.api.specification import specification
from longfat.api.trials import TransferError, trial_of
from longfat.study.vocabulary import canonical
from longfat.worlds.environment import available_cores

if TYPE_CHECKING:
    from longfat.analysis.captures.explained import Direction
    from longfat.results.run import Interval

Show = Callable[[str], None]
Protocols = Mapping[str, Mapping[str, Any]]
"""The protocol of the capture with each controller that the sender may have, by its name."""

MODEL_ERROR = 0.03
"""Relative standard deviation between Linux kernels and the simulation of the same path."""
_MOST_PACKETS = 4e6
"""Packets of all simulated changes."""
_LEAST_PROBABILITY = 0.05
_GOLDEN = (math.sqrt(5) - 1) / 2
_FASTER = 10
"""The rate of the link if it is unknown, as a multiple of what it has carried: nearly unlimited."""
_SAME = 0.1
"""Relative difference of durations up to which an unknown rate does not matter."""


@dataclass(frozen=True)
class _Trial:
    """A sender and a path that the capture allows."""

    number: int
    controller: str
    loss: float | None


@dataclass(frozen=True)
class _Job:
    """A change in a trial. `is_faster`: the link has a higher rate than it has carried."""

    name: str
    trial: _Trial
    protocol: Mapping[str, Any]
    path: Mapping[str, Any]
    is_faster: bool = False


_Metrics = Mapping[str, float]


def simulated(
    one: Direction,
    protocols: Protocols,
    probabilities: Mapping[str, float],
    path: Mapping[str, Any],
    trials: int,
    show: Show,
) -> tuple[tuple[Change, ...], tuple[str, ...]]:
    """Returns the changes with durations, and the names of those that depend on the unknown link rate."""
    names = _names(one, protocols, probabilities, path)
    rates = 1 if one.path["rate_bps"] else 2
    packets = max(one.bytes / one.path["mss"], 1.0)
    affordable = max(2, int(_MOST_PACKETS / packets / len(names) / rates))
    jobs = []
    for trial in _trials(one, probabilities, path, min(trials, affordable)):
        for name in names:
            changed = _changed(name, one, protocols, trial, path)
            jobs.append(_Job(name, trial, *changed))
            if rates == 2:
                protocol, slow = changed
                fast = {**slow, "rate": _times(slow["rate"], _FASTER)}
                jobs.append(_Job(name, trial, protocol, fast, is_faster=True))
    results: dict[tuple[str, bool], list[_Metrics]] = {}
    for job, measured in zip(jobs, _results(jobs, one.bytes, show), strict=True):
        results.setdefault((job.name, job.is_faster), []).append(measured)
    found, unknown = [], []
    for name in names:
        trials_of = results[name, False]
        duration = _interval(trials_of)
        if rates == 2 and not _interval(results[name, True]).value > duration.value * (1 - _SAME):
            unknown.append(name)
        elif not math.isnan(duration.value):
            found.append(Change(name, duration, _mean(trials_of, "rtt_p50_s")))
    return tuple(found), tuple(unknown)


def _trials(
    one: Direction, probabilities: Mapping[str, float], path: Mapping[str, Any], count: int
) -> list[_Trial]:
    """Returns trials with the controllers and probabilities of loss that the capture allows, by probability.

    Multiples of the golden ratio combine each controller with small and large probabilities.
    """
    possible = {name: weight for name, weight in probabilities.items() if weight >= _LEAST_PROBABILITY}
    controllers, ends = list(possible), list(accumulate(possible.values()))
    is_certain = len(possible) == 1 and "loss" not in path
    found = []
    for number in range(1 if is_certain else count):
        controller = controllers[bisect_right(ends, (number + 0.5) / count * ends[-1])]
        loss = _loss(one, (0.5 + number * _GOLDEN) % 1) if "loss" in path else None
        found.append(_Trial(number, controller, loss))
    return found


def _loss(one: Direction, quantile: float) -> float:
    """Returns a quantile of the probability of random loss: binomial, with Jeffreys' prior."""
    lost = one.document["random_loss_packets"]
    kept = max(one.document["data_packets"] - lost, 0)
    return inverse_beta(lost + 0.5, kept + 0.5, quantile)


def _names(
    one: Direction, protocols: Protocols, probabilities: Mapping[str, float], path: Mapping[str, Any]
) -> list[str]:
    """Returns the names of the changes that a capture suggests."""
    best = max(probabilities, key=probabilities.__getitem__)
    limited = {"receive_buffer", "send_buffer"} & set(protocols[best])
    found = ["no limit by windows"] if limited and one.path["rate_bps"] else []
    found += [name for name, key in _CONTROLLERS.items() if key != best]
    found += ["no random loss"] if "loss" in path else []
    found += ["half the RTT", "initial window of 30 packets"]
    if one.path["rate_bps"]:
        found += ["twice the rate", "FQ-CoDel at the bottleneck"]
    return found


_CONTROLLERS = {"BBRv1": "bbr1", "CUBIC": "cubic"}


def _changed(
    name: str, one: Direction, protocols: Protocols, trial: _Trial, path: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the protocol and the path of a trial after a change."""
    protocol, path = dict(protocols[trial.controller]), dict(path)
    if trial.loss is not None:
        path["loss"] = f"{trial.loss:.4%}"
    if name in _CONTROLLERS:
        protocol["congestion"] = _CONTROLLERS[name]
    elif name == "no limit by windows":
        protocol = {
            key: value for key, value in protocol.items() if key not in ("receive_buffer", "send_buffer")
        }
    elif name == "no random loss":
        del path["loss"]
    elif name == "half the RTT":
        path["delay"] = f"{one.path['base_rtt_s'] / 4 * 1e3:.4g}ms"
    elif name == "initial window of 30 packets":
        protocol["congestion"] = {"kind": trial.controller, "initial_window": 30}
    elif name == "twice the rate":
        path["rate"] = _times(path["rate"], 2)
    else:
        path["queue"] = {"kind": "fq-codel"}
    return protocol, path


def _times(rate: str, factor: float) -> str:
    return f"{float(rate.removesuffix('Mbit/s')) * factor:.4g}Mbit/s"


def _results(jobs: Sequence[_Job], size: int, show: Show) -> list[_Metrics]:
    """Returns the metrics of simulated jobs; those of failed transfers are empty."""
    cancel = _native.Cancel()

    def run(job: _Job) -> _Metrics:
        spec = specification(job.protocol, job.path, f"{size}B", trial=job.trial.number)
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
    values = [one["completion_s"] for one in trials if "completion_s" in one]
    # Trials without random losses are alike: one stands for all.
    return prediction_interval(values * 2 if len(values) == 1 else values, MODEL_ERROR)


def _mean(trials: Sequence[_Metrics], metric: str) -> float | None:
    values = [one[metric] for one in trials if metric in one]
    return sum(values) / len(values) if values else None
