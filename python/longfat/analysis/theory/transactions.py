"""One request and one reply: which segments each protocol sends, and how many round trips go by.

`SEGMENTS` lists what is sent where request and reply fit into a segment each and every end sends at once
what it has: the client ends its side with the request, the server with the reply. An acknowledgement goes
with what is sent in the same instant.

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
"""What each protocol sends and who sends it; T/TCP and Fast Open from the second connection to a host on."""

ROUND_TRIPS = {"udp": 1, "tcp": 2, "tfo": 1, "ttcp": 1}
"""Round trips from the client's wish to the reply's arrival: all but TCP's are that of the request alone."""

UDP_HEADER = 28
"""IP and UDP."""


@dataclass(frozen=True)
class Early:
    """What a connection adds to its SYN and SYN-ACK, in bytes, that has its request in the SYN."""

    there: int
    back: int
    is_apart: bool
    """Whether the reply follows the SYN-ACK, rather than being in it."""


EARLY = {"tfo": Early(12, 0, is_apart=True), "ttcp": Early(8, 16, is_apart=False)}
"""A cookie of eight bytes (RFC 7413); CC, and CC with CC.ECHO (RFC 1644); each padded to four bytes."""


@dataclass(frozen=True)
class Transaction:
    """When the reply has arrived, from the wish to connect, and what that is made of; in s."""

    handshake: float
    request: float
    service: float
    reply: float

    @property
    def seconds(self) -> float:
        """From the client's wish to connect to the last byte of the reply."""
        return math.fsum((self.handshake, self.request, self.service, self.reply))


def handshake(hops: Sequence[Hop], back: Sequence[Hop], rules: Rules) -> float:
    """Seconds from the SYN to the arrival of the SYN-ACK, with which data may go (RFC 9293, section 3.5)."""
    return transit(hops, rules.syn) + transit(back, rules.syn)


def over_tcp(
    hops: Sequence[Hop],
    back: Sequence[Hop],
    sizes: tuple[int, int],
    rules: Rules,
    *,
    service: float = 0.0,
) -> Transaction:
    """A transaction over a connection of its own; `sizes` are the bytes of request and reply.

    Either may take several segments and then starts slowly. Windows are those of a new connection, and the
    server answers once it has the whole request.
    """
    request, reply = sizes
    first, there = handshake(hops, back, rules), transfer(hops, back, request, rules).seconds
    return Transaction(first, there, service, transfer(back, hops, reply, rules).seconds)
