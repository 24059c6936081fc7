"""The replay of a captured transfer: simulated over the path that the capture shows, and with changes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from longfat.analysis.captures import explained
from longfat.analysis.captures.replayed import CAPTURE, FASTER, PEAK, Replay
from longfat.analysis.forecast import prediction_interval
from longfat.api import buffers, explanation_changes
from longfat.api import explanation_senders as senders
from longfat.api.explanation_losses import independent_losses, same_losses, shows_queue
from longfat.api.explanation_workload import workload, writing_interval_s

if TYPE_CHECKING:
    from longfat.analysis.captures.explained import Direction

Show = Callable[[str], None]

REPRODUCED = 0.1
"""Relative difference of durations up to which a simulation reproduces a capture."""
CONTROLLERS = ("cubic", "reno", "bbr1", "bbr", "vegas")
"""Controllers that a sender may have, the most frequent ones first."""
_ASSUMED_QUEUE = 100
_MOST_BYTES = 500e6
"""Data of a replay."""
_MOST_PAUSES = 0.1
_TOO_MANY = "the applications exchange too many messages to simulate (more than 1,000)"
_BUSY = "takes more than a tenth of the time, which no change of the network shortens"
_SEGMENT = 1500
_UNMODELLED = {
    explained.POLICER: "a policer drops packets, which the simulated path does not have",
    explained.REORDERING: "the path reorders packets, which the simulated path does not do",
    explained.PATH_CHANGE: "the path changed during the transfer",
    explained.PACING: "the sender's pacing rate limits it, whose reason the capture does not show",
    explained.DELAYED_ACKS: "it waits for delayed ACKs: send larger writes, or disable Nagle's algorithm",
}
"""Limits whose transfers are not simulated, with the reason."""


def path_model(one: Direction, payload: float | None = None) -> dict[str, Any]:
    """Returns the path of a direction as the table of a study, by default with the captured rate of the link.

    Raises:
        ValueError: if the path is not known.
    """
    figures = one.path
    base, payload = figures["base_rtt_s"], payload or figures["rate_bps"] or figures["peak_bps"]
    if not base or not payload:
        raise ValueError("the capture has too few packets to know the path")
    rate = one.on_wire(payload)
    path: dict[str, Any] = {"rate": f"{rate / 1e6:.4g}Mbit/s", "delay": f"{base / 2 * 1e3:.4g}ms"}
    bdp = rate * base / 8 / _SEGMENT
    full = one.document["full_queue_s"] or figures["most_queue_s"] or 0.0
    waiting = full * rate / 8 / _SEGMENT
    if not is_queue_assumed(one):
        path["queue"] = f"{max(2, round(waiting))}pkt"
    else:
        path["queue"] = f"{max(_ASSUMED_QUEUE, math.ceil(2 * waiting), math.ceil(2 * bdp))}pkt"
    loss = independent_losses(one) / max(one.document["data_packets"], 1)
    if loss > 0:
        path["loss"] = f"{100 * loss:.3g}%"
    return path


def is_queue_assumed(one: Direction) -> bool:
    """Whether the queue of the path model is assumed: only losses by a full queue show its size."""
    return not shows_queue(one)


def protocol_model(one: Direction, controller: str) -> dict[str, Any]:
    """Returns the protocol of a direction with a controller, with the receiver's window if it matters."""
    found: dict[str, Any] = {"kind": "tcp", "congestion": controller}
    if one.limits.get(explained.WINDOW, 0.0) >= _MOST_PAUSES:
        window = one.path["limiting_window"] or one.path["window"]
        found |= {"receive_buffer": buffers.for_window(window, one.path["mss"])}
    if one.limits.get(explained.SENDER, 0.0) >= _MOST_PAUSES and one.path["flight"] < _largest_message(one):
        found |= {"send_buffer": buffers.for_flight(one.path["flight"], one.path["mss"])}
    return found


def _largest_message(one: Direction) -> int:
    """Returns the bytes of the largest message; without messages, all of them."""
    own = [turn["bytes"] for turn in one.connection["turns"] or () if turn["is_client"] == one.is_client]
    return max(own, default=one.bytes)


