"""Connections of other protocols next to TCP: subflows of Multipath TCP, and QUIC."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from longfat.analysis.captures import explained
from longfat.presentation.formatting import digits, quantity

if TYPE_CHECKING:
    from longfat.analysis.captures.explained import Direction

MOST_QUIC = 2
"""QUIC connections that a terminal shows."""


def multipath(document: Mapping[str, Any], one: Direction) -> list[str]:
    """Returns the subflows of a Multipath TCP connection in one line; nothing for other TCP."""
    found = explained.subflows(document, one)
    if not found:
        return []
    total = max(sum(other.bytes for other in found), 1)
    parts = [
        f"flow {other.connection['stream']} {digits(100 * other.bytes / total, 2)} % of the data"
        + (f" ({other.limit})" if other.limit else "")
        for other in found
    ]
    noun = "subflow" if len(found) == 1 else "subflows"
    return [f"Multipath TCP with {len(found)} {noun}: {', '.join(parts)}"]


def quic(document: Mapping[str, Any]) -> list[str]:
    """Returns what the largest QUIC connections show, one line each."""
    found = document["quic"]
    lines = []
    for one in found[:MOST_QUIC]:
        parts = [quantity(sum(one["bytes"]), "B") + f" in {quantity(one['duration_s'], 's')}"]
        if one["handshake_s"] is not None:
            parts.append(f"handshake {quantity(one['handshake_s'], 's')}")
        spin = one["spin_rtt_s"]
        if spin is None:
            parts.append("no spin bit")
        else:
            parts.append(f"RTT {quantity(spin, 's')} (spin bit)")
        lines.append(f"QUIC {one['client']} to {one['server']}: {', '.join(parts)}; the rest is encrypted")
    if len(found) > MOST_QUIC:
        lines.append(f"{len(found) - MOST_QUIC} more QUIC connections (--json has them)")
    return lines
