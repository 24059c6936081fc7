"""Output of `longfat relay --tcp` for people: a line about connections after the table of the links."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from longfat.presentation.formatting import quantity


def connections(report: Mapping[str, Any]) -> str:
    """Returns counts of connections, bytes and delays as lines.

    >>> delay = {"delay": {"p50_s": 0.02, "p99_s": 0.031}}
    >>> counts = {"accepted": 3, "completed": 1, "reset": 1, "open": 1, "unreachable": 0, "retransmissions": 2}
    >>> times = {"forward": delay, "reverse": delay, "late_p50_s": 1.2e-5, "late_p99_s": 9.1e-5}
    >>> print(connections({**counts, **times, "bytes_sent": 2000, "bytes_received": 4_000_000}))
    Connections: 3 (1 completed, 1 reset, 1 open at the end); 2 retransmissions
    Bytes: 2 kB from clients, 4 MB to clients
    Delay of packets: forward 20 ms (median), 31 ms (99th percentile); reverse 20 ms, 31 ms
    Delay error 12.0 µs (median), 91.0 µs (99th percentile)
    """
    parts = [f"{report['completed']:,} completed", f"{report['reset']:,} reset"]
    if report["open"]:
        parts.append(f"{report['open']:,} open at the end")
    if report["unreachable"]:
        parts.append(f"{report['unreachable']:,} without a reachable target")
    forward, reverse = report["forward"]["delay"], report["reverse"]["delay"]
    return "\n".join(
        (
            f"Connections: {report['accepted']:,} ({', '.join(parts)}); {report['retransmissions']:,} retransmissions",
            f"Bytes: {quantity(report['bytes_sent'], 'B')} from clients, "
            f"{quantity(report['bytes_received'], 'B')} to clients",
            f"Delay of packets: forward {quantity(forward['p50_s'], 's')} (median), "
            f"{quantity(forward['p99_s'], 's')} (99th percentile); "
            f"reverse {quantity(reverse['p50_s'], 's')}, {quantity(reverse['p99_s'], 's')}",
            f"Delay error {quantity(report['late_p50_s'], 's')} (median), "
            f"{quantity(report['late_p99_s'], 's')} (99th percentile)",
        )
    )
