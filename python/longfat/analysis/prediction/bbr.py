"""Predictions of the share of BBR version 1 beside loss-based flows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from longfat.analysis.prediction.layout import Flow, layout
from longfat.analysis.prediction.links import number
from longfat.analysis.prediction.model import NoClosedFormError, Prediction, nothing
from longfat.analysis.theory import bbr

FORM = "ware"
MODELLED = "bbr1"
OTHERS = ("bbr", "bbr-tolerant")
"""Later versions, for which claims can name the form of version 1."""
RIVALS = ("reno", "cubic")


def share(spec: Mapping[str, Any]) -> Prediction:
    """Predicts the share of the measured BBR flows beside Reno or CUBIC, at one drop-tail queue.

    For BBR version 3 there is no value, as the form does not model it. The form "ware" is still the share
    that version 1 would have, so that a claim can compare both.
    """
    try:
        return _share(spec)
    except NoClosedFormError as reason:
        return nothing(reason)


def _share(spec: Mapping[str, Any]) -> Prediction:
    found = layout(spec)
    measured = found.measured
    rivals = [flow for flow in found.flows if flow.traffic]
    names = {flow.controller for flow in measured}
    if len(names) != 1 or not names <= {MODELLED, *OTHERS}:
        raise NoClosedFormError("the share is predicted for BBR alone")
    if not rivals or any(flow.controller not in RIVALS for flow in rivals):
        raise NoClosedFormError("the share of BBR is predicted beside Reno and CUBIC alone")
    _check_network(spec, found.flows)
    first = measured[0]
    link, trip = first.bottleneck, sum(link.delay for link in (*first.forward, *first.reverse))
    rate, room = link.rate / (first.packet * 8), link.room(first.packet)
    if room < int(rate * trip):  # Limits are whole packets.
        raise NoClosedFormError("the queue is shorter than one bandwidth-delay product")
    given = spec["protocol"].get("congestion")
    keys = given if isinstance(given, Mapping) and names == {MODELLED} else {}
    settings = {
        name: number(keys[f"probe_rtt_{name}"], f"probe_rtt_{name}")
        for name in ("interval", "duration")
        if f"probe_rtt_{name}" in keys
    }
    value = bbr.share(rate, trip, room, len(measured), **settings)
    note = (
        f"Ware et al.: in-flight cap and ProbeRTT, a path of {rate * trip:.0f} packets, a queue of {room:.0f}"
    )
    if names == {MODELLED}:
        return Prediction(value, exact=False, note=note, forms={FORM: value})
    return Prediction(
        None, exact=False, note="no closed form: Ware et al. model BBR version 1", forms={FORM: value}
    )


def _check_network(spec: Mapping[str, Any], flows: tuple[Flow, ...]) -> None:
    """Raises NoClosedFormError unless endless flows with the same RTT share one queue without losses."""
    entries = [spec, *spec.get("traffic", ())]
    if any(entry["workload"].get("kind") != "bulk" or "rate" in entry["workload"] for entry in entries):
        raise NoClosedFormError("the share is predicted for endless flows")
    first = flows[0]
    if any(flow.bottleneck is not first.bottleneck for flow in flows):
        raise NoClosedFormError("some flows have another bottleneck")
    if any(abs(flow.round_trip / first.round_trip - 1) > 0.01 for flow in flows):
        raise NoClosedFormError("flows with different round-trip times")
    if any(flow.loss > 0 for flow in flows):
        raise NoClosedFormError("the path loses packets")
    if not all(link.steady for flow in flows for link in (*flow.forward, *flow.reverse)):
        raise NoClosedFormError("rate, delay or order of packets vary on the path")
