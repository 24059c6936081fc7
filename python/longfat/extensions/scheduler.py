"""Custom Multipath TCP schedulers, as Python classes: `scheduler = "fastest.py:Fastest"` in a study."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import ClassVar

from longfat._native import DataView, Subflow
from longfat.extensions.base import Extension

__all__ = ["DataView", "Scheduler", "Subflow", "eligible", "ready"]


class Scheduler(Extension):
    """A packet scheduler of Multipath TCP: selects the subflow of each segment.

    Each connection has its own object. The parameters of `__init__`, all with defaults, are its settings in a
    study. Times are in seconds, sizes in bytes of payload. An exception fails the trial, with class and
    method in its error. Equal calls must give equal results: no clock, no randomness, no shared state.

    >>> class Fastest(Scheduler):
    ...     def choose(self, now: float, data: DataView, subflows: list[Subflow]) -> Subflow | None:
    ...         return min(ready(subflows), key=lambda subflow: subflow.srtt, default=None)
    >>> slow, fast = Subflow(number=0, srtt=0.03), Subflow(number=1, srtt=0.01)
    >>> Fastest().choose(0.0, DataView(unsent=1000), [slow, fast])
    Subflow(number=1)
    """

    WHAT: ClassVar = "a scheduler"
    OWNER: ClassVar = "connection"

    @abc.abstractmethod
    def choose(
        self, now: float, data: DataView, subflows: list[Subflow]
    ) -> Subflow | Sequence[Subflow] | None:
        """Returns the subflow of the next segment, several of them for copies, or None to wait.

        Called repeatedly until it returns None or all data is assigned; None waits for the next ACK, timeout
        or write. `subflows` are the usable subflows in the order of their numbers, with or without room. A
        segment for a subflow without room is queued there.
        """


def eligible(subflows: Sequence[Subflow]) -> list[Subflow]:
    """Returns the subflows to choose from: backups only if there are no others (RFC 8684, section 3.3.8)."""
    return [subflow for subflow in subflows if not subflow.backup] or list(subflows)


def ready(subflows: Sequence[Subflow]) -> list[Subflow]:
    """Returns the eligible subflows with room for a full segment."""
    return [subflow for subflow in eligible(subflows) if subflow.room]
