"""Output of `longfat relay --tcp` for people: a line about connections after the table of the links."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from longfat.presentation.formatting import quantity


def connections(report: Mapping[str, Any]) -> str:
    """Returns counts of connections, bytes and delays as lines.

    >>> delay = {"delay": {"p50_s": 0.02, "p99_s": 0.031}}
    >>> counts = {"accepted": 3, "completed": 1, "reset": 1, "open": 1, "unreachable": 0}
    >>> times = {"forward": delay, "reverse": delay, "late_p50_s": 1.2e-5, "late_p99_s": 9.1e-5}
    >>> sizes = {"bytes_sent": 2000, "bytes_received": 4_000_000, "retransmissions": 2}
    >>> sizes |= {"udp_clients": 1, "udp_dropped": 0}
    >>> print(connections({**counts, **times, **sizes}))
    Connections: 3 (1 completed, 1 reset, 1 open at the end); 2 retransmissions
    Bytes: 2.00 kB from clients, 4.00 MB to clients
    Clients of UDP: 1 (0 datagrams too large or refused)
    Delay of packets (median, 99th percentile): forward 20.0 ms, 31.0 ms; reverse 20.0 ms, 31.0 ms
    Delay error 12.0 µs (median), 91.0 µs (99th percentile)
    """
    parts = [f"{report['completed']:,} completed", f"{report['reset']:,} reset"]
    if report["open"]:
        parts.append(f"{report['open']:,} open at the end")
    if report["unreachable"]:
        parts.append(f"{report['unreachable']:,} without a reachable target")
    again = report["retransmissions"]
    clients, dropped = report["udp_clients"], report["udp_dropped"]

    def shown(key: str, unit: str) -> str:
        return quantity(report[key], unit)

    def delays(side: str) -> str:
        found = report[side]["delay"]
        return f"{quantity(found['p50_s'], 's')}, {quantity(found['p99_s'], 's')}"

    return "\n".join(
        (
            f"Connections: {report['accepted']:,} ({', '.join(parts)}); {again:,} retransmissions",
            f"Bytes: {shown('bytes_sent', 'B')} from clients, {shown('bytes_received', 'B')} to clients",
            *(
                [f"Clients of UDP: {clients:,} ({dropped:,} datagrams too large or refused)"]
                if clients
                else []
            ),
            "Delay of packets (median, 99th percentile): "
            + "; ".join(f"{side} {delays(side)}" for side in ("forward", "reverse")),
            f"Delay error {shown('late_p50_s', 's')} (median), {shown('late_p99_s', 's')} (99th percentile)",
        )
    )
