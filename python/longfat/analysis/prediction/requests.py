"""The time of a request and its response, from latency and bandwidth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from longfat.analysis.prediction.layout import Exchange, Flow, Link, layout
from longfat.analysis.prediction.model import NoClosedFormError, Prediction, nothing
from longfat.analysis.theory.latency import Hop, fragments, train
from longfat.analysis.theory.slow_start import Rules
from longfat.analysis.theory.transactions import over_tcp

TIMES = ("fct_min_s", "fct_mean_s", "fct_p50_s", "wire_min_s", "wire_p50_s")
"""Predicted metrics: without loss and queues, all requests take the same time."""
TRANSPORT_HEADER = 8
"""Bytes of the UDP header (RFC 768) and the ICMP echo header (RFC 792)."""
EARLY = ("fast_open", "ttcp")
"""Settings with which the first connection to a host takes longer than later ones."""
NOTE = "latency and bandwidth: delays and transmission times of each link"


def predict(spec: Mapping[str, Any], metric: str) -> Prediction:
    """Predicts the time of one request on an idle network in s, without the time in the hosts."""
    if metric not in TIMES:
        return nothing(f"{metric} is not predicted here")
    try:
        return _predict(spec)
    except NoClosedFormError as reason:
        return nothing(reason)


def _predict(spec: Mapping[str, Any]) -> Prediction:
    flow = layout(spec).lone()
    exchange = flow.exchange
    if exchange is None:
        raise NoClosedFormError("the workload has no requests")
    if not flow.forward:
        raise NoClosedFormError("the path takes no time: only the hosts limit")
    if any("loss" in link.config for link in (*flow.forward, *flow.reverse)):
        raise NoClosedFormError("links lose packets")
    there, back = _hops(flow.forward), _hops(flow.reverse)
    protocol = spec["protocol"]
    if protocol["kind"] in ("udp", "icmp"):
        seconds = _datagram(there, exchange.request, exchange) + _datagram(back, exchange.response, exchange)
        return Prediction(seconds, exact=True, note=NOTE)
    return _connection(spec, flow, exchange, there, back)


def _connection(
    spec: Mapping[str, Any], flow: Flow, exchange: Exchange, there: list[Hop], back: list[Hop]
) -> Prediction:
    if spec["protocol"]["kind"] != "tcp" or not spec["workload"].get("reconnect"):
        raise NoClosedFormError("only for datagrams, and for TCP with a connection per request")
    if any(spec["protocol"].get(key) for key in EARLY):
        raise NoClosedFormError("the first connection to a host differs from later ones")
    if max(exchange.request, exchange.response) > flow.payload:
        raise NoClosedFormError("a request or response exceeds one segment")
    header = round(flow.packet - flow.payload)
    rules = Rules(segment=int(flow.payload), header=header)
    seconds = over_tcp(there, back, (exchange.request, exchange.response), rules).seconds
    return Prediction(seconds, exact=False, note=f"{NOTE}; one RTT for the handshake")


def _hops(links: Sequence[Link]) -> list[Hop]:
    return [Hop(link.rate, link.delay) for link in links]


def _datagram(hops: list[Hop], payload: int, exchange: Exchange) -> float:
    """The time until all fragments arrive, in s."""
    *full, last = fragments(payload + TRANSPORT_HEADER, exchange.mtu)
    return train(hops, full[0], len(full), last) if full else train(hops, last)
