"""`ping`: round-trip times by packet size."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from longfat import _native
from longfat.api import sizes as size_lists
from longfat.api.defaults import ECHO_PORT, IpVersion, PingProtocol
from longfat.api.quantities import Duration, duration
from longfat.presentation.displayed import Displayed, TextTable
from longfat.presentation.formatting import quantity
from longfat.presentation.measured import round_trips
from longfat.system.parameters import ParameterError
from longfat.system.progress import shower, watching

if TYPE_CHECKING:
    import polars

    from longfat.analysis.ping_summary import Summary

DEFAULT_SIZE = 56
"""Payload of a request, as in other ping programs, in bytes."""


@dataclass(frozen=True, repr=False)
class RoundTrips(Displayed):
    """Measured round trips. `summary` has minima, medians with 95 % confidence intervals and losses by size.

    `interrupted` is true if Ctrl-C stopped the measurement; the replies so far count.
    """

    host: str
    protocol: str
    report: Mapping[str, Any]
    summary: Summary

    @property
    def title(self) -> str:
        """Host, protocol and number of replies."""
        sent = sum(one.sent for one in self.summary.sizes)
        about = f"{self.answered} of {sent} requests answered"
        return f"Round trips to {self.host} ({self.protocol}): {about}"

    @property
    def answered(self) -> int:
        """Number of requests with a reply in time."""
        return self.summary.answered

    @property
    def has_rows(self) -> bool:
        """Whether the table has rows."""
        return bool(self.summary.sizes)

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C stopped the measurement."""
        return bool(self.report["interrupted"])

    def table(self) -> TextTable:
        """Returns a row for each size: losses, smallest and median RTT, 99th percentile, jitter."""
        if not self.summary.sizes:
            return TextTable((), [])
        return round_trips.table(self.summary)

    def remarks(self) -> list[str]:
        """Returns notes about clocks, replies and errors."""
        return round_trips.notes(self.report, self.summary)

    def to_polars(self) -> polars.DataFrame:
        """Returns one row for each request: size, state, and times in s."""
        import polars as pl

        from longfat.analysis.ping_summary import rows

        return pl.DataFrame(rows(self.report), infer_schema_length=None)

    def drawing(self) -> dict[str, Any] | None:
        """Returns round-trip times by size as Vega-Lite; None without replies."""
        return round_trips.drawing(self.summary) if self.answered else None

    def document(self) -> dict[str, Any]:
        """Returns all figures as JSON values."""
        return round_trips.document(self.host, self.protocol, self.report, self.summary)

    def page(self) -> str:
        """Returns the report as HTML."""
        return round_trips.page(self.document(), self.summary)

    def failure(self) -> str:
        """Returns the likely reason for missing replies, in one line."""
        return round_trips.failure(self.host, self.protocol, self.summary)


def ping(
    host: str,
    *,
    sizes: str | int | Iterable[int] | None = None,
    count: int = 10,
    protocol: PingProtocol = "icmp",
    port: int | None = None,
    interval: Duration = "100ms",
    flood: bool = False,
    rate: int = 10_000,
    window: int | None = None,
    timeout: Duration = "2s",
    dont_fragment: bool = False,
    spin: bool = False,
    ip: IpVersion | None = None,
    progress: bool | None = None,
) -> RoundTrips:
    """Measures round-trip times to a host (Linux).

    Args:
        host: Name or address of the host.
        sizes: Payload sizes in bytes, e.g. "8,100..1400:100"; by default 56.
        count: Requests of each size.
        protocol: ICMP echo, UDP to `longfat echo` or a closed port, or TCP handshakes.
        port: UDP or TCP port, required for TCP; by default 9007.
        interval: Time between two requests.
        flood: Each request as soon as the last is answered, or after 10 ms.
        rate: Highest rate of a flood in requests per second.
        window: Most unanswered requests; by default 64, or 1 with `flood`.
        timeout: Longest wait for a reply.
        dont_fragment: No fragmentation; packets above the path's MTU fail.
        spin: Busy waiting, which saves some µs per reply.
        ip: Version of IP, 4 or 6; by default the first address of the name.
        progress: Whether to show the progress; by default in a notebook or at a prompt.

    Returns:
        Round trips with intervals. After Ctrl-C, those measured so far.

    Raises:
        ValueError: with the parameter and what is allowed.
        OSError: if the system refuses to send.
    """
    requested = size_lists.read(
        "sizes", (0 if protocol == "tcp" else DEFAULT_SIZE) if sizes is None else sizes
    )
    if protocol not in ("icmp", "udp", "tcp"):
        raise ParameterError("protocol", f'"{protocol}" is unknown; allowed: icmp, udp, tcp')
    if protocol == "tcp" and port is None:
        raise ParameterError("protocol", "tcp requires {port}")
    options = {
        "host": host,
        "port": port or ECHO_PORT,
        "version": ip,
        "protocol": protocol,
        "sizes": requested,
        "count": count,
        "interval": 0.01 if flood else duration("interval", interval, 0.0002, 3600),
        "flood": rate if flood else None,
        "window": window or (1 if flood else 64),
        "timeout": duration("timeout", timeout, 0.001, 3600),
        "whole": dont_fragment,
        "spin": spin,
    }
    total = len(requested) * count

    def line(now: Mapping[str, Any]) -> str:
        last = f", last {now['size']} B after {quantity(now['last_s'], 's')}" if now["answered"] else ""
        return f"{now['sent']} of {total} sent, {now['answered']} answered{last}"

    display = watching(progress)
    try:
        report = json.loads(_native.ping(json.dumps(options), shower(display, line)))
    finally:
        display.close()
    from longfat.analysis.ping_summary import rows, summarise

    return RoundTrips(host, protocol, report, summarise(rows(report)))
