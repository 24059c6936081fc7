"""Custom congestion controllers, as Python classes: `congestion = "aimd.py:Aimd"` in a study."""

from __future__ import annotations

import abc
from typing import Any, ClassVar, Self

from longfat._native import Acknowledgement, Loss
from longfat.extensions.base import Extension

__all__ = ["Acknowledgement", "CongestionController", "Loss"]

INITIAL_PACKETS = 10
"""The window at the start of a controller that sets none (RFC 6928)."""
DEFAULT_SEGMENT = 1460
"""Payload bytes of a full packet for a controller without a connection: an MTU of 1500 bytes over IPv4."""


class CongestionController(Extension):
    """A congestion controller: receives events, and sets a window and optionally a pacing rate.

    Each connection has its own object. The parameters of `__init__`, all with defaults, are its settings in a
    study. Times are in seconds since the start of the trial, sizes in bytes of payload. The attributes are
    read after each call. An exception in a method fails the trial, with class and method in its error.

    Equal events must give equal results: no clock, no randomness (`random.Random(seed)` of a setting is
    fine), no state shared between objects. Then a study's records do not depend on the number of cores.

    >>> class Aimd(CongestionController):
    ...     def __init__(self, increase: float = 1.0) -> None:
    ...         self.increase = increase
    ...     def on_acknowledged(self, ack: Acknowledgement) -> None:
    ...         self.window += self.increase * self.segment * ack.bytes / self.window
    ...     def on_lost(self, loss: Loss) -> None:
    ...         self.window = max(self.window / 2, 2 * self.segment)
    ...     def on_timeout(self, now: float, in_flight: int) -> None:
    ...         self.window = self.segment
    >>> controller = Aimd._make(1000, None, settings={"increase": 2})
    >>> controller.on_acknowledged(Acknowledgement(now=0.1, bytes=10_000))
    >>> controller.window
    12000.0
    """

    segment: int
    """Payload bytes of a full packet; set before `__init__` runs."""
    window: float
    """Bytes that may be in flight; initially 10 packets, or TCP's `initial_window`.
    A packet may leave while the bytes in flight, itself included, stay within the window, and always when
    nothing is in flight."""
    pacing_rate: float | Any = None  # Any, so that subclasses may declare a float
    """Rate in bit/s at which packets leave; None for no pacing."""
    threshold: float | Any = None
    """Slow start threshold in bytes, for traces; None for a controller without one."""

    WHAT: ClassVar = "a congestion controller"
    OWNER: ClassVar = "connection"
    _HOOKS: ClassVar = ("on_sent", "on_spurious", "on_idle")

    @abc.abstractmethod
    def on_acknowledged(self, ack: Acknowledgement) -> None:
        """Handles an ACK that acknowledges new data; called after `on_lost` if it also revealed losses."""

    @abc.abstractmethod
    def on_lost(self, loss: Loss) -> None:
        """Handles losses that ACKs of later packets revealed.

        One congestion event may cause several calls: compare `loss.newest_sent_at` with the time of the last
        reduction (RFC 6582), to reduce once for all packets sent before it.
        """

    @abc.abstractmethod
    def on_timeout(self, now: float, in_flight: int) -> None:
        """Handles an RTO: no ACK for `in_flight` bytes during a whole timeout."""

    def on_sent(self, now: float, size: int, in_flight: int) -> None:
        """Handles the departure of a packet of `size` bytes, included in `in_flight`. Does nothing here."""

    def on_congestion_experienced(self, now: float, sent_at: float) -> None:
        """Handles an ACK that reports ECN marks (RFC 3168): by default as a loss of 0 bytes.

        The call reports that marks arrived, not how many. TCP makes it for the first ACK with a congestion
        echo, and then at most once per round trip: not until all data sent before is acknowledged, and not
        during loss recovery. A queue that marks many packets per round trip therefore causes far fewer calls
        than marks; `marked_bytes` in the `on_acknowledged` that follows counts them. The echo does not
        identify the marked packet: `sent_at` equals `now`. The ARQ protocols do not make the call.
        """
        self.on_lost(Loss(now=now, bytes=0, newest_sent_at=sent_at))

    def on_spurious(self, now: float) -> None:
        """Handles a spurious reduction: nothing was lost. Does nothing here."""

    def on_idle(self, now: float, idle: float, rto: float) -> None:
        """Handles the first packet after `idle` seconds; `rto` is the timeout in s. Does nothing here."""

    def metrics(self) -> dict[str, float]:
        """Returns names and values of internal state, for traces in addition to the window.

        A trace calls it for each sample. The values are columns `controller_NAME` of its samples, and drawn
        as the chart `controller`. A name ends with its unit: `_bytes`, `_bps`, `_seconds`, or none.
        """
        return {}

    def __new__(cls, *_args: object, **_settings: object) -> Self:
        """Sets `segment` and `window`, so that tests can create a controller without a connection."""
        made = super().__new__(cls)
        made.segment = DEFAULT_SEGMENT
        made.window = INITIAL_PACKETS * DEFAULT_SEGMENT
        return made

    def _prepare(self, segment: int, initial_window: int | None) -> None:
        self.segment = segment
        self.window = (initial_window or INITIAL_PACKETS) * segment
