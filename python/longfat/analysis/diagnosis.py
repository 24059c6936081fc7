"""The rule that names what limits TCP on a path.

Each cause alone allows a rate: the bottleneck's bandwidth, a window per RTT, losses (CUBIC's response), and
for a file the round trips of handshake and slow start. The smallest rate decides. A cause counts only below
`CLEARLY` of the bandwidth, because a path that is almost full is limited by its bandwidth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from longfat.analysis.theory import response, slow_start, tcp

BANDWIDTH, WINDOW, LOSS, LATENCY = "bandwidth", "window", "loss", "latency"
CLEARLY = 0.8
"""Share of the bandwidth below which another cause decides."""
QUEUE_S, QUEUE_SHARE = 0.03, 0.5
"""A queue is long if it adds at least this time under load, in s, and this share of the idle RTT."""
QueueLimit = Literal["given", "measured", "lower limit", "assumed"]
"""How the limit of the bottleneck's queue is known: "lower limit" is the longest wait of a load that did not
fill it, "assumed" one RTT without a load."""
SEGMENT, PAYLOAD = 1500, 1448
"""Bytes of a full segment on the wire, and its payload."""
LEAST_TIMEOUT_S = 0.2


@dataclass(frozen=True)
class PathFigures:
    """Measured figures of a path; rates in bit/s, times in s, sizes in bytes.

    `round_trip` is the RTT of a full packet without load, `queueing` the delay that load adds, if measured.
    `loss` is the share of data packets that the path loses without load. `window` is the largest window of
    the hosts, `size` that of a file; without one the transfer has no end. `queue_limit` is how the limit of
    the bottleneck's queue is known: with "lower limit", load did not fill the queue.
    """

    rate: float
    round_trip: float
    loss: float = 0.0
    window: float = math.inf
    size: float | None = None
    queueing: float | None = None
    queue_limit: QueueLimit = "given"

    @property
    def has_long_queue(self) -> bool:
        """Whether the queue is long under load."""
        return self.queueing is not None and self.queueing >= max(QUEUE_S, QUEUE_SHARE * self.round_trip)


@dataclass(frozen=True)
class Ceiling:
    """The rate in bit/s of payload that one cause alone allows."""

    cause: str
    rate: float


def ceilings(path: PathFigures) -> list[Ceiling]:
    """Returns the rate that each cause alone allows, in the order bandwidth, window, loss, latency."""
    found = [Ceiling(BANDWIDTH, path.rate * PAYLOAD / SEGMENT)]
    if math.isfinite(path.window):
        found.append(Ceiling(WINDOW, 8 * tcp.window_limited(path.window, path.round_trip)))
    if path.loss > 0:
        timeout = max(LEAST_TIMEOUT_S, path.round_trip) + path.round_trip
        packets = response.response(response.CUBIC, path.round_trip, path.loss, timeout, window=math.inf)
        found.append(Ceiling(LOSS, 8 * PAYLOAD * packets.rate))
    if path.size is not None:
        found.append(Ceiling(LATENCY, 8 * path.size / (round_trips(path.size) * path.round_trip)))
    return found


def round_trips(size: float) -> float:
    """Returns the round trips of a handshake and a slow start that sends `size` bytes, at least one each.

    >>> round_trips(14_480), round(round_trips(1e6), 1)
    (2.0, 7.1)
    """
    return 1 + max(1.0, slow_start.rounds(math.ceil(size / PAYLOAD)))


def decisive(path: PathFigures) -> Ceiling:
    """Returns the ceiling that decides: the smallest, or the bandwidth if no other is clearly below it.

    >>> decisive(PathFigures(rate=20e6, round_trip=0.04, loss=0.02)).cause
    'loss'
    >>> decisive(PathFigures(rate=20e6, round_trip=0.04, loss=0.0001)).cause
    'bandwidth'
    """
    bandwidth, *others = ceilings(path)
    least = min(others, key=lambda one: one.rate, default=bandwidth)
    return least if least.rate < CLEARLY * bandwidth.rate else bandwidth
