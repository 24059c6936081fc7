"""The time of a transfer over hops, by parts, from the models of `longfat.analysis.theory`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from longfat.analysis.theory import latency, lossy_transfer, slow_start, transactions
from longfat.analysis.theory.latency import Hop
from longfat.analysis.theory.response import CUBIC
from longfat.analysis.theory.slow_start import Rules
from longfat.results.run import known
from longfat.system.parameters import ParameterError

LATENCY, BANDWIDTH, SERVICE, LOSS = "latency", "bandwidth", "service", "loss"
KINDS = (LATENCY, BANDWIDTH, SERVICE, LOSS)
PROTOCOLS = ("none", "ping", "udp", "tcp", "tfo", "ttcp")
ROUNDING = 1e-10
"""Times below this, in s, are rounding errors."""
ICMP_HEADER = 28
"""Bytes of the IP and ICMP headers."""


@dataclass(frozen=True)
class Part:
    """A part of the time in s, and its cause: latency, bandwidth, the server or loss."""

    name: str
    seconds: float
    kind: str


@dataclass(frozen=True)
class Question:
    """A transfer over hops; sizes in bytes, times in s.

    `size` is payload, or bytes on the wire with the protocol "none". `packet` is the largest packet on the
    wire. A `reply` makes it a transaction, for which the server needs `service`. `receive` is the processing
    time of the receiver. `controller` is TCP's congestion controller, which matters if packets are lost.
    """

    hops: tuple[Hop, ...]
    back: tuple[Hop, ...]
    size: int
    packet: int = 1500
    protocol: str = "none"
    reply: int | None = None
    receive: float = 0.0
    service: float = 0.0
    rules: Rules = field(default_factory=Rules)
    controller: str = CUBIC

    @property
    def is_lossy(self) -> bool:
        """Whether either direction loses packets."""
        return any(hop.loss > 0 for hop in (*self.hops, *self.back))


@dataclass(frozen=True)
class Answer:
    """The parts of the time, further figures, and the effects that the model leaves out."""

    parts: tuple[Part, ...]
    figures: dict[str, Any]
    left_out: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """The sum of all parts."""
        return math.fsum(part.seconds for part in self.parts)

    def share(self, kind: str) -> float:
        """Returns the share of the time with this cause; NaN without time."""
        return _part(math.fsum(part.seconds for part in self.parts if part.kind == kind), self.seconds)

    @property
    def dominant(self) -> str:
        """The cause of the largest share of the time."""
        return max(KINDS, key=self.share)

    def document(self) -> dict[str, Any]:
        """Returns the answer as JSON values."""
        return {
            "total_s": self.seconds,
            "parts": [
                {
                    "name": p.name,
                    "seconds": p.seconds,
                    "kind": p.kind,
                    "share": known(_part(p.seconds, self.seconds)),
                }
                for p in self.parts
            ],
            "dominant": self.dominant,
            "shares": {kind: known(self.share(kind)) for kind in KINDS},
            **self.figures,
        }


def answer(question: Question) -> Answer:
    """Predicts the time of a transfer; raises ValueError for an invalid question."""
    if question.protocol not in PROTOCOLS:
        raise ValueError(f'unknown protocol "{question.protocol}"; allowed: {", ".join(PROTOCOLS)}')
    if question.protocol in ("tcp", "tfo", "ttcp"):
        found = _connection(question) if question.reply is None else _transaction(question)
        return replace(found, left_out=_left_out_of_tcp(question))
    found = _without_retransmission(question)
    if not question.is_lossy:
        return found
    lost = {"loss": _loss(question)}
    return replace(found, figures={**found.figures, **lost}, left_out=("loss",))


def _without_retransmission(question: Question) -> Answer:
    if question.protocol == "ping":
        return _ping(question)
    if question.protocol == "none":
        if question.reply is not None:
            raise ParameterError("reply", "requires {protocol} ping, udp, tcp, tfo or ttcp")
        return _plain(question)
    return _transaction(question) if question.reply is not None else _datagrams(question)


def _loss(question: Question) -> float:
    """The probability that a packet is lost or, with a reply, that either is."""
    is_answered = question.protocol == "ping" or question.reply is not None
    return lossy_transfer.way_loss((*question.hops, *(question.back if is_answered else ())))


def _left_out_of_tcp(question: Question) -> tuple[str, ...]:
    left_out = ["drops at full queues"]
    if question.is_lossy:
        left_out.append("lost ACKs in slow start")
    return tuple(left_out)


def _plain(question: Question) -> Answer:
    train = latency.packets(question.size, question.packet, 0)
    parts, last_bit = _train_parts(question.hops, train, question.size, question.receive)
    return _one_way(question, _merged(parts), last_bit, _count(train), question.size)


def _datagrams(question: Question) -> Answer:
    train = latency.packets(question.size, _room(question, transactions.UDP_HEADER), transactions.UDP_HEADER)
    parts, last_bit = _train_parts(question.hops, train, _wire(train), question.receive)
    return _one_way(question, _merged(parts), last_bit, _count(train), question.size)


def _connection(question: Question) -> Answer:
    rules = _rules(question)
    handshake = [] if question.protocol in ("tfo", "ttcp") else _handshake(question, rules)
    parts, sent = _slow_start_parts(question.hops, question.back, question.size, rules)
    lost, figures = _loss_parts(question, rules, [(question.hops, question.back, question.size)])
    parts = (*parts, *lost)
    last_bit = math.fsum(part.seconds for part in (*handshake, *parts))
    whole = _merged([*handshake, *parts, Part("processing", question.receive, LATENCY)])
    answer = _one_way(question, whole, last_bit, sent.segments, question.size)
    packets = slow_start.rounds(sent.segments, rules.initial_window)
    figures = {"slow_start_rounds": math.ceil(packets - 1e-9), **figures}
    return replace(answer, figures={**answer.figures, **figures})


def _loss_parts(
    question: Question, rules: Rules, ways: Sequence[tuple[Sequence[Hop], Sequence[Hop], int]]
) -> tuple[list[Part], dict[str, Any]]:
    """The parts and figures that losses add to a connection; `ways` are the hops and bytes per direction."""
    if not question.is_lossy:
        return [], {}
    losses = [lossy_transfer.way_loss(way) for way in (question.hops, question.back)]
    parts = [Part("losses of the handshake", lossy_transfer.handshake_delay(*losses), LOSS)]
    figures: dict[str, Any] = {"loss": losses[0], "loss_back": losses[1]}
    for hops, back, size in ways:
        if lossy_transfer.way_loss(hops) == 0:
            continue
        sent = lossy_transfer.lossy_transfer(hops, back, size, rules, question.controller)
        added = sent.seconds - slow_start.transfer(hops, back, size, rules).seconds
        parts.append(Part("losses: smaller windows, recovery", _unless_rounding(added), LOSS))
        if question.reply is None:
            figures |= {
                "response": sent.response.note,
                "steady_rate_bps": sent.rate,
                "segments_before_loss": sent.before_loss,
            }
    return parts, figures


def _transaction(question: Question) -> Answer:
    reply = question.reply
    assert reply is not None
    rules = _rules(question)
    handshake = _handshake(question, rules) if question.protocol == "tcp" else []
    lossy: dict[str, Any] = {}
    if question.protocol == "udp":
        parts, is_single = _datagrams_both_ways(question, reply)
    else:
        parts, is_single = _segments_both_ways(question, reply, rules)
        ways = [(question.hops, question.back, question.size), (question.back, question.hops, reply)]
        lost, lossy = _loss_parts(question, rules, ways)
        parts = [*parts, *lost]
    served = Part("the server", question.service, SERVICE)
    received = Part("processing", 2 * question.receive, LATENCY)
    figures = {
        "round_trips": transactions.ROUND_TRIPS[question.protocol],
        "segments": len(transactions.SEGMENTS[question.protocol]) if is_single else None,
    }
    return Answer(_merged([*handshake, *parts, received, served]), {**figures, **lossy})


def _datagrams_both_ways(question: Question, reply: int) -> tuple[list[Part], bool]:
    header = transactions.UDP_HEADER
    room = _room(question, header)
    parts: list[Part] = []
    for way, size in ((question.hops, question.size), (question.back, reply)):
        train = latency.packets(size, room, header)
        parts += _train_parts(way, train, _wire(train), 0.0)[0]
    return parts, max(question.size, reply) <= room


def _segments_both_ways(question: Question, reply: int, rules: Rules) -> tuple[list[Part], bool]:
    early = transactions.EARLY.get(question.protocol)
    is_single = max(question.size, reply) <= rules.segment
    if early is None or question.packet < max(question.size, reply) + rules.syn + early.there + early.back:
        there = _slow_start_parts(question.hops, question.back, question.size, rules)[0]
        return [*there, *_slow_start_parts(question.back, question.hops, reply, rules)[0]], is_single
    request = question.size + rules.syn + early.there
    there, _ = _train_parts(question.hops, (request, 1, None), request, 0.0)
    answered = reply + (rules.header if early.is_apart else rules.syn + early.back)
    back, alone = _train_parts(question.back, (answered, 1, None), answered, 0.0)
    wait = latency.behind(question.back, rules.syn, answered) - alone if early.is_apart else 0.0
    return [*there, *back, Part("behind the SYN-ACK", _unless_rounding(wait), LATENCY)], is_single


def _ping(question: Question) -> Answer:
    size = question.size + ICMP_HEADER
    parts: list[Part] = []
    for way in (question.hops, question.back):
        parts += _train_parts(way, (size, 1, None), size, question.receive)[0]
    naive = latency.naive_echo(question.hops, question.back, size)
    return Answer(
        _merged(parts), {"naive_rtt_s": naive, "packet_bytes": size, "slope_s_per_byte": _slope(question)}
    )


def _slope(question: Question) -> float:
    """The round-trip time per byte: the sum of 1 / bandwidth over all links."""
    return math.fsum(latency.serialization(1, hop.rate) for hop in (*question.hops, *question.back))


def _one_way(question: Question, parts: tuple[Part, ...], last_bit: float, packets: int, size: int) -> Answer:
    seconds = math.fsum(part.seconds for part in parts)
    busy = math.fsum(part.seconds for part in parts if part.name == "processing")
    figures = {
        "last_bit_s": last_bit,
        "packets": packets,
        "rate_bps": _rate(size, seconds),
        "rate_without_processing_bps": _rate(size, seconds - busy),
        "stream_s": latency.bulk(question.hops, size),
    }
    return Answer(parts, figures)


def _rate(size: int, seconds: float) -> float | None:
    return size * latency.BITS / seconds if seconds > 0 else None


def _train_parts(
    hops: Sequence[Hop], train: tuple[int, int, int | None], size: int, receive: float
) -> tuple[tuple[Part, ...], float]:
    """The parts of a packet train with `size` bytes on the wire, and the arrival time of its last bit."""
    full, count, last = train
    last_bit = latency.train(hops, full, count, last)
    propagation = math.fsum(hop.delay for hop in hops)
    processing = math.fsum(hop.processing for hop in hops)
    bandwidth = latency.serialization(size, latency.bottleneck(hops))
    forwarding = _unless_rounding(last_bit - propagation - processing - bandwidth)
    parts = (
        Part("propagation", propagation, LATENCY),
        Part("processing", processing + receive, LATENCY),
        Part("store and forward", forwarding, LATENCY),
        Part("sending at the slowest link", bandwidth, BANDWIDTH),
    )
    return parts, last_bit


def _slow_start_parts(
    hops: Sequence[Hop], back: Sequence[Hop], size: int, rules: Rules
) -> tuple[tuple[Part, ...], slow_start.Transfer]:
    train = latency.packets(size, rules.segment, rules.header)
    parts, at_once = _train_parts(hops, train, _wire(train), 0.0)
    sent = slow_start.transfer(hops, back, size, rules)
    return (*parts, Part("waiting for the window", _unless_rounding(sent.seconds - at_once), LATENCY)), sent


def _handshake(question: Question, rules: Rules) -> list[Part]:
    return [Part("handshake", transactions.handshake(question.hops, question.back, rules), LATENCY)]


def _rules(question: Question) -> Rules:
    return replace(question.rules, segment=_room(question, question.rules.header))


def _room(question: Question, header: int) -> int:
    room = question.packet - header
    if room < 1:
        raise ParameterError(
            "packet", f"{question.packet} B is too small for {header} B of headers and payload"
        )
    return room


def _merged(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Merges parts with the same name, and removes parts without time."""
    found: dict[str, Part] = {}
    for part in parts:
        before = found.get(part.name)
        found[part.name] = replace(part, seconds=part.seconds + (before.seconds if before else 0.0))
    kept = tuple(part for part in found.values() if part.seconds > 0)
    return kept or tuple(found.values())


def _unless_rounding(seconds: float) -> float:
    """A difference of times, or zero if it is a rounding error."""
    return seconds if seconds > ROUNDING else 0.0


def _wire(train: tuple[int, int, int | None]) -> int:
    return train[0] * train[1] + (train[2] or 0)


def _count(train: tuple[int, int, int | None]) -> int:
    return train[1] + (train[2] is not None)


def _part(seconds: float, whole: float) -> float:
    return seconds / whole if whole > 0 else math.nan