def replay(one: Direction, trials: int, show: Show) -> Replay:
    """Simulates the transfer with each possible controller, and changes if the result fits the capture."""
    captured = float(one.document["duration_s"])
    try:
        path = path_model(one)
    except ValueError as error:
        return Replay(captured, {}, {}, problem=str(error))
    made = Replay(captured, path, {}, is_queue_assumed=is_queue_assumed(one))
    data = workload(one)
    if data is None:
        return replace(made, problem=_TOO_MANY)
    if problem := _unsuitable(one, data):
        return replace(made, problem=problem)
    show("simulation of the sender")
    protocols = {name: protocol_model(one, name) for name in CONTROLLERS}
    tried: list[_Attempt] = []
    for source, multiple, model in _paths(one, path, data):
        # With the losses of the capture, and without random ones, all trials are alike.
        found = senders.simulated(protocols, same_losses(one, model), data, one)
        controllers = senders.probabilities(one, found)
        if not controllers:
            return made
        best = max(controllers, key=lambda name: controllers[name])
        simulated = found[best].document["duration_s"]
        tried.append(_Attempt(source, multiple, model, controllers, simulated, simulated / captured))
        if source != FASTER and tried[-1].fits:
            break
    nearest = min(tried, key=lambda one: abs(one.ratio - 1))
    made = replace(
        made,
        model=nearest.path,
        controllers=nearest.controllers,
        simulated=prediction_interval([nearest.simulated] * 2, explanation_changes.MODEL_ERROR),
        rate_from=nearest.source,
        messages=len(data.get("objects", [None])),
    )
    if not nearest.fits:
        text = f"the simulation takes {nearest.ratio:.2f} times as long as the capture"
        return replace(made, problem=text)
    slowest = next(attempt for attempt in tried if attempt.fits)
    # Another rate that the capture allows: the slowest that fits, or without one below, a faster one.
    other = slowest.multiple / nearest.multiple if slowest is not nearest else explanation_changes.FASTER
    changes, unknown = explanation_changes.simulated(
        one, data, protocols, nearest.controllers, nearest.path, trials, show, other_rate=other
    )
    baseline = next((change for change in changes if change.name == explanation_changes.BASELINE), None)
    others = tuple(change for change in changes if change is not baseline)
    return replace(made, changes=others, baseline=baseline, unknown=unknown)


@dataclass(frozen=True)
class _Attempt:
    """A simulation over a path, whose rate has a source and is a multiple of what was captured."""

    source: str
    multiple: float
    path: dict[str, Any]
    controllers: Mapping[str, float]
    simulated: float
    """Duration in s with the nearest controller."""
    ratio: float
    """The same in relation to the capture."""

    @property
    def fits(self) -> bool:
        """Whether the simulation reproduces the capture."""
        return abs(self.ratio - 1) <= REPRODUCED


def _paths(
    one: Direction, path: dict[str, Any], data: Mapping[str, Any]
) -> Iterator[tuple[str, float, dict[str, Any]]]:
    """Returns the paths to try with the sources of their rates and multiples of them, slowest first."""
    peak = one.path["peak_bps"]
    yield CAPTURE, 1.0, path
    # Messages with pauses can hide the rate: the largest one that was seen may be that of the link.
    if data["kind"] != "file" and (fastest := path_model(one, peak)) != path:
        yield PEAK, 1.0, fastest
    # A transfer that never fills the link shows only the least rate that it has.
    if not one.path["rate_bps"]:
        for multiple in (2.0, 4.0, explanation_changes.FASTER):
            yield FASTER, multiple, path_model(one, peak * multiple)


def _unsuitable(one: Direction, data: Mapping[str, Any]) -> str | None:
    """Returns why a transfer with a workload is not simulated; None if it is."""
    if one.limits.get(explained.STALL, 0.0) > _MOST_PAUSES:
        return f"the receiving application {_BUSY}"
    if data["kind"] == "file" and one.limits.get(explained.APPLICATION, 0.0) > _MOST_PAUSES:
        return f"the application {_BUSY}"
    interval_s = writing_interval_s(one)
    if interval_s is not None and one.limits.get(explained.APPLICATION, 0.0) > _MOST_PAUSES:
        writes = f"the application writes every {1e3 * interval_s:.3g} ms without waiting for an answer"
        return f"{writes}, so that the network does not decide the duration"
    if one.connection["multipath"] is not None:
        return "a subflow of Multipath TCP is not simulated without the others"
    for limit, text in _UNMODELLED.items():
        if one.limits.get(limit, 0.0) > _MOST_PAUSES:
            return text
    if one.bytes > _MOST_BYTES:
        return "more data than a replay simulates (500 MB)"
    return None
