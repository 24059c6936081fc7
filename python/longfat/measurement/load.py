"""RTT and loss of a path under load.

Echo requests of full packets are sent with a sliding window, paced at twice the bottleneck's rate. Each step
doubles the window, until the queue overflows or the budget is spent; the last step has the largest window
that the budget permits. So the window bounds the load, which stops when the path stops answering.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

PACKET = 1500
"""Bytes of a request with its headers."""
PACE = 2.0
"""Pace within the window, in multiples of the bottleneck's rate."""
ROUNDS, FEWEST_REQUESTS = 2.5, 200
"""Requests of a step: `ROUNDS` windows, and at least `FEWEST_REQUESTS`."""
IDLE_REQUESTS = 20
"""Requests for the RTT without load, one at a time."""
LEAST_WINDOW, LARGEST_WINDOW = 8, 8192
"""Bounds of the window in packets."""
FILLING = 0.4
"""First part of a step, in which the queue grows; it does not count. It is one window of `ROUNDS`."""
OVERFLOW, OVERFLOW_SHARE = 0.01, 2.0
"""Losses above both this share and this multiple of the idle loss may be an overflow."""
FEWEST_LOST = 4
"""Smallest number of lost requests that shows an overflow."""
FULL = 1.2
"""A queue is full if twice the window raises the longest RTT by less than this factor."""
LONGEST_QUANTILE = 0.98
"""Quantile of RTTs that represents a full queue."""

Send = Callable[[int, float, int], Sequence[float | None]]
"""Sends requests with a window (packets) and a maximum rate (per second); returns RTTs in s, None if lost."""


@dataclass(frozen=True)
class Step:
    """One window: requests, losses, and RTTs in s with the queue filled."""

    window: int
    sent: int
    lost: int
    rtts: tuple[float, ...]

    @property
    def loss(self) -> float:
        """Share of requests without an answer."""
        return self.lost / self.sent if self.sent else 0.0

    @property
    def longest(self) -> float:
        """A high quantile of the RTTs, in s."""
        rtts = sorted(self.rtts)
        return rtts[min(int(LONGEST_QUANTILE * len(rtts)), len(rtts) - 1)]


@dataclass(frozen=True)
class Loaded:
    """A path without and under load; times in s, sizes in bytes. `overflows`: whether the queue was full."""

    idle: float | None
    """The median RTT of a full packet without load; None without answers."""
    steps: tuple[Step, ...]
    overflows: bool
    ended_by: str

    @property
    def queueing(self) -> float | None:
        """The median delay that load adds; None without answers."""
        return _above(self.round_trip, self.idle)

    @property
    def longest_queueing(self) -> float | None:
        """The delay of an almost full queue; None without answers."""
        return _above(self.longest, self.idle)

    @property
    def round_trip(self) -> float | None:
        """The median RTT of the answered requests in the last step with answers.

        Requests that a full queue drops have no wait in it; `loss` counts them.
        """
        return next((median(step.rtts) for step in reversed(self.steps) if step.rtts), None)

    @property
    def longest(self) -> float | None:
        """The longest RTT, which shows the queue's limit: of the step that overflowed, else of any step."""
        answered = [step.longest for step in self.steps if step.rtts]
        if not answered:
            return None
        return answered[-1] if self.overflows else max(answered)

    @property
    def loss(self) -> float | None:
        """The share of unanswered requests in the last step."""
        return self.steps[-1].loss if self.steps else None

    @property
    def sent_bytes(self) -> int:
        """Bytes that the load sent."""
        return PACKET * sum(step.sent for step in self.steps)

    def to_json(self) -> dict[str, Any]:
        """Returns the figures as JSON values."""
        return {
            "idle_round_trip_s": self.idle,
            "round_trip_s": self.round_trip,
            "longest_round_trip_s": self.longest,
            "loss_round_trip": self.loss,
            "overflows": self.overflows,
            "ended_by": self.ended_by,
            "sent_bytes": self.sent_bytes,
            "steps": [
                {"window": step.window, "sent": step.sent, "lost": step.lost, "rtts": len(step.rtts)}
                for step in self.steps
            ],
        }


def measure(
    send: Send,
    *,
    rate: float,
    round_trip: float,
    loss: float,
    seconds: float,
    limit: int,
    show: Callable[[str], None] = lambda _: None,
) -> Loaded:
    """Loads a path until its queue overflows, or `seconds` or `limit` (bytes) would be exceeded.

    `rate` (bit/s) is the bottleneck's, `round_trip` (s) that of a full packet and `loss` the share of
    unanswered requests without load. Ctrl-C ends the load with the steps so far.
    """
    per_second = rate / (8 * PACKET)
    window = math.ceil(max(per_second * round_trip, LEAST_WINDOW))
    steps: list[Step] = []
    left_s, left = seconds, limit // PACKET

    idle: float | None = None

    def ended(reason: str, *, overflows: bool = False) -> Loaded:
        return Loaded(idle, tuple(steps), overflows, reason)

    show("RTT without load")
    try:
        answered = [rtt for rtt in send(1, PACE * per_second, IDLE_REQUESTS) if rtt is not None]
    except KeyboardInterrupt:
        return ended("interrupt")
    if not answered:
        return ended("no answers")
    idle = median(answered)
    while window <= LARGEST_WINDOW:
        reason = ""
        count = _requests(window)
        if count > left or count / per_second + round_trip > left_s:
            reason = "bytes" if left < (left_s - round_trip) * per_second else "time"
            count = int(min(left, (left_s - round_trip) * per_second))
            window, before = min(window, int(count / ROUNDS)), window / 2
            if count < FEWEST_REQUESTS or (steps and window < FULL * before):
                return ended(reason)
        duration = count / per_second + round_trip
        show(f"{window} packets in flight")
        try:
            rtts = send(window, PACE * per_second, count)
        except KeyboardInterrupt:
            return ended("interrupt")
        steps.append(_step(window, rtts))
        left_s, left = left_s - duration, left - count
        if not steps[-1].rtts:
            return ended("no answers")
        if _overflows(steps, loss):
            return ended("overflow", overflows=True)
        if reason:
            return ended(reason)
        window *= 2
    return ended("window")


def _requests(window: int) -> int:
    """Returns the requests of a step."""
    return max(math.ceil(ROUNDS * window), FEWEST_REQUESTS)


def _overflows(steps: Sequence[Step], loss: float) -> bool:
    """Returns whether the last step lost requests, and did not fill the queue further."""
    last = steps[-1]
    is_lossy = last.lost >= FEWEST_LOST and last.loss > max(OVERFLOW, OVERFLOW_SHARE * loss)
    if not is_lossy or len(steps) < 2 or last.window < 2 * steps[-2].window:
        return False
    return last.longest < FULL * steps[-2].longest


def _above(rtt: float | None, idle: float | None) -> float | None:
    return None if rtt is None or idle is None else max(rtt - idle, 0.0)


def _step(window: int, rtts: Sequence[float | None]) -> Step:
    lost = sum(rtt is None for rtt in rtts)
    filled = rtts[int(FILLING * len(rtts)) :]
    return Step(window, len(rtts), lost, tuple(rtt for rtt in filled if rtt is not None))
