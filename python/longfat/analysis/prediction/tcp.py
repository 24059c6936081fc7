"""Predictions for a single TCP flow of a bulk workload, and for the queue at its bottleneck."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from longfat.analysis.prediction.layout import Flow, Layout, edge, layout
from longfat.analysis.prediction.model import NoClosedFormError, Prediction, nothing
from longfat.analysis.theory import tcp
from longfat.analysis.theory.response import CUBIC, RENO, Rules, response

VEGAS_THRESHOLDS = {"paper": (1.0, 3.0), "linux": (2.0, 4.0)}
"""alpha and beta by rules: those of Brakmo and Peterson (JSAC 1995, section IV), and those of Linux."""

SENDING = 1
"""The packet in transmission counts for the queue's limit and length, and for the path's delay."""


def goodput(spec: Mapping[str, Any]) -> Prediction:
    """Predicts the goodput of a trial's only TCP flow, in bit/s."""
    try:
        return _goodput(spec, layout(spec).lone())
    except NoClosedFormError as reason:
        return nothing(reason)


def _goodput(spec: Mapping[str, Any], flow: Flow) -> Prediction:
    rate, pipe = _path(flow)
    bits = flow.payload * 8
    window = flow.window / flow.payload
    if flow.loss > 0:
        return _with_loss(spec, flow, window)
    if window <= pipe:
        slow = tcp.window_limited(window, flow.round_trip) * bits
        return _about(slow, f"W / RTT: the window of {window:.0f} packets does not fill the path")
    full = rate * bits
    try:
        room = flow.bottleneck.room(flow.packet)
    except NoClosedFormError as error:
        return _at_most(spec, flow, full, error)
    if window <= pipe + room:
        return _about(full, "rate of the link: the window fills the path and no queue overflows")
    if flow.controller == RENO:
        used = tcp.sawtooth_utilisation(pipe, room - SENDING)
        return _about(full * used, _sawtooth(pipe, room))
    if flow.controller == "vegas":
        return _about(full, "rate of the link: Vegas always keeps packets in the queue")
    reason = f"without losses on the path only for Reno and Vegas, not {flow.controller}"
    return _at_most(spec, flow, full, reason)


def _about(value: float, note: str, forms: Mapping[str, float] | None = None) -> Prediction:
    return Prediction(value, exact=False, note=note, forms=forms or {})


def _at_most(spec: Mapping[str, Any], flow: Flow, most: float, reason: object) -> Prediction:
    note = f"upper bound by link and window; no closed form: {reason}"
    return Prediction(None, exact=False, note=note, bound=most + edge(spec, flow.burst))


def _sawtooth(pipe: float, room: float) -> str:
    return f"Reno's sawtooth: a path of {pipe:.0f} packets, a queue of {room:.0f}"


def _with_loss(spec: Mapping[str, Any], flow: Flow, window: float) -> Prediction:
    """The smaller of the response to random losses and the rate that link and window allow."""
    bits = flow.payload * 8
    trip, most = flow.round_trip, flow.most
    given = _settings(spec["protocol"]) if flow.controller == CUBIC else {}
    keys = {key: float(given[key]) for key in ("c", "beta") if key in given}
    acks = flow.loss_of_acks
    try:
        found = response(
            flow.controller,
            trip,
            flow.loss,
            flow.timeout,
            window=window,
            loss_of_acks=acks,
            settings=keys,
            rules=_cubic_rules(spec["protocol"]),
        )
    except ValueError as reason:
        return _at_most(spec, flow, most * bits, reason)
    forms = {name: min(most, rate) * bits for name, rate in found.forms.items()}
    return _about(min(most, found.rate) * bits, found.note, forms)


def _path(flow: Flow) -> tuple[float, float]:
    """Packets per second of the bottleneck, and the packets that fill the path; infinite without a limit."""
    if flow.round_trip <= 0:
        raise NoClosedFormError("the path takes no time")
    rate = flow.bottleneck.rate / (flow.packet * 8)
    return rate, tcp.bandwidth_delay_product(rate, flow.round_trip)


def pipe(spec: Mapping[str, Any]) -> float | None:
    """Returns the bandwidth-delay product of a single flow in packets; None for several flows."""
    try:
        packets = _path(layout(spec).lone())[1]
    except NoClosedFormError:
        return None
    return packets if math.isfinite(packets) else None


def queue(spec: Mapping[str, Any]) -> Prediction:
    """Predicts the mean queue at the bottleneck in packets, for a single Reno flow or any Vegas flows."""
    try:
        found = layout(spec)
        if found.flows and all(flow.controller == "vegas" for flow in found.flows):
            return _vegas_queue(found, spec)
        return _reno_queue(found.lone())
    except NoClosedFormError as reason:
        return nothing(reason)


def _settings(protocol: Mapping[str, Any]) -> Mapping[str, Any]:
    """The settings of the congestion controller in the study."""
    given = protocol.get("congestion")
    return given if isinstance(given, Mapping) else {}


def _cubic_rules(protocol: Mapping[str, Any]) -> Rules:
    """The rules of CUBIC, by its settings or the TCP profile."""
    by_profile = "linux" if protocol.get("profile", "linux") == "linux" else "rfc"
    return "linux" if _settings(protocol).get("rules", by_profile) == "linux" else "rfc"


def _vegas_thresholds(protocol: Mapping[str, Any]) -> tuple[float, float]:
    """Alpha and beta of a protocol, by its settings or the rules of its profile."""
    settings = _settings(protocol)
    habit = "linux" if protocol.get("profile", "linux") == "linux" else "paper"
    alpha, beta = VEGAS_THRESHOLDS[settings.get("rules", habit)]
    return float(settings.get("alpha", alpha)), float(settings.get("beta", beta))


def _vegas_queue(found: Layout, spec: Mapping[str, Any]) -> Prediction:
    if len(found.bottlenecks) != 1 or any(flow.loss > 0 for flow in found.flows):
        raise NoClosedFormError("only for a single bottleneck without losses")
    (link,) = found.bottlenecks
    protocols = {entry["name"]: entry["protocol"] for entry in spec.get("traffic", ())}
    least = most = 0.0
    for flow in found.flows:
        if flow.bottleneck is not link:
            raise NoClosedFormError("some flows have another bottleneck")
        thresholds = _vegas_thresholds(protocols.get(flow.traffic, spec["protocol"]))
        low, high = tcp.vegas_queue(1, *thresholds)
        least, most = least + low, most + high
    if most >= link.room(found.flows[0].packet):
        raise NoClosedFormError("the queue is too short for the packets of Vegas")
    note = f"Vegas: alpha to beta packets per flow, {least:.0f} to {most:.0f}, plus the one in transmission"
    least, most = least + SENDING, most + SENDING
    return _about((least + most) / 2, note, {"alpha": least, "beta": most})


def _reno_queue(flow: Flow) -> Prediction:
    _, pipe = _path(flow)
    room = flow.bottleneck.room(flow.packet)
    window = flow.window / flow.payload
    if flow.controller != RENO or flow.loss > 0 or window <= pipe + room:
        raise NoClosedFormError("only for Reno at a drop-tail queue without losses")
    sending = tcp.sawtooth_utilisation(pipe, room - SENDING) * SENDING
    return _about(tcp.sawtooth_queue(pipe, room - SENDING) + sending, _sawtooth(pipe, room))
