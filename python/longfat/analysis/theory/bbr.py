"""The share of BBR version 1 beside loss-based flows, at one drop-tail queue.

Source: Ware, Mukerjee, Seshan and Sherry, Modeling BBR's interactions with loss-based congestion control
(IMC 2019).
Rates are packets per second, queues and windows packets, times seconds, shares fractions of the link.
"""

from __future__ import annotations

PROBE_RTT_INTERVAL = 10.0
"""Seconds between two ProbeRTT of BBR version 1."""
PROBE_RTT_DURATION = 0.2
"""Seconds that ProbeRTT keeps the window at its minimum."""
PROBE_RTT_WINDOW = 4
"""Packets in flight of each flow in ProbeRTT."""


def limited_share(pipe: float, buffer: float, flows: int = 1) -> float:
    """Returns the share of `flows` BBR flows together while their in-flight cap limits them (eq. 9).

    `pipe` is the bandwidth-delay product and `buffer` the limit of the queue. The model assumes a full queue,
    of which the loss-based flows have the share p of their rate. BBR's flows measure the rate (1 - p) c and,
    in ProbeRTT, the round trip l + (p q + 4 N) / c. Their cap, twice the product, equals their part of queue
    and pipe at p = 1/2 - pipe / (2 q) - 4 N / q. The number of loss-based flows does not matter. A negative p
    means that BBR takes the whole link.

    >>> round(limited_share(100, 1600), 3), limited_share(100, 100)
    (0.534, 1.0)
    """
    rivals = 0.5 - pipe / (2 * buffer) - PROBE_RTT_WINDOW * flows / buffer
    return 1 - max(0.0, rivals)


def probe_time(
    rate: float,
    round_trip: float,
    buffer: float,
    *,
    interval: float = PROBE_RTT_INTERVAL,
    duration: float = PROBE_RTT_DURATION,
) -> float:
    """Returns the part of the time that BBR spends in ProbeRTT, at most 1 (eq. 11).

    ProbeRTT waits until the full queue has drained, then for `duration` and a round trip.

    >>> round(probe_time(1000, 0.05, 400), 3)
    0.065
    """
    return min(1.0, (buffer / rate + duration + round_trip) / interval)


def share(
    rate: float,
    round_trip: float,
    buffer: float,
    flows: int = 1,
    *,
    interval: float = PROBE_RTT_INTERVAL,
    duration: float = PROBE_RTT_DURATION,
) -> float:
    """Returns the long-term share of `flows` BBR flows beside any number of loss-based flows (eq. 10).

    The rate in ProbeRTT is taken as 0. The authors' median error in Linux is 5 % beside CUBIC and 8 % beside
    Reno.

    >>> round(share(1000, 0.05, 400), 3), round(share(1000, 0.05, 1600, flows=4), 3)
    (0.535, 0.428)
    """
    idle = probe_time(rate, round_trip, buffer, interval=interval, duration=duration)
    return limited_share(rate * round_trip, buffer, flows) * (1 - idle)
