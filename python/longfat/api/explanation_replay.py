"""The replay of a captured transfer: simulated over the path that the capture shows, and with changes."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from longfat import _native
from longfat.analysis.captures import explained
from longfat.analysis.captures.replayed import Change, Replay
from longfat.analysis.forecast import prediction_interval
from longfat.api import explanation_senders as senders
from longfat.api.diagnosis_study import TRUESIZE
from longfat.api.parallel import parallel
from longfat.api.specification import specification
from longfat.api.trials import TransferError, trial_of
from longfat.study.vocabulary import canonical
from longfat.worlds.environment import available_cores

if TYPE_CHECKING:
    from longfat.analysis.captures.explained import Direction
    from longfat.results.run import Interval

Show = Callable[[str], None]

MODEL_ERROR = 0.03
"""Relative standard deviation between Linux kernels and the simulation of the same path."""
REPRODUCED = 0.1
"""Relative difference of durations up to which a simulation reproduces a capture."""
CONTROLLERS = ("cubic", "reno", "bbr1", "bbr", "vegas")
"""Controllers that a sender may have, the most frequent ones first."""
_ASSUMED_QUEUE = 100
_MOST_BYTES, _MOST_PACKETS = 500e6, 4e6
"""Data of a replay, and packets of all simulated changes."""
_MOST_PAUSES = 0.1
_SEGMENT = 1500
_UNMODELLED = {
    explained.POLICER: "a policer drops packets, which the simulated path does not have",
    explained.REORDERING: "the path reorders packets, which the simulated path does not do",
    explained.PATH_CHANGE: "the path changed during the transfer",
    explained.PACING: "the sender's pacing rate limits it, whose reason the capture does not show",
    explained.DELAYED_ACKS: "it waits for delayed ACKs: send larger writes, or disable Nagle's algorithm",
}
"""Limits whose transfers are not simulated, with the reason."""


def path_model(one: Direction) -> dict[str, Any]:
    """Returns the path of a direction as the table of a study. Raises ValueError if it is not known."""
    figures = one.path
    base, payload = figures["base_rtt_s"], figures["rate_bps"] or figures["peak_bps"]
    if not base or not payload:
        raise ValueError("the capture has too few packets to know the path")
    rate = one.on_wire(payload)
    path: dict[str, Any] = {"rate": f"{rate / 1e6:.4g}Mbit/s", "delay": f"{base / 2 * 1e3:.4g}ms"}
    bdp = rate * base / 8 / _SEGMENT
    waiting = (figures["most_queue_s"] or 0.0) * rate / 8 / _SEGMENT
    if not is_queue_assumed(one):
        path["queue"] = f"{max(2, round(waiting))}pkt"
    else:
        path["queue"] = f"{max(_ASSUMED_QUEUE, math.ceil(2 * waiting), math.ceil(2 * bdp))}pkt"
    loss = one.document["random_loss_packets"] / max(one.document["data_packets"], 1)
    if loss > 0:
        path["loss"] = f"{100 * loss:.3g}%"
    return path


def is_queue_assumed(one: Direction) -> bool:
    """Whether the queue of the path model is assumed: only losses by a full queue show its size."""
    return not _queue_losses(one)


def _queue_losses(one: Direction) -> int:
    """Returns the retransmissions after losses by a full queue, those of bursts included."""
    document = one.document
    return int(document["overflow_packets"] + document["burst_packets"])


def _same_losses(one: Direction, path: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns a path that loses the packets that the capture shows as lost without a queue."""
    lost = one.document["lost"]
    if "loss" not in path or not lost or _queue_losses(one) > one.document["random_loss_packets"]:
        return path
    return {**path, "loss": {"kind": "packets", "packets": lost}, "reverse": {"loss": "0%"}}


def protocol_model(one: Direction, controller: str) -> dict[str, Any]:
    """Returns the protocol of a direction with a controller, with the receiver's window if it matters."""
    found: dict[str, Any] = {"kind": "tcp", "congestion": controller}
    if one.limits.get(explained.WINDOW, 0.0) >= _MOST_PAUSES:
        memory = math.ceil(one.path["window"] * TRUESIZE / one.path["mss"])
        found |= {"receive_buffer": f"{memory}B"}
    if one.limits.get(explained.SENDER, 0.0) >= _MOST_PAUSES:
        memory = math.ceil(one.path["flight"] * TRUESIZE / one.path["mss"])
        found |= {"send_buffer": f"{memory}B"}
    return found


