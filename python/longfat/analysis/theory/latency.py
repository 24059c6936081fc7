"""The time that packets take over hops: latency and bandwidth.

A node spends `processing` on a packet and transmits it at the `rate` of the link; its bits propagate for
`delay`. The next node forwards it after receiving all of it (store and forward), while the following packet
is on the previous link. Sizes are bytes on the wire, rates bit/s, times seconds; queues are initially empty
and never overflow.

Sources: Stevens, TCP/IP Illustrated 3 (1996), appendix A.3; Bellovin, A best-case network performance model
(1992); Kurose and Ross, Computer Networking, section 1.4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

BITS = 8
FRAGMENT_UNIT = 8
"""The payload of all fragments except the last is a multiple of this (RFC 791)."""


@dataclass(frozen=True)
class Hop:
    """A link and the node that sends over it.

    `rate` is in bit/s (infinite: no transmission time), `delay` one-way in s, `processing` in s per packet
    before transmission; nodes process packets in parallel, so processing delays packets and never limits the
    rate. `loss` is the probability that a packet is lost before it is queued; this module ignores it.
    """

    rate: float = math.inf
    delay: float = 0.0
    processing: float = 0.0
    loss: float = 0.0

    def __post_init__(self) -> None:
        if not self.rate > 0 or self.delay < 0 or self.processing < 0:
            raise ValueError("a hop needs a rate above 0, and a delay and processing of 0 or more")
        if not 0 <= self.loss < 1:
            raise ValueError("a hop's loss must be at least 0 and below 1")


def serialization(size: float, rate: float) -> float:
    """Returns the transmission time of `size` bytes at `rate`, in s.

    >>> round(serialization(552, 1_544_000) * 1000, 2)
    2.86
    """
    return size * BITS / rate


def transit(hops: Sequence[Hop], size: float) -> float:
    """Returns the time until the last bit of one packet arrives, in s.

    >>> round(transit([Hop(1_523_200, 0.005, 0.001), Hop(1_523_200, 0.001, 0.001)], 1428) * 1000, 6)
    23.0
    """
    return math.fsum(hop.processing + serialization(size, hop.rate) + hop.delay for hop in hops)


def bottleneck(hops: Sequence[Hop]) -> float:
    """Returns the smallest rate in bit/s; infinite if no hop has one."""
    return min((hop.rate for hop in hops), default=math.inf)


def bulk(hops: Sequence[Hop], size: float) -> float:
    """Returns the time of `size` bytes as a stream, in s: size over the smallest rate, plus the delays.

    >>> round(bulk([Hop(1_544_000, 0.03)], 1_000_000), 2)
    5.21
    """
    return serialization(size, bottleneck(hops)) + math.fsum(hop.delay + hop.processing for hop in hops)


def train(hops: Sequence[Hop], size: float, count: int = 1, last: float | None = None) -> float:
    """Returns the time until the last bit of `count` equal packets, sent back to back, arrives, in s.

    With `last`, one more packet of that size follows, which must not be larger. Equal packets form a
    pipeline: after the first, one arrives per transmission time of the slowest link.

    >>> round(train([Hop(1_523_200, 0.005, 0.001), Hop(1_523_200, 0.001, 0.001)], 1428, 10) * 1000, 6)
    90.5
    """
    if count < (last is None):
        raise ValueError("a train needs at least one packet")
    if last is not None and last > size:
        raise ValueError("the last packet must not be larger than the others")
    arrived, first, slowest = 0.0, 0.0, 0.0  # of the last packet, of the first, the longest sending so far
    for hop in hops:
        sending = serialization(size, hop.rate)
        slowest = max(slowest, sending)
        first += hop.processing + sending
        free = first + (count - 1) * slowest if count else 0.0
        if last is None:
            arrived = free + hop.delay
        else:
            arrived = max(arrived + hop.processing, free) + serialization(last, hop.rate) + hop.delay
        first += hop.delay
    return arrived


def behind(hops: Sequence[Hop], first: float, size: float) -> float:
    """Returns the time until a packet arrives that is sent right behind another one, in s.

    >>> behind([Hop(8000)], 100, 1000), behind([Hop(8000), Hop(1000)], 100, 1000)
    (1.1, 9.1)
    """
    ahead = at = 0.0
    for hop in hops:
        free = ahead + hop.processing + serialization(first, hop.rate)
        at = max(at + hop.processing, free) + serialization(size, hop.rate) + hop.delay
        ahead = free + hop.delay
    return at


def echo(hops: Sequence[Hop], back: Sequence[Hop], size: float, *, answer: float | None = None) -> float:
    """Returns the round trip of one packet and its reply in s; `answer` is the reply's size if it differs.

    >>> line = [Hop(1_544_000, 0.04)]
    >>> round(echo(line, line, 1428) * 1000)
    95
    """
    return transit(hops, size) + transit(back, size if answer is None else answer)


def naive_echo(hops: Sequence[Hop], back: Sequence[Hop], size: float) -> float:
    """Returns the round trip in s with a single transmission per direction, at the smallest rate."""
    fixed = math.fsum(hop.delay for hop in (*hops, *back))
    return fixed + serialization(size, bottleneck(hops)) + serialization(size, bottleneck(back))


def fragments(payload: int, mtu: int, *, header: int = 20) -> list[int]:
    """Returns the sizes on the wire of the fragments of an IP datagram (RFC 791, section 3.2).

    >>> fragments(1508 + 8, 1536), fragments(1509 + 8, 1536)
    ([1536], [1532, 25])
    """
    if payload + header <= mtu:
        return [payload + header]
    room = (mtu - header) // FRAGMENT_UNIT * FRAGMENT_UNIT
    if room <= 0:
        raise ValueError(f"an MTU of {mtu} is too small for a fragment")
    full, rest = divmod(payload, room)
    return [room + header] * full + ([rest + header] if rest else [])


def packets(size: int, payload: int, header: int) -> tuple[int, int, int | None]:
    """Splits `size` bytes into packets: size and number of the full ones, and the size of a shorter last one.

    >>> packets(3000, 1460, 40), packets(2920, 1460, 40), packets(0, 1460, 40)
    ((1500, 2, 120), (1500, 2, None), (40, 1, None))
    """
    if size <= payload:
        return size + header, 1, None
    full, rest = divmod(size, payload)
    return payload + header, full, (rest + header if rest else None)
