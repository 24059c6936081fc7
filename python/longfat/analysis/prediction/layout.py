"""Network and flows of a trial as the native module lays them out, for forms that need more than a path."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from longfat import _native
from longfat.analysis.prediction import links
from longfat.analysis.prediction.model import NoClosedFormError
from longfat.analysis.theory.capacity import deliverable
from longfat.analysis.theory.tcp import window_limited
from longfat.study import units
from longfat.study.vocabulary import canonical

TCP_ACK = 40
"""Bytes of the IPv4 and TCP headers of an ACK, without its options."""


@dataclass(frozen=True)
class Link:
    """A link in one direction; `rate` in bit/s (infinite without a limit), `delay` in s.

    `steady` is whether rate, delay and packet order are constant; `config` contains `loss` and `queue` as the
    study writes them.
    """

    name: str
    rate: float
    delay: float
    steady: bool
    config: Mapping[str, Any]

    @property
    def loss(self) -> float:
        """The loss probability; raises NoClosedFormError if losses are not independent."""
        return links.loss(self.config)

    def room(self, size: float) -> float:
        """Returns the number of packets of `size` bytes in a full queue, including the one in transmission.

        Raises NoClosedFormError for an active queue management (AQM).
        """
        return links.queue_room(self.config, size)


@dataclass(frozen=True)
class Exchange:
    """Payload bytes of a request and its response, and the largest packet with all headers."""

    request: int
    response: int
    mtu: int


@dataclass(frozen=True)
class Flow:
    """A flow with its forward and reverse path; `traffic` is its traffic group, empty for a measured flow.

    `payload` are the payload bytes of a full packet and `packet` its bytes on the wire. `window` is the
    maximum number of unacknowledged bytes, `timeout` the first RTO on an idle path, in s, and `controller`
    the name of the congestion controller (empty without TCP).
    """

    traffic: str
    sender: str
    receiver: str
    forward: tuple[Link, ...]
    reverse: tuple[Link, ...]
    payload: float
    packet: float
    fair: float | None
    window: float
    timeout: float
    controller: str
    exchange: Exchange | None

    @property
    def bottleneck(self) -> Link:
        """The slowest link of the forward path; the first if there are several."""
        return min(self.forward, key=lambda link: link.rate)

    @property
    def round_trip(self) -> float:
        """The RTT of a full packet and its ACK without queues in s: delays and transmission times."""
        there = sum(link.delay + self.packet * 8 / link.rate for link in self.forward)
        return there + sum(link.delay + TCP_ACK * 8 / link.rate for link in self.reverse)

    @property
    def most(self) -> float:
        """The maximum packets per second that links and window allow."""
        by_links = deliverable((link.rate / (self.packet * 8), link.loss) for link in self.forward)
        if self.round_trip <= 0:
            return by_links
        return min(by_links, window_limited(self.window / self.payload, self.round_trip))

    @property
    def burst(self) -> float:
        """The payload bytes that can arrive at once: a packet if links limit, a window if it does."""
        by_links = deliverable((link.rate / (self.packet * 8), link.loss) for link in self.forward)
        return self.payload if self.most >= by_links else self.window

    @property
    def loss(self) -> float:
        """The probability that a packet is lost on the forward path."""
        return 1 - math.prod(1 - link.loss for link in self.forward)

    @property
    def loss_of_acks(self) -> float:
        """The probability that an ACK is lost on the reverse path."""
        return 1 - math.prod(1 - link.loss for link in self.reverse)


@dataclass(frozen=True)
class Layout:
    """All flows of a trial, measured flows first, and the links whose queues are measured."""

    flows: tuple[Flow, ...]
    bottlenecks: tuple[Link, ...]

    @property
    def measured(self) -> list[Flow]:
        """The flows that the metrics cover."""
        return [flow for flow in self.flows if not flow.traffic]

    def lone(self) -> Flow:
        """Returns the only flow of a trial; raises NoClosedFormError if there are several."""
        if len(self.flows) != 1:
            raise NoClosedFormError(f"{len(self.flows)} flows share the network")
        (flow,) = self.flows
        if not all(link.steady for link in (*flow.forward, *flow.reverse)):
            raise NoClosedFormError("rate, delay or order of packets vary on the path")
        return flow


def edge(spec: Mapping[str, Any], burst: float) -> float:
    """Returns by how much `burst` bytes at the edge of the measured time raise an upper bound, in bit/s.

    Bytes that arrive at its start were transmitted before. A transfer without a duration has no such edge.
    """
    workload = spec.get("workload", {})
    duration = units.number(workload.get("duration"))
    if duration is None:
        return 0.0
    return burst * 8 / (duration - (units.number(workload.get("warm_up")) or 0.0))


def layout(spec: Mapping[str, Any]) -> Layout:
    """Returns the layout of a trial specification; raises NoClosedFormError if it cannot run."""
    try:
        return _layout(canonical({**spec, "seed": 0, "trial": 0}))
    except ValueError as error:
        raise NoClosedFormError(str(error)) from None


@functools.lru_cache(maxsize=4096)
def _layout(spec: str) -> Layout:
    content = json.loads(_native.layout(spec))
    found = [_link(link) for link in content["links"]]
    flows = tuple(_flow(flow, found) for flow in content["flows"])
    return Layout(flows, tuple(found[i] for i in content["bottlenecks"]))


def _link(content: Mapping[str, Any]) -> Link:
    rate = content["rate_bps"]
    return Link(
        name=content["name"],
        rate=math.inf if rate is None else rate,
        delay=content["delay_s"],
        steady=bool(content["is_steady"]),
        config={key: content[key] for key in ("loss", "queue") if content[key] is not None},
    )


def _flow(content: Mapping[str, Any], found: list[Link]) -> Flow:
    tcp: Mapping[str, Any] = content.get("tcp") or {}
    return Flow(
        traffic=content["traffic"] or "",
        sender=content["from"],
        receiver=content["to"],
        forward=tuple(found[i] for i in content["links"]),
        reverse=tuple(found[i] for i in content["reverse_links"]),
        payload=content["payload_bytes"],
        packet=content["payload_bytes"] / content["payload_share"],
        fair=content["max_min_bps"],
        window=tcp.get("window_bytes", math.inf),
        timeout=tcp.get("timeout_s", math.nan),
        controller=tcp.get("controller", ""),
        exchange=_exchange(content.get("exchange")),
    )


def _exchange(content: Mapping[str, Any] | None) -> Exchange | None:
    if content is None:
        return None
    return Exchange(content["request_bytes"], content["response_bytes"], content["mtu_bytes"])
