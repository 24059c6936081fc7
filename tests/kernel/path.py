"""An emulated path between two namespaces: a rate, a delay and a drop-tail queue between two TUN devices."""

from __future__ import annotations

import contextlib
import heapq
import os
import select
import socket
import struct
import sys
import threading
import time
from dataclasses import dataclass, field

from tests.kernel.namespaces import enter_new_namespace, tun
from tests.kernel.traffic import Sink, TcpInfo, connected, send_for

NEAR, FAR = "10.77.0.1", "10.77.0.2"
PACKET = 1500
BATCH = 64


@dataclass(frozen=True)
class Conditions:
    """Of the path and of the measurement."""

    rate: float = 20e6
    """Bits a second, towards the receiver."""
    delay: float = 0.010
    """Seconds each way."""
    queue: int = 100
    """Packets that may wait."""
    seconds: float = 8.0
    settle: float = 3.0
    """Samples before this moment do not count."""


@dataclass(frozen=True)
class Figures:
    goodput: float
    """Bits a second over the whole time."""
    rtt_ms: float
    """Mean of the smoothed round trips."""
    least_rtt_ms: float
    window: float
    """Mean congestion window, in packets."""
    queued: float
    """Mean of the packets that an arriving one finds before it."""
    dropped: int
    """By the queue, over the whole time."""
    retransmissions: int
    """In the time that counts."""


@dataclass
class Relay:
    """Moves packets; the way towards `far` has the rate and the queue."""

    near: int
    far: int
    conditions: Conditions
    waits: list[tuple[float, float]] = field(default_factory=list)
    """Moment and packets found in the queue, of each that arrived at it."""
    dropped: int = 0
    _free_at: float = 0.0
    _due: list[tuple[float, int, int, bytes]] = field(default_factory=list)
    _number: int = 0

    def run(self, ended: threading.Event) -> None:
        # Jitter would make Vegas keep more in the queue: it goes by the least round trip of many.
        with contextlib.suppress(PermissionError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(5))
        while not ended.is_set():
            now = time.monotonic()
            left = min(self._due[0][0] - now, 0.1) if self._due else 0.1
            # select counts microseconds, poll milliseconds.
            readable, _, _ = select.select([self.near, self.far], [], [], max(left, 0.0))
            for end in readable:
                self._read(end)
            now = time.monotonic()
            while self._due and self._due[0][0] <= now:
                _, _, end, packet = heapq.heappop(self._due)
                os.write(end, packet)

    def _read(self, end: int) -> None:
        for _ in range(BATCH):
            try:
                packet = os.read(end, 65536)
            except BlockingIOError:
                return
            if packet[0] >> 4 != 4:
                continue  # IPv6's neighbour discovery
            now = time.monotonic()
            if end == self.far:
                self._later(now + self.conditions.delay, self.near, packet)
            else:
                self._towards_far(now, packet)

    def _towards_far(self, now: float, packet: bytes) -> None:
        path = self.conditions
        waiting = max(self._free_at - now, 0.0) * path.rate / 8 / PACKET
        self.waits.append((now, waiting))
        if waiting > path.queue:
            self.dropped += 1
            return
        self._free_at = max(self._free_at, now) + len(packet) * 8 / path.rate
        self._later(self._free_at + path.delay, self.far, packet)

    def _later(self, moment: float, end: int, packet: bytes) -> None:
        self._number += 1
        heapq.heappush(self._due, (moment, self._number, end, packet))


def measure(controller: str, conditions: Conditions) -> Figures:
    """One flow over the path, from this thread's namespace to another one that ends with the call."""
    # The relay shares the interpreter with both ends: none may hold it for long.
    sys.setswitchinterval(0.0002)
    near = tun("near", NEAR)
    ready: list[tuple[int, Sink]] = []
    with_far = threading.Thread(target=lambda: ready.append(_far()))
    with_far.start()
    with_far.join()
    far, sink = ready[0]
    relay = Relay(near, far, conditions)
    ended = threading.Event()
    moving = threading.Thread(target=relay.run, args=(ended,))
    moving.start()
    samples: list[tuple[float, TcpInfo]] = []
    try:
        began = time.monotonic()
        with connected(controller, sink.address) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
            # Closing aborts: else the kernel would try for minutes to get rid of what was not sent yet.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            send_for(
                connection, conditions.seconds, 0.02, lambda info: samples.append((time.monotonic(), info))
            )
            received = sink.received
            took = time.monotonic() - began
    finally:
        ended.set()
        moving.join()
        os.close(near)
        os.close(far)
    counted = [info for moment, info in samples if moment >= began + conditions.settle]
    waits = [found for moment, found in relay.waits if moment >= began + conditions.settle]
    return Figures(
        goodput=received * 8 / took,
        rtt_ms=sum(info.rtt_us for info in counted) / len(counted) / 1000,
        least_rtt_ms=counted[-1].least_rtt_us / 1000,
        window=sum(info.window for info in counted) / len(counted),
        queued=sum(waits) / len(waits),
        dropped=relay.dropped,
        retransmissions=counted[-1].retransmissions - counted[0].retransmissions,
    )


def _far() -> tuple[int, Sink]:
    enter_new_namespace()
    return tun("far", FAR), Sink(FAR)
