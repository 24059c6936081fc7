"""`transact`: request-reply transactions, timed by the application and on the wire."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from longfat import _native
from longfat.api import sizes as size_lists
from longfat.api.defaults import DEFAULT_TRANSACTIONS, ECHO_PORT, TRANSACTIONS, IpVersion
from longfat.api.quantities import Duration, duration
from longfat.presentation.displayed import Displayed, TextTable
from longfat.presentation.formatting import quantity
from longfat.presentation.measured import transactions
from longfat.system.parameters import ParameterError
from longfat.system.progress import shower, watching

if TYPE_CHECKING:
    import polars

    from longfat.analysis.transaction_summary import Summary


@dataclass(frozen=True, repr=False)
class MeasuredTransactions(Displayed):
    """Measured transactions. `summary` has medians with 95 % confidence intervals by protocol and size."""

    host: str
    port: int
    report: Mapping[str, Any]
    summary: Summary

    @property
    def title(self) -> str:
        """Host and number of completed transactions."""
        return f"Transactions with {self.host}: {self.done} done"

    @property
    def done(self) -> int:
        """Number of completed transactions."""
        return self.summary.done

    @property
    def has_rows(self) -> bool:
        """Whether the table has rows."""
        return bool(self.summary.groups)

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C stopped the measurement."""
        return bool(self.report["interrupted"])

    def table(self) -> TextTable:
        """Returns a row for each protocol and size: time of the application, on the wire and in the stack."""
        if not self.summary.groups:
            return TextTable((), [])
        return transactions.table(self.summary)

    def remarks(self) -> list[str]:
        """Returns notes about the times, retransmissions and errors."""
        return transactions.notes(self.report, self.summary)

    def to_polars(self) -> polars.DataFrame:
        """Returns one row for each transaction: protocol, size, packets, and times in s."""
        import polars as pl

        from longfat.analysis.ping_summary import rows

        return pl.DataFrame(rows(self.report), infer_schema_length=None)

    def drawing(self) -> dict[str, Any] | None:
        """Returns transaction times by size as Vega-Lite; None without transactions."""
        return transactions.drawing(self.summary) if self.done else None

    def document(self) -> dict[str, Any]:
        """Returns all figures as JSON values."""
        return transactions.document(self.host, self.port, self.report, self.summary)

    def page(self) -> str:
        """Returns the report as HTML."""
        return transactions.page(self.document(), self.summary)


def transact(
    host: str,
    *,
    protocol: str | Iterable[str] = DEFAULT_TRANSACTIONS,
    sizes: str | int | Iterable[int] = "100,1400",
    count: int = 10,
    port: int = ECHO_PORT,
    interval: Duration = "10ms",
    timeout: Duration = "5s",
    ip: IpVersion | None = None,
    progress: bool | None = None,
) -> MeasuredTransactions:
    """Measures request-reply transactions with `longfat echo` (Linux).

    Args:
        host: Name or address of the host that runs `longfat echo`.
        protocol: Protocols, separated by commas: udp, tcp, tfo (TCP Fast Open), tcp-user and ttcp (TCP and
            T/TCP in user space, in UDP datagrams).
        sizes: Bytes of request and of reply, e.g. "8,100..1400:100".
        count: Transactions of each protocol and size.
        port: Port of `longfat echo`.
        interval: Shortest time between two transactions.
        timeout: Longest transaction.
        ip: Version of IP, 4 or 6; by default the first address of the name.
        progress: Whether to show the progress; by default in a notebook or at a prompt.

    Returns:
        Times with intervals. After Ctrl-C, those measured so far.

    Raises:
        ValueError: with the parameter and what is allowed.
        OSError: if the system refuses to send.
    """
    listed = protocol.split(",") if isinstance(protocol, str) else protocol
    protocols = list(dict.fromkeys(name.strip() for name in listed))
    if unknown := [name for name in protocols if name not in TRANSACTIONS]:
        raise ParameterError("protocol", f'"{unknown[0]}" is unknown; allowed: {", ".join(TRANSACTIONS)}')
    requested = size_lists.read("sizes", sizes)
    options = {
        "host": host,
        "port": port,
        "version": ip,
        "protocols": protocols,
        "sizes": requested,
        "count": count,
        "interval": duration("interval", interval, 0, 3600),
        "timeout": duration("timeout", timeout, 0.001, 3600),
    }
    total = len(protocols) * len(requested) * count

    def line(now: Mapping[str, Any]) -> str:
        last = f", last {now['size']} B in {quantity(now['last_s'], 's')}" if now["answered"] else ""
        return f"{now['answered']} of {total} done{last}"

    display = watching(progress)
    try:
        report = json.loads(_native.transact(json.dumps(options), shower(display, line)))
    finally:
        display.close()
    from longfat.analysis.ping_summary import rows
    from longfat.analysis.transaction_summary import summarise

    return MeasuredTransactions(host, port, report, summarise(rows(report), protocols))
