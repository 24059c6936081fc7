"""Custom path policies of Multipath TCP, as Python classes: `policy = "nearest.py:Nearest"` in a study."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from random import Random
from typing import ClassVar, Self

from longfat._native import Host, HostPath, Join, Progress
from longfat.extensions.base import Extension

__all__ = ["Host", "HostPath", "Join", "PathPolicy", "Progress"]


class PathPolicy(Extension):
    """A path policy of Multipath TCP: selects the paths of a connection and the start of its subflows.

    Each connection has its own object. The parameters of `__init__`, all with defaults, are its settings in a
    study. Times are in seconds, sizes in bytes. An exception fails the trial, with class and method in its
    error. Equal calls must give equal results: no clock and no shared state; `self.random` draws from the
    connection's random stream.

    >>> class Nearest(PathPolicy):
    ...     def __init__(self, count: int = 2) -> None:
    ...         self.count = count
    ...     def open(self, size: int | None, host: Host) -> list[HostPath | Join]:
    ...         return sorted(host.paths, key=lambda path: path.rtt)[: self.count]
    >>> host = Host(paths=[HostPath(number=0, rtt=0.03), HostPath(number=1, rtt=0.01)])
    >>> Nearest(count=1).open(None, host)
    [HostPath(number=1)]
    """

    WHAT: ClassVar = "a path policy"
    OWNER: ClassVar = "connection"
    _HOOKS: ClassVar = ("progress",)

    random: Random
    """A generator seeded by the connection's random stream; set before `open`."""

    @abc.abstractmethod
    def open(self, size: int | None, host: Host) -> Sequence[HostPath | Join]:
        """Returns the paths of a new connection that will send `size` bytes (None: unknown).

        The connection starts on the first one. The others are opened as soon as possible, or when the
        condition of their `Join` holds.
        """

    def progress(self, progress: Progress, host: Host) -> Sequence[HostPath | Join]:  # noqa: ARG002
        """Returns further subflows to open; called after each acknowledgement of data. None here."""
        return ()

    def __new__(cls, *_args: object, **_settings: object) -> Self:
        """Sets `random`, so that tests can create a policy without a connection."""
        made = super().__new__(cls)
        made.random = Random(0)  # noqa: S311 - not for secrets
        return made
