"""The time of TCP's slow start without loss.

`transfer` follows each segment and each ACK and is exact for any chain of hops. `rounds` is the closed form
for the number of round trips.

Sources: RFC 5681, section 3.1 (the window grows by at most a segment an ACK); RFC 3465 (by the acknowledged
bytes); RFC 6928 (initial window); RFC 1122, section 4.2.3.2 (delayed ACKs); Cardwell, Savage and Anderson,
Modeling TCP latency (INFOCOM 2000), section II; Kurose and Ross, Computer Networking, section 3.7.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from longfat.analysis.theory.latency import Hop, serialization, transit


@dataclass(frozen=True)
class Rules:
    """Parameters of a TCP endpoint. Sizes are bytes, windows segments, times seconds."""

    segment: int = 1448
    """Payload of a full segment."""
    header: int = 52
    """Headers of each segment on the wire: IP 20, TCP 20, and the timestamps 12 (RFC 7323)."""
    syn: int = 60
    """Size of SYN and SYN-ACK."""
    initial_window: int = 10
    """RFC 6928."""
    ack_every: int = 2
    """Segments per ACK."""
    ack_delay: float = 0.04
    """Maximum delay of an ACK that waits for another segment."""
    quick_acks: int = 0
    """Number of initial segments that are acknowledged immediately."""
    growth: str = "bytes"
    """Window growth: by the acknowledged "bytes" (RFC 3465), or by one segment per ACK ("acks")."""
    window: float = math.inf
    """Maximum number of unacknowledged bytes: the receive window."""


@dataclass(frozen=True)
class Transfer:
    """The arrival time of the last byte, and the number of segments."""

    seconds: float
    segments: int


class _Way:
    """The links of one direction, with the time at which each becomes free."""

    def __init__(self, hops: Sequence[Hop]) -> None:
        self._hops = hops
        self._free = [0.0] * len(hops)

    def pass_over(self, at: float, size: float) -> float:
        free = self._free
        for number, hop in enumerate(self._hops):
            free[number] = max(at + hop.processing, free[number]) + serialization(size, hop.rate)
            at = free[number] + hop.delay
        return at

    def shift(self, by: float) -> None:
        self._free = [at + by for at in self._free]


class _Receiver:
    """Acknowledges every `ack_every` segments, or after `ack_delay`."""

    def __init__(self, rules: Rules, way: _Way) -> None:
        self._rules, self._way = rules, way
        self._deadline, self._segments, self._bytes = math.inf, 0, 0
        self._quick = rules.quick_acks
        self.acks: deque[tuple[float, int]] = deque()

    def take(self, at: float, payload: int) -> None:
        if at > self._deadline:
            self.expire()
        self._segments += 1
        self._bytes += payload
        if self._segments >= self._rules.ack_every or self._quick > 0:
            self._quick -= 1
            self._acknowledge(at)
        elif self._segments == 1:
            self._deadline = at + self._rules.ack_delay

    def expire(self) -> None:
        self._acknowledge(self._deadline)

    def shift(self, by: float) -> None:
        self._way.shift(by)
        self._deadline += by
        self.acks = deque((at + by, count) for at, count in self.acks)

    def _acknowledge(self, at: float) -> None:
        self.acks.append((self._way.pass_over(at, self._rules.header), self._bytes))
        self._deadline, self._segments, self._bytes = math.inf, 0, 0


def transfer(hops: Sequence[Hop], back: Sequence[Hop], size: int, rules: Rules | None = None) -> Transfer:
    """Simulates `size` bytes that leave at time 0 over an idle path, without loss or handshake."""
    rules = rules or Rules()
    if size < 1 or rules.segment < 1 or rules.window < rules.segment:
        raise ValueError("a transfer needs at least one byte, and a window of at least one segment")
    forward, receiver = _Way(hops), _Receiver(rules, _Way(back))
    congestion = rules.initial_window * rules.segment
    now = arrived = 0.0
    left, flight = size, 0
    pattern = _Pattern(hops, back, rules)
    while left > 0:
        payload = min(rules.segment, left)
        while flight + payload > min(congestion, rules.window):
            if not receiver.acks:
                receiver.expire()
            at, acknowledged = receiver.acks.popleft()
            flight -= acknowledged
            congestion += acknowledged if rules.growth == "bytes" else min(acknowledged, rules.segment)
            now = max(now, at)
        arrived = forward.pass_over(now, payload + rules.header)
        receiver.take(arrived, payload)
        left, flight = left - payload, flight + payload
        turn, lasts = pattern.found(arrived, min(congestion, rules.window))
        # The last turn is simulated, since its last segment may be short.
        turns = left // (turn * rules.segment) - 1 if turn else 0
        if turns > 0:
            by = turns * lasts
            forward.shift(by)
            receiver.shift(by)
            now, arrived, left = now + by, arrived + by, left - turns * turn * rules.segment
    segments = math.ceil(size / rules.segment)
    return Transfer(arrived, segments)


class _Pattern:
    """Detects a periodic arrival pattern; whole periods (turns) can be skipped."""

    def __init__(self, hops: Sequence[Hop], back: Sequence[Hop], rules: Rules) -> None:
        full = rules.segment + rules.header
        self._rules = rules
        self._slowest = max((serialization(full, hop.rate) for hop in hops), default=0.0)
        trip = transit(hops, full) + transit(back, rules.header) + rules.ack_every * self._slowest
        self._fills = math.ceil(trip / self._slowest) * rules.segment if self._slowest > 0 else math.inf
        most = rules.window // rules.segment
        self._turn = int(most) * rules.ack_every if rules.window < self._fills else 0
        self._arrivals: list[float] = []
        self._even = 0

    def found(self, arrived: float, window: float) -> tuple[int, float]:
        """Returns the segments and the duration of a turn when a pattern is found, else 0 segments."""
        seen = self._arrivals
        seen.append(arrived)
        if self._turn:
            # A window that does not fill the path arrives as a whole, once per round trip.
            turn = self._turn
            if window < self._rules.window or len(seen) % turn or len(seen) < 3 * turn:
                return 0, 0.0
            lasts = [late - early for late, early in zip(seen[-turn:], seen[-2 * turn : -turn], strict=True)]
            alike = max(lasts) - min(lasts) <= 1e-9 * max(lasts)
            return (turn, lasts[-1]) if alike else (0, 0.0)
        # A window that overfills the path keeps the slowest link busy.
        close = len(seen) > 1 and math.isclose(arrived - seen[-2], self._slowest, rel_tol=1e-6)
        self._even = self._even + 1 if close else 0
        if (
            window < min(2 * self._fills, self._rules.window)
            or self._even * self._rules.segment < self._fills
        ):
            return 0, 0.0
        return self._rules.ack_every, self._rules.ack_every * self._slowest


def rounds(segments: float, initial_window: float = 10, growth: float = 2.0) -> float:
    """Returns the round trips in which slow start sends n segments: log_g(n (g - 1) / w + 1).

    `growth` is g: 2 if each round doubles the window, 1.5 with an ACK for every other segment and growth by
    one segment per ACK (Cardwell et al., eq. 13 to 15).

    >>> rounds(70, 10), round(rounds(1000, 10), 2)
    (3.0, 6.66)
    """
    return math.log(segments * (growth - 1) / initial_window + 1, growth)


def one_link(rate: float, round_trip: float, segments: int, size: float, initial_window: int = 1) -> float:
    """Returns the time of a transfer over one link: n S/R + P (RTT + S/R) - (2^P - 1) w S/R, in s.

    The window doubles each round. `round_trip` excludes the transmission of a segment, and `size` is that of
    a segment on the wire. P is the number of times the sender waits: fewer than the rounds, and none once a
    window fills the path (Kurose and Ross, section 3.7, for w = 1). The time runs from the first segment's
    departure to the last ACK.

    >>> one_link(8000, 1.0, 3, 1000)  # 1 s a segment: one alone, a wait of 1 s, then two
    5.0
    """
    sending = serialization(size, rate)
    total = math.ceil(math.log2(segments / initial_window + 1) - 1e-12)
    waits = [sending + round_trip - 2**turn * initial_window * sending for turn in range(total - 1)]
    return segments * sending + round_trip + math.fsum(wait for wait in waits if wait > 0)
