"""One request and one reply: the segments and the round trips of each protocol.

`SEGMENTS` lists the segments if request and reply fit into one segment each and both ends send immediately:
the client closes its side with the request, the server with the reply. Acknowledgements are sent with the
segment of the same instant.

Sources: Stevens, TCP/IP Illustrated 3 (1996), figures 1.8 and 1.12; RFC 9293; RFC 1644 (T/TCP, historic by
RFC 6247); RFC 7413 (TCP Fast Open).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from longfat.analysis.theory.latency import Hop, transit
from longfat.analysis.theory.slow_start import Rules, transfer

SEGMENTS: dict[str, tuple[tuple[str, str], ...]] = {
    "udp": (("client", "request"), ("server", "reply")),
    "tcp": (
        ("client", "SYN"),
        ("server", "SYN, ACK of the SYN"),
        ("client", "ACK of the SYN"),
        ("client", "request"),
        ("client", "FIN"),
        ("server", "ACK of request and FIN"),
        ("server", "reply"),
        ("server", "FIN"),
        ("client", "ACK of reply and FIN"),
    ),
    "tfo": (
        ("client", "SYN, cookie, request"),
        ("server", "SYN, ACK of the request"),
        ("client", "FIN, ACK of the SYN"),
        ("server", "ACK of the FIN"),
        ("server", "reply"),
        ("server", "FIN"),
        ("client", "ACK of reply and FIN"),
    ),
    "ttcp": (
        ("client", "SYN, request, FIN, CC"),
        ("server", "SYN, ACK of the FIN, reply, FIN, CC.ECHO"),
        ("client", "ACK of the FIN"),
    ),
}
"""The sender and content of each segment; T/TCP and Fast Open from the second connection to a host."""

ROUND_TRIPS = {"udp": 1, "tcp": 2, "tfo": 1, "ttcp": 1}
"""Round trips from opening the connection to the arrival of the reply."""

UDP_HEADER = 28
"""Bytes of the IP and UDP headers."""


@dataclass(frozen=True)
class Early:
    """Bytes that a connection with data in the SYN adds to its SYN and SYN-ACK."""

    there: int
    back: int
    is_apart: bool
    """Whether the reply follows the SYN-ACK instead of being part of it."""


EARLY = {"tfo": Early(12, 0, is_apart=True), "ttcp": Early(8, 16, is_apart=False)}
"""A cookie of eight bytes (RFC 7413); CC, and CC with CC.ECHO (RFC 1644); each padded to four bytes."""


@dataclass(frozen=True)
class Transaction:
    """The parts of the time from opening the connection to the arrival of the reply, in s."""

    handshake: float
    request: float
    service: float
    reply: float

    @property
    def seconds(self) -> float:
        """The time from opening the connection to the last byte of the reply."""
        return math.fsum((self.handshake, self.request, self.service, self.reply))


def handshake(hops: Sequence[Hop], back: Sequence[Hop], rules: Rules) -> float:
    """Returns the time from the SYN to the arrival of the SYN-ACK in s (RFC 9293, section 3.5)."""
    return transit(hops, rules.syn) + transit(back, rules.syn)


def over_tcp(
    hops: Sequence[Hop],
    back: Sequence[Hop],
    sizes: tuple[int, int],
    rules: Rules,
    *,
    service: float = 0.0,
) -> Transaction:
    """Predicts a transaction over a new connection; `sizes` are the bytes of request and reply.

    Request and reply each use slow start from the initial window; the server replies after the whole request.
    """
    request, reply = sizes
    first, there = handshake(hops, back, rules), transfer(hops, back, request, rules).seconds
    return Transaction(first, there, service, transfer(back, hops, reply, rules).seconds)
