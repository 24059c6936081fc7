"""Built-in schedulers, path policies and queue disciplines, reimplemented in Python."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

import longfat
from longfat.extensions.policy import Host, HostPath
from longfat.extensions.queue import Arrival, Packet
from longfat.extensions.scheduler import DataView, Subflow, eligible, ready


class MinRtt(longfat.Scheduler):
    """The subflow with the smallest SRTT that has room."""

    def choose(self, now: float, data: DataView, subflows: list[Subflow]) -> Subflow | None:
        """Waits if no subflow has room."""
        return min(ready(subflows), key=lambda subflow: subflow.srtt, default=None)


class RoundRobin(longfat.Scheduler):
    """Each subflow in turn."""

    def __init__(self) -> None:
        self.last = -1

    def choose(self, now: float, data: DataView, subflows: list[Subflow]) -> Subflow | None:
        """Skips subflows without room."""
        usable = ready(subflows)
        if not usable:
            return None
        chosen = next((subflow for subflow in usable if subflow.number > self.last), usable[0])
        self.last = chosen.number
        return chosen


class Redundant(longfat.Scheduler):
    """A copy on each subflow."""

    def choose(
        self, now: float, data: DataView, subflows: list[Subflow]
    ) -> Sequence[Subflow] | Subflow | None:
        """Waits if no subflow has room. Sends a reinjection once: all other subflows carried the data."""
        if data.reinjection or not ready(subflows):
            return min(ready(subflows), key=lambda subflow: subflow.srtt, default=None)
        return eligible(subflows)


class Fsfs(longfat.PathPolicy):
    """More paths for larger flows, in the order of their RTTs."""

    def __init__(self, thresholds: Sequence[int] = (100_000, 300_000, 800_000)) -> None:
        self.thresholds = thresholds

    def open(self, size: int | None, host: Host) -> list[HostPath]:
        """Opens the number of paths of the flow's size class."""
        order = sorted(host.paths, key=lambda path: path.rtt)
        for count, limit in enumerate(self.thresholds, 1):
            if size is not None and size <= limit:
                return order[:count]
        return order


class DropTail(longfat.QueueDiscipline):
    """Drops arrivals at a full queue."""

    def __init__(self) -> None:
        self.waiting: deque[Packet] = deque()

    def enqueue(self, arrival: Arrival) -> None:
        """Stores the packet if it fits."""
        if arrival.fits:
            self.waiting.append(arrival.packet)
        else:
            self.drop(arrival.packet)

    def dequeue(self, now: float) -> Packet | None:
        """Sends the oldest packet."""
        return self.waiting.popleft() if self.waiting else None


class DropHead(DropTail):
    """Drops the oldest packets of a full queue (a limit in packets)."""

    def enqueue(self, arrival: Arrival) -> None:
        """Drops the oldest packet if the arriving one does not fit."""
        if not arrival.fits:
            self.drop(self.waiting.popleft() if self.waiting else arrival.packet)
        self.waiting.append(arrival.packet)


class Red(DropTail):
    """RED: drops or marks with a probability that increases with the average queue length."""

    def __init__(
        self, low: float = 5.0, high: float = 15.0, most: float = 0.1, weight: float = 0.002
    ) -> None:
        super().__init__()
        self.low, self.high, self.most, self.weight = low, high, most, weight
        self.average = 0.0

    def enqueue(self, arrival: Arrival) -> None:
        """Updates the average, then decides."""
        self.average += self.weight * (arrival.packets - self.average)
        share = (self.average - self.low) / (self.high - self.low)
        probability = 1.0 if share >= 1 else self.most * max(share, 0.0)
        chosen = self.random.random() < probability
        if chosen and arrival.packet.ecn and share < 1 and arrival.fits:
            self.mark(arrival.packet)
            self.waiting.append(arrival.packet)
        elif chosen or not arrival.fits:
            self.drop(arrival.packet)
        else:
            self.waiting.append(arrival.packet)


class CoDel(DropTail):
    """CoDel (RFC 8289) without ECN."""

    def __init__(self, target: float = 0.005, interval: float = 0.1) -> None:
        super().__init__()
        self.target, self.interval = target, interval
        self.above_at: float | None = None
        self.dropping, self.next_at, self.count, self.last_count = False, 0.0, 0, 0
        self.held = 0

    def enqueue(self, arrival: Arrival) -> None:
        """Counts the bytes of the queue."""
        super().enqueue(arrival)
        self.held += arrival.packet.size if arrival.fits else 0

    def _next(self, now: float) -> tuple[Packet | None, bool]:
        packet = super().dequeue(now)
        if packet is None:
            self.above_at = None
            return None, False
        self.held -= packet.size
        if now - packet.since < self.target or self.held <= 1500:
            self.above_at = None
            return packet, False
        if self.above_at is None:
            self.above_at = now + self.interval
            return packet, False
        return packet, now >= self.above_at

    def dequeue(self, now: float) -> Packet | None:
        """Drops at increasing frequency while packets wait longer than the target."""
        packet, above = self._next(now)
        if self.dropping and not above:
            self.dropping = False
        while self.dropping and packet is not None and now >= self.next_at:
            self.drop(packet)
            self.count += 1
            packet, above = self._next(now)
            if not above:
                self.dropping = False
            else:
                self.next_at += self.interval / math.sqrt(self.count)
        if not self.dropping and above and packet is not None:
            self.drop(packet)
            packet, _ = self._next(now)
            self.dropping = True
            recent = now - self.next_at < 16 * self.interval
            delta = self.count - self.last_count
            self.count = delta if recent and delta > 1 else 1
            self.next_at = now + self.interval / math.sqrt(self.count)
            self.last_count = self.count
        return packet
