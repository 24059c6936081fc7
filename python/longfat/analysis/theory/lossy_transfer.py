"""The time of a TCP transfer on a lossy path: slow start to the first loss, then steady state.

Losses are independent of each other and of queues. ACKs are not lost in slow start. SACK repairs the first
loss within a round trip.

Source: Cardwell, Savage and Anderson, Modeling TCP latency (INFOCOM 2000), section II.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from longfat.analysis.theory import tcp
from longfat.analysis.theory.latency import BITS, Hop, transit
from longfat.analysis.theory.response import CUBIC, RENO, Response, response
from longfat.analysis.theory.slow_start import Rules, transfer

SYN_TIMEOUT = 1.0
"""The first timeout of a SYN, in s (RFC 6298, section 2.1); it doubles each time."""
LEAST_MARGIN = 0.2
"""Minimum margin of Linux's retransmission timeout over the smoothed RTT, in s."""
_DOUBLED = 2.0
"""Growth factor of slow start per round trip."""
_FALLS = 0.95
"""The window has settled if it recovers to this share between two losses."""
_AIMD = {RENO: (0.5, 1.0), CUBIC: (tcp.CUBIC_BETA, tcp.reno_friendly_growth(tcp.CUBIC_BETA))}
"""The reduction factor at a loss, and segments per round trip (RFC 5681; RFC 9438, sections 4.3 and 4.6)."""


@dataclass(frozen=True)
class LossyTransfer:
    """The mean time in s until the last byte arrives, and its parts.

    `before_loss` is the mean number of segments up to the first loss, `rate` the goodput in bit/s after it.
    """

    seconds: float
    before_loss: float
    rate: float
    response: Response


def way_loss(hops: Sequence[Hop]) -> float:
    """Returns the probability that a packet is lost in one direction.

    >>> round(way_loss([Hop(loss=0.1), Hop(loss=0.2)]), 6)
    0.28
    """
    return 1 - math.prod(1 - hop.loss for hop in hops)


def before_loss(segments: int, loss: float) -> float:
    """Returns the mean number of segments before the first loss; all without loss (section II-B).

    >>> before_loss(100, 0.0), round(before_loss(10**9, 0.02), 6)
    (100.0, 49.0)
    """
    if loss <= 0:
        return float(segments)
    return -math.expm1(segments * math.log1p(-loss)) * (1 - loss) / loss


def handshake_delay(there: float, back: float) -> float:
    """Returns the mean time that lost SYNs and SYN-ACKs add to a handshake, in s (section II-A).

    Raises ValueError if a direction loses half of its packets or more: the mean is infinite.

    >>> handshake_delay(0.0, 0.0), round(handshake_delay(0.02, 0.02), 4)
    (0.0, 0.0417)
    """
    if max(there, back) >= 0.5:
        raise ValueError("at a loss of 50 % or more, a handshake has no mean time")
    return SYN_TIMEOUT * sum((1 - loss) / (1 - 2 * loss) - 1 for loss in (there, back))


def lossy_transfer(
    hops: Sequence[Hop], back: Sequence[Hop], size: int, rules: Rules, controller: str
) -> LossyTransfer:
    """Predicts a transfer of `size` bytes without its handshake; the forward direction loses packets.

    Raises ValueError for a controller without a closed form (`longfat.analysis.theory.response`).
    """
    loss = way_loss(hops)
    segments = math.ceil(size / rules.segment)
    bits = rules.segment * BITS
    trip = transit(hops, rules.segment + rules.header) + transit(back, rules.header)
    timeout = trip + LEAST_MARGIN
    window = rules.window / rules.segment
    steady = response(controller, trip, loss, timeout, window=window, loss_of_acks=way_loss(back))
    link = _link(hops, rules) / bits
    rate = min(steady.rate, link, tcp.window_limited(window, trip))
    first = before_loss(segments, loss)
    started = transfer(hops, back, max(1, min(size, round(first * rules.segment))), rules).seconds
    is_lost = -math.expm1(segments * math.log1p(-loss))
    grown = min(first * (_DOUBLED - 1) / _DOUBLED + rules.initial_window / _DOUBLED, window)
    rest = _after_loss(max(segments - first, 0.0), grown, loss, trip, _AIMD[controller], (rate, link))
    least = transfer(hops, back, size, rules).seconds
    return LossyTransfer(max(started + is_lost * trip + rest, least), first, rate * bits, steady)


def _after_loss(
    segments: float,
    window: float,
    loss: float,
    trip: float,
    aimd: tuple[float, float],
    rates: tuple[float, float],
) -> float:
    """The time in s of the segments after the first loss, which occurs at the window `window`.

    Windows are above their steady mean at first: from each loss to the next, 1 / loss segments later, the
    window grows from its reduced size. The steady rate applies once the windows stop falling or are as slow.
    `rates` are the steady rate and the link's rate, in segments per second.
    """
    factor, growth = aimd
    steady, link = rates
    seconds = 0.0
    while segments > 0:
        least = window * factor
        sent = min(1 / loss, segments)
        rounds = (math.sqrt(least * least + 2 * growth * sent) - least) / growth
        rate = min(sent / (rounds * trip), link)
        top = min(least + growth * rounds, link * trip)
        if rate <= steady or top >= _FALLS * window:
            break
        seconds, segments, window = seconds + sent / rate, segments - sent, top
    return seconds + segments / steady


def _link(hops: Sequence[Hop], rules: Rules) -> float:
    """The goodput in bit/s that the links allow; later links may lose what a link sends."""
    share = rules.segment / (rules.segment + rules.header)
    return share * min(hop.rate * (1 - way_loss(hops[number + 1 :])) for number, hop in enumerate(hops))
