"""A capture as the native part explains it: connections, directions, causes with their times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

LATENCY, BANDWIDTH, BUFFERBLOAT = "latency", "bandwidth", "bufferbloat"
WINDOW, STALL = "receive window", "receiver stall"
LOSS, APPLICATION, SENDER = "loss", "application", "sender's buffer"
BURSTS, POLICER, REORDERING = "bursts", "policer", "reordering"
PACING, DELAYED_ACKS, PATH_CHANGE = "pacing", "delayed ACKs", "path change"

HEADERS, HEADERS_6 = 52, 72
"""Bytes of an IPv4 or IPv6 and a TCP header with timestamps."""

GROUPS = {
    "handshake": LATENCY,
    "slow-start": LATENCY,
    "window-growth": LATENCY,
    "bandwidth": BANDWIDTH,
    "bufferbloat": BUFFERBLOAT,
    "receive-window": WINDOW,
    "receiver-stall": STALL,
    "application": APPLICATION,
    "request": APPLICATION,
    "random-loss": LOSS,
    "queue-overflow": LOSS,
    "timeout": LOSS,
    "burst": BURSTS,
    "policer": POLICER,
    "reordering": REORDERING,
    "path-change": PATH_CHANGE,
    "pacing": PACING,
    "delayed-ack": DELAYED_ACKS,
    "send-buffer": SENDER,
}
"""The limit that each cause belongs to."""


@dataclass(frozen=True)
class Direction:
    """The data of one end of a connection; `document` is that of the native part."""

    connection: Mapping[str, Any]
    document: Mapping[str, Any]
    is_client: bool

    @property
    def ends(self) -> tuple[str, str]:
        """Addresses of sender and receiver."""
        client, server = self.connection["client"], self.connection["server"]
        return (client, server) if self.is_client else (server, client)

    @property
    def name(self) -> str:
        """Addresses of sender and receiver, as text."""
        return " to ".join(self.ends)

    @property
    def bytes(self) -> int:
        """Bytes of data, without repetitions."""
        return int(self.document["bytes"])

    @property
    def zero_windows(self) -> int:
        """Packets of the receiver with a window of zero."""
        return int(self.connection["directions"][1 if self.is_client else 0]["wireshark"]["zero_windows"])

    @property
    def path(self) -> Mapping[str, Any]:
        """Figures of the path."""
        found: Mapping[str, Any] = self.document["path"]
        return found

    def on_wire(self, payload: float) -> float:
        """Returns a rate of payload with the headers of IP and TCP, in bit/s."""
        return payload * self._overhead

    @property
    def _overhead(self) -> float:
        mss: int = self.path["mss"]
        headers = HEADERS_6 if self.ends[0].startswith("[") else HEADERS
        return (mss + headers) / mss

    def with_rate(self, rate: float) -> Direction:
        """Returns the direction with a rate of the bottleneck in bit/s that the user knows."""
        path = {**self.path, "rate_bps": rate / self._overhead, "rate_from": "given"}
        return replace(self, document={**self.document, "path": path})

    @property
    def time(self) -> float:
        """Time that the causes divide, in s."""
        return sum(self.times.values())

    @cached_property
    def times(self) -> dict[str, float]:
        """Time of each cause in s, longest first."""
        return {one["cause"]: one["time_s"] for one in self.document["causes"]}

    @cached_property
    def limits(self) -> dict[str, float]:
        """Share of the time of each limit (a group of causes), largest first."""
        sums: dict[str, float] = {}
        for cause, time in self.times.items():
            sums[GROUPS[cause]] = sums.get(GROUPS[cause], 0.0) + time
        total = sum(sums.values())
        if total <= 0:
            return {}
        shares = {limit: time / total for limit, time in sums.items()}
        return dict(sorted(shares.items(), key=lambda one: -one[1]))

    @property
    def limit(self) -> str | None:
        """The limit with the largest share of the time; None without data."""
        return next(iter(self.limits), None)

    def longest(self, cause: str) -> Mapping[str, Any] | None:
        """Returns the longest interval whose main cause this is."""
        found = [one for one in self.document["intervals"] if one["cause"] == cause]
        return max(found, key=lambda one: one["end_s"] - one["start_s"], default=None)


def directions(connection: Mapping[str, Any]) -> list[Direction]:
    """Returns both directions of a connection, that with more data first."""
    both = [
        Direction(connection, document, is_client)
        for document, is_client in zip(connection["directions"], (True, False), strict=True)
    ]
    return sorted(both, key=lambda one: -one.bytes)


def groups(document: Mapping[str, Any]) -> list[list[Direction]]:
    """Returns the larger direction of each connection, that with most data first.

    The subflows of a Multipath TCP connection are together, the largest first.
    """
    found: dict[int, list[Direction]] = {}
    for connection in document["connections"]:
        first = connection["multipath"]
        found.setdefault(connection["stream"] if first is None else first, []).append(
            directions(connection)[0]
        )
    for group in found.values():
        group.sort(key=lambda one: -one.bytes)
    return sorted(found.values(), key=lambda group: -sum(one.bytes for one in group))


def subflows(document: Mapping[str, Any], one: Direction) -> list[Direction]:
    """Returns the subflows of the same Multipath TCP connection, the largest first; empty for other TCP."""
    if one.connection["multipath"] is None:
        return []
    streams = {one.connection["stream"]}
    return next(
        group for group in groups(document) if streams & {other.connection["stream"] for other in group}
    )
