"""What theory expects of a lone TCP flow that sends for a time, and of the queue that it keeps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from longfat.analysis.prediction.layout import Flow, Layout, layout
from longfat.analysis.prediction.model import NoClosedFormError, Prediction, nothing
from longfat.analysis.theory import tcp
from longfat.analysis.theory.response import CUBIC, RENO, response

VEGAS_THRESHOLDS = {"paper": (1.0, 3.0), "linux": (2.0, 4.0)}
"""alpha and beta of Brakmo and Peterson (JSAC 1995, section IV), and those of Linux, by their rules."""

SENDING = 1
"""The packet that is being sent counts for a queue's room and length, and for the path's own delay too."""


def goodput(spec: Mapping[str, Any]) -> Prediction:
    """The goodput of a trial's one TCP flow, in bit/s."""
    try:
        return _goodput(spec, layout(spec).lone())
    except NoClosedFormError as reason:
        return nothing(reason)


def _goodput(spec: Mapping[str, Any], flow: Flow) -> Prediction:
    rate, pipe = _path(flow)
    bits = flow.payload * 8
    window = flow.window / flow.payload
    if flow.loss > 0:
        return _with_loss(flow, spec["protocol"], window)
    if window <= pipe:
        slow = tcp.window_limited(window, flow.round_trip) * bits
        return _about(slow, f"the window of {window:.0f} packets does not fill the path: W / RTT")
    full = rate * bits
    try:
        room = flow.bottleneck.room(flow.packet)
    except NoClosedFormError as reason:
        return _at_most(full, reason)
    if window <= pipe + room:
        return _about(full, "the window fills the path and overflows no queue: the link")
    if flow.controller == RENO:
        used = tcp.sawtooth_utilisation(pipe, room - SENDING)
        return _about(full * used, _sawtooth(pipe, room))
    if flow.controller == "vegas":
        return _about(full, "Vegas keeps packets in the queue at all times: the link")
    return _at_most(full, f"{flow.controller} has none without losses of the path")


def _about(value: float, note: str, forms: Mapping[str, float] | None = None) -> Prediction:
    return Prediction(value, exact=False, note=note, forms=forms or {})


def _at_most(most: float, reason: object) -> Prediction:
    return Prediction(
        None, exact=False, note=f"at most link and window; no closed form: {reason}", bound=most
    )


def _sawtooth(pipe: float, room: float) -> str:
    return f"Reno's sawtooth over {pipe:.0f} packets of path and {room:.0f} of queue"


def _with_loss(flow: Flow, protocol: Mapping[str, Any], window: float) -> Prediction:
    """With losses that are not the queue's: what they allow, and no more than link and window do."""
    bits = flow.payload * 8
    trip, most = flow.round_trip, flow.most
    given = _settings(protocol) if flow.controller == CUBIC else {}
    keys = {key: float(given[key]) for key in ("c", "beta") if key in given}
    try:
        found = response(flow.controller, trip, flow.loss, flow.timeout, window=window, settings=keys)
    except ValueError as reason:
        return _at_most(most * bits, reason)
    forms = {name: min(most, rate) * bits for name, rate in found.forms.items()}
    return _about(min(most, found.rate) * bits, found.note, forms)


def _path(flow: Flow) -> tuple[float, float]:
    """Packets per second of the bottleneck, and how many fill the path; infinite where nothing limits."""
    if flow.round_trip <= 0:
        raise NoClosedFormError("the path takes no time")
    rate = flow.bottleneck.rate / (flow.packet * 8)
    return rate, tcp.bandwidth_delay_product(rate, flow.round_trip)


def pipe(spec: Mapping[str, Any]) -> float | None:
    """The packets that fill a lone flow's way there and back; None where several flows share it."""
    try:
        packets = _path(layout(spec).lone())[1]
    except NoClosedFormError:
        return None
    return packets if math.isfinite(packets) else None


def queue(spec: Mapping[str, Any]) -> Prediction:
    """The mean queue at the bottleneck, in packets: of a lone Reno flow, or of Vegas flows alone."""
    try:
        found = layout(spec)
        if found.flows and all(flow.controller == "vegas" for flow in found.flows):
            return _vegas_queue(found, spec)
        return _reno_queue(found.lone())
    except NoClosedFormError as reason:
        return nothing(reason)


def _settings(protocol: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a study sets of the congestion controller."""
    given = protocol.get("congestion")
    return given if isinstance(given, Mapping) else {}


def _vegas_thresholds(protocol: Mapping[str, Any]) -> tuple[float, float]:
    """Alpha and beta of a protocol's settings, whose rules are else those of its profile."""
    settings = _settings(protocol)
    habit = "linux" if protocol.get("profile", "linux") == "linux" else "paper"
    alpha, beta = VEGAS_THRESHOLDS[settings.get("rules", habit)]
    return float(settings.get("alpha", alpha)), float(settings.get("beta", beta))


def _vegas_queue(found: Layout, spec: Mapping[str, Any]) -> Prediction:
    if len(found.bottlenecks) != 1 or any(flow.loss > 0 for flow in found.flows):
        raise NoClosedFormError("the queue of Vegas has one at a lone bottleneck without losses")
    (link,) = found.bottlenecks
    protocols = {entry["name"]: entry["protocol"] for entry in spec.get("traffic", ())}
    least = most = 0.0
    for flow in found.flows:
        if flow.bottleneck is not link:
            raise NoClosedFormError("flows are held up elsewhere than at the bottleneck")
        thresholds = _vegas_thresholds(protocols.get(flow.traffic, spec["protocol"]))
        low, high = tcp.vegas_queue(1, *thresholds)
        least, most = least + low, most + high
    if most >= link.room(found.flows[0].packet):
        raise NoClosedFormError("the queue has no room for what Vegas keeps in it")
    note = (
        f"Vegas: alpha to beta packets a flow, {least:.0f} to {most:.0f}, beside the one that is being sent"
    )
    least, most = least + SENDING, most + SENDING
    return _about((least + most) / 2, note, {"alpha": least, "beta": most})


def _reno_queue(flow: Flow) -> Prediction:
    _, pipe = _path(flow)
    room = flow.bottleneck.room(flow.packet)
    window = flow.window / flow.payload
    if flow.controller != RENO or flow.loss > 0 or window <= pipe + room:
        raise NoClosedFormError(
            "the queue of a lone flow has one for Reno at a drop-tail queue without losses"
        )
    sending = tcp.sawtooth_utilisation(pipe, room - SENDING) * SENDING
    return _about(tcp.sawtooth_queue(pipe, room - SENDING) + sending, _sawtooth(pipe, room))
