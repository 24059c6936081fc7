"""The evidence of a cause: figures of the capture that show it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longfat.presentation.formatting import DASH, quantity, rounded

if TYPE_CHECKING:
    from longfat.analysis.captures.explained import Direction

_LOSSES = {
    "random-loss": "random_loss_packets",
    "queue-overflow": "overflow_packets",
    "burst": "burst_packets",
}
"""The retransmissions of each cause of losses."""
_FLIGHTS = {
    "pacing": "full segments at regular intervals, flight of",
    "slow-start": "flight grew to",
    "send-buffer": "flight of",
}
"""Causes that the size of the flight shows."""


def evidence(one: Direction, cause: str) -> str:
    """Returns the figures that show a cause."""
    path, document = one.path, one.document
    if cause in _LOSSES:
        return f"{document[_LOSSES[cause]]} of {rounded(document['data_packets'])} packets retransmitted"
    if cause == "timeout":
        return _counted(document["timeouts"], "timeout")
    if cause == "policer":
        again = _counted(document["policed_packets"], "retransmission")
        return f"{again}; {quantity(one.on_wire(document['policer_bps']), 'bit/s')} between losses"
    if cause == "reordering":
        return f"{_counted(document['spurious_packets'], 'unnecessary retransmission')} (DSACK)"
    if cause == "path-change":
        first = path["changes"][0]
        before, after = quantity(first["before_s"], "s"), quantity(first["after_s"], "s")
        return f"RTT from {before} to {after} at {quantity(first['time_s'], 's')}"
    if cause in _FLIGHTS:
        return f"{_FLIGHTS[cause]} {quantity(path['flight'], 'B')}"
    if cause == "delayed-ack":
        return "small segments sent on late ACKs"
    if cause in ("bandwidth", "bufferbloat"):
        rate, queue = path["rate_bps"], path["standing_queue_s"]
        found = [f"payload at {quantity(rate, 'bit/s')}"] if rate else []
        found += [f"queue of at least {quantity(queue, 's')}"] if queue else []
        return ", ".join(found) or DASH
    if cause == "receive-window":
        rtt = path["rtt_p50_s"]
        return f"window of {quantity(path['window'], 'B')}" + (f" per {quantity(rtt, 's')}" if rtt else "")
    if cause == "receiver-stall":
        return _counted(one.zero_windows, "zero window")
    if cause == "handshake":
        syns = one.connection["repeated_syns"]
        return f"{_counted(syns, 'SYN')} retransmitted" if syns else "one RTT"
    silences = sum(1 for interval in document["intervals"] if interval["cause"] == cause)
    return _counted(silences, "pause") if silences else "small or late writes"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
