"""How long a request and its response take, by latency and bandwidth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from longfat.analysis.prediction.layout import Exchange, Flow, Link, layout
from longfat.analysis.prediction.model import NoClosedFormError, Prediction, nothing
from longfat.analysis.theory.latency import Hop, fragments, train
from longfat.analysis.theory.slow_start import Rules
from longfat.analysis.theory.transactions import over_tcp

TIMES = ("fct_min_s", "fct_mean_s", "fct_p50_s", "wire_min_s", "wire_p50_s")
"""Metrics that the forms speak of: without loss and queue all requests take the same time."""
TRANSPORT_HEADER = 8
"""Bytes of the header of UDP (RFC 768), and of ICMP echo (RFC 792)."""
EARLY = ("fast_open", "ttcp")
"""Settings with which the first connection to a host takes longer than those after it."""
NOTE = "latency and bandwidth: each link's delay, and its time for all bits of each packet"


def predict(spec: Mapping[str, Any], metric: str) -> Prediction:
    """The time, in s, of one request on a network that nothing else uses; that in the hosts is left out."""
    if metric not in TIMES:
        return nothing(f"theory does not speak of {metric} here")
    try:
        return _predict(spec)
    except NoClosedFormError as reason:
        return nothing(reason)


def _predict(spec: Mapping[str, Any]) -> Prediction:
    flow = layout(spec).lone()
    exchange = flow.exchange
    if exchange is None:
        raise NoClosedFormError("nothing is asked")
    if not flow.forward:
        raise NoClosedFormError("only the hosts themselves take time")
    if any("loss" in link.config for link in (*flow.forward, *flow.reverse)):
        raise NoClosedFormError("what is lost is asked again, or never answered")
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
        raise NoClosedFormError("only datagrams, and TCP with a connection for each request, have a form")
    if any(spec["protocol"].get(key) for key in EARLY):
        raise NoClosedFormError("the first connection to a host and those after it differ")
    if max(exchange.request, exchange.response) > flow.payload:
        raise NoClosedFormError("request and response are more than a segment each")
    header = round(flow.packet - flow.payload)
    rules = Rules(segment=int(flow.payload), header=header)
    seconds = over_tcp(there, back, (exchange.request, exchange.response), rules).seconds
    return Prediction(seconds, exact=False, note=f"{NOTE}; a round trip for the handshake")


def _hops(links: Sequence[Link]) -> list[Hop]:
    return [Hop(link.rate, link.delay) for link in links]


def _datagram(hops: list[Hop], payload: int, exchange: Exchange) -> float:
    """Seconds until all fragments are there."""
    *full, last = fragments(payload + TRANSPORT_HEADER, exchange.mtu)
    return train(hops, full[0], len(full), last) if full else train(hops, last)