def replay(one: Direction, trials: int, show: Show) -> Replay:
    """Simulates the transfer with each possible controller, and changes if the result fits the capture."""
    captured = float(one.document["duration_s"])
    try:
        path = path_model(one)
    except ValueError as error:
        return Replay(captured, {}, {}, problem=str(error))
    made = Replay(captured, path, {}, is_queue_assumed=is_queue_assumed(one))
    if problem := _unsuitable(one):
        return replace(made, problem=problem)
    # With the losses of the capture, and without random ones, all trials are alike.
    same = _same_losses(one, path)
    show("simulation of the sender")
    found = senders.simulated({name: protocol_model(one, name) for name in CONTROLLERS}, same, one)
    controllers = senders.probabilities(one, found)
    best = max(controllers, key=lambda name: controllers[name], default=None)
    if best is None:
        return made
    duration = prediction_interval([found[best].document["duration_s"]] * 2, MODEL_ERROR)
    made = replace(made, controllers=controllers, simulated=duration)
    if abs(duration.value / captured - 1) > REPRODUCED:
        text = f"the simulation takes {duration.value / captured:.2f} times as long as the capture"
        return replace(made, problem=text)
    changes = _changes(one, best, path)
    packets = max(one.bytes / one.path["mss"], 1.0)
    affordable = max(2, int(_MOST_PACKETS / packets / len(changes)))
    results = _simulated(changes, one.bytes, min(trials, affordable) if "loss" in path else 1, show)
    kept = tuple(
        Change(name, _interval(metrics, "completion_s"), _mean(metrics, "rtt_p50_s"))
        for name, metrics in results.items()
        if metrics
    )
    return replace(made, changes=kept)


def _unsuitable(one: Direction) -> str | None:
    """Returns why a transfer is not simulated; None if it is."""
    pauses = one.limits.get(explained.APPLICATION, 0.0) + one.limits.get(explained.STALL, 0.0)
    if pauses > _MOST_PAUSES:
        return "the applications take more than a tenth of the time, which no change of the network shortens"
    if one.connection["multipath"] is not None:
        return "a subflow of Multipath TCP is not simulated without the others"
    for limit, text in _UNMODELLED.items():
        if one.limits.get(limit, 0.0) > _MOST_PAUSES:
            return text
    if one.bytes > _MOST_BYTES:
        return "more data than a replay simulates (500 MB)"
    return None


_Job = tuple[str, Mapping[str, Any], Mapping[str, Any]]
_Metrics = Mapping[str, float]


def _simulated(jobs: Sequence[_Job], size: int, trials: int, show: Show) -> dict[str, list[_Metrics]]:
    """Returns the metrics of the trials of each job (name, protocol, path); failed transfers have none."""
    work = [(name, protocol, path, number) for number in range(trials) for name, protocol, path in jobs]
    cancel = _native.Cancel()

    def run(protocol: Mapping[str, Any], path: Mapping[str, Any], number: int) -> list[_Metrics]:
        spec = specification(protocol, path, f"{size}B", trial=number)
        record = json.loads(_native.simulate(canonical(spec), cancel))
        try:
            return [trial_of(record, spec).metrics]
        except TransferError:
            return []

    calls: list[Callable[[], list[_Metrics]]] = [partial(run, *one[1:]) for one in work]
    outcomes, interrupted = parallel(
        calls,
        available_cores(),
        cancel.cancel,
        lambda done: show(f"simulation: {done} of {len(work)} trials"),
    )
    if interrupted:
        raise KeyboardInterrupt
    found: dict[str, list[_Metrics]] = {name: [] for name, _, _ in jobs}
    for one, metrics in zip(work, outcomes, strict=True):
        found[one[0]] += metrics or []
    return found


def _changes(one: Direction, controller: str, path: Mapping[str, Any]) -> list[_Job]:
    """Returns the changes that a capture suggests."""
    same = protocol_model(one, controller)
    free = {key: value for key, value in same.items() if key not in ("receive_buffer", "send_buffer")}
    found: list[_Job] = []
    if free != same and one.path["rate_bps"]:
        found.append(("no limit by windows", free, path))
    found += [
        (name, same | {"congestion": key}, path)
        for key, name in (("bbr1", "BBRv1"), ("cubic", "CUBIC"))
        if key != controller
    ]
    if "loss" in path:
        found.append(("no random loss", same, {key: value for key, value in path.items() if key != "loss"}))
    found += [
        ("half the RTT", same, {**path, "delay": f"{one.path['base_rtt_s'] / 4 * 1e3:.4g}ms"}),
        (
            "initial window of 30 packets",
            same | {"congestion": {"kind": controller, "initial_window": 30}},
            path,
        ),
    ]
    if one.path["rate_bps"]:
        twice = float(str(path["rate"]).removesuffix("Mbit/s")) * 2
        found.append(("twice the rate", same, {**path, "rate": f"{twice:.4g}Mbit/s"}))
        found.append(("FQ-CoDel at the bottleneck", same, {**path, "queue": {"kind": "fq-codel"}}))
    return found


def _interval(trials: list[_Metrics], metric: str) -> Interval:
    values = [one[metric] for one in trials if metric in one]
    # Trials without random losses are alike: one stands for all.
    return prediction_interval(values * 2 if len(values) == 1 else values, MODEL_ERROR)


def _mean(trials: list[_Metrics], metric: str) -> float | None:
    values = [one[metric] for one in trials if metric in one]
    return sum(values) / len(values) if values else None
