"""The time that packets take over hops: latency and bandwidth.

A node spends `processing` on a packet, sends it bit by bit at the `rate` of the link, and its bits are on the
way for `delay`. The next node sends it on once it has it whole (store and forward), while the packet behind
it is on the link before. Sizes are bytes on the wire, rates bit/s, times seconds; queues are empty at first
and long enough.

Sources: Stevens, TCP/IP Illustrated 3 (1996), appendix A.3; Bellovin, A best-case network performance model
(1992); Kurose and Ross, Computer Networking, section 1.4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

BITS = 8
FRAGMENT_UNIT = 8
"""What all fragments but the last hold a multiple of (RFC 791)."""


@dataclass(frozen=True)
class Hop:
    """A link and the node that sends over it.

    `rate` in bit/s (infinite: no time to send), `delay` one way in s, `processing` in s a packet before it is
    sent; nodes work on packets beside each other, so that processing delays and never limits a rate. `loss`
    is the probability that a packet is lost before it is queued; the forms of this module leave it out.
    """

    rate: float = math.inf
    delay: float = 0.0
    processing: float = 0.0
    loss: float = 0.0

    def __post_init__(self) -> None:
        if not self.rate > 0 or self.delay < 0 or self.processing < 0:
            raise ValueError("a hop's rate is above 0, its delay and processing are not below 0")
        if not 0 <= self.loss < 1:
            raise ValueError("a hop's loss is from 0 to below 1")


def serialization(size: float, rate: float) -> float:
    """Seconds from the first to the last bit of so many bytes.

    >>> round(serialization(552, 1_544_000) * 1000, 2)
    2.86
    """
    return size * BITS / rate


def transit(hops: Sequence[Hop], size: float) -> float:
    """Seconds until the last bit of one packet is at the far end.

    >>> round(transit([Hop(1_523_200, 0.005, 0.001), Hop(1_523_200, 0.001, 0.001)], 1428) * 1000, 6)
    23.0
    """
    return math.fsum(hop.processing + serialization(size, hop.rate) + hop.delay for hop in hops)


def bottleneck(hops: Sequence[Hop]) -> float:
    """The least rate, in bit/s: infinite where no hop has one."""
    return min((hop.rate for hop in hops), default=math.inf)


def bulk(hops: Sequence[Hop], size: float) -> float:
    """Seconds for so many bytes as a stream: size over the least rate, and the delays.

    >>> round(bulk([Hop(1_544_000, 0.03)], 1_000_000), 2)
    5.21
    """
    return serialization(size, bottleneck(hops)) + math.fsum(hop.delay + hop.processing for hop in hops)


def train(hops: Sequence[Hop], size: float, count: int = 1, last: float | None = None) -> float:
    """Seconds until the last bit of `count` packets of one size, back to back, is at the far end.

    With `last` one more packet of that size, which is not larger, follows. Equal packets are a pipeline: from
    the first on, one comes out for each time that the slowest link needs for one.

    >>> round(train([Hop(1_523_200, 0.005, 0.001), Hop(1_523_200, 0.001, 0.001)], 1428, 10) * 1000, 6)
    90.5
    """
    if count < (last is None):
        raise ValueError("a train has at least one packet")
    if last is not None and last > size:
        raise ValueError("the last packet is not larger than the others")
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
    """Seconds until a packet is at the far end that is sent in the same instant as one before it.

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
    """The round trip of one packet and its answer, of the same size unless `answer` says another.

    >>> line = [Hop(1_544_000, 0.04)]
    >>> round(echo(line, line, 1428) * 1000)
    95
    """
    return transit(hops, size) + transit(back, size if answer is None else answer)


def naive_echo(hops: Sequence[Hop], back: Sequence[Hop], size: float) -> float:
    """The round trip with a packet sent once each way, at the least rate, as if routers passed bits on."""
    fixed = math.fsum(hop.delay for hop in (*hops, *back))
    return fixed + serialization(size, bottleneck(hops)) + serialization(size, bottleneck(back))


def fragments(payload: int, mtu: int, *, header: int = 20) -> list[int]:
    """The sizes on the wire of an IP datagram with so much payload (RFC 791, section 3.2).

    >>> fragments(1508 + 8, 1536), fragments(1509 + 8, 1536)
    ([1536], [1532, 25])
    """
    if payload + header <= mtu:
        return [payload + header]
    room = (mtu - header) // FRAGMENT_UNIT * FRAGMENT_UNIT
    if room <= 0:
        raise ValueError(f"an MTU of {mtu} has no room for a fragment")
    full, rest = divmod(payload, room)
    return [room + header] * full + ([rest + header] if rest else [])


def packets(size: int, payload: int, header: int) -> tuple[int, int, int | None]:
    """So many bytes in packets of at most `payload`: the full ones' size and number, and the last one's size.

    >>> packets(3000, 1460, 40), packets(2920, 1460, 40), packets(0, 1460, 40)
    ((1500, 2, 120), (1500, 2, None), (40, 1, None))
    """
    if size <= payload:
        return size + header, 1, None
    full, rest = divmod(size, payload)
    return payload + header, full, (rest + header if rest else None)
