"""Custom queue disciplines, as Python classes: `queue = "red.py:Red"` in a path."""

from __future__ import annotations

import abc
from random import Random
from typing import ClassVar, Self

from longfat._native import Arrival, Packet
from longfat.extensions.base import Extension

__all__ = ["Arrival", "Packet", "QueueDiscipline"]


class QueueDiscipline(Extension):
    """A queue discipline: stores the packets that wait for a link, and selects the next one.

    Each link has its own object. The parameters of `__init__`, all with defaults, are its settings in a
    study; the key `limit` ("100pkt") applies to every discipline. Times are in seconds since the start of the
    trial, sizes in bytes on the wire. An exception fails the trial, with class and method in its error. Equal
    calls must give equal results: no clock and no shared state; `self.random` draws from the link's random
    stream.

    >>> class Fifo(QueueDiscipline):
    ...     def __init__(self) -> None:
    ...         self.waiting: list[Packet] = []
    ...     def enqueue(self, arrival: Arrival) -> None:
    ...         if arrival.fits:
    ...             self.waiting.append(arrival.packet)
    ...         else:
    ...             self.drop(arrival.packet)
    ...     def dequeue(self, now: float) -> Packet | None:
    ...         return self.waiting.pop(0) if self.waiting else None
    >>> queue = Fifo()
    >>> queue.enqueue(Arrival(now=0.1, packet=Packet(number=7)))
    >>> queue.dequeue(0.2)
    Packet(number=7)
    """

    WHAT: ClassVar = "a queue discipline"
    OWNER: ClassVar = "link"
    _RESERVED: ClassVar = ("limit",)

    rate: float | None
    """Rate of the link in bit/s, None if unlimited; set before `__init__` runs."""
    random: Random
    """A generator seeded by the link's random stream; set before `__init__` runs."""
    _requests: list[tuple[bool, Packet]]
    """Drops and marks since the last call of the link: (is mark, packet)."""

    @abc.abstractmethod
    def enqueue(self, arrival: Arrival) -> None:
        """Stores `arrival.packet`, or drops it or others with `drop`.

        The queue must stay within its limit: `arrival.fits` is whether the packet fits.
        """

    @abc.abstractmethod
    def dequeue(self, now: float) -> Packet | None:
        """Returns the next packet to send; None if no packet waits. It may drop packets first."""

    def drop(self, packet: Packet) -> None:
        """Drops a packet of the queue, which must not be returned by `dequeue` later."""
        self._requests.append((False, packet))

    def mark(self, packet: Packet) -> None:
        """Marks a packet of the queue with ECN CE (RFC 3168). Its attribute `ecn` must be true."""
        self._requests.append((True, packet))

    def __new__(cls, *_args: object, **_settings: object) -> Self:
        """Sets `rate` and `random`, so that tests can create a discipline without a link."""
        made = super().__new__(cls)
        made._requests = []
        made._prepare(None, 0)
        return made

    def _prepare(self, rate: float | None, seed: int) -> None:
        self.rate = rate
        self.random = Random(seed)  # noqa: S311 - not for secrets
