"""The evidence of a cause: figures of the capture that show it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longfat.presentation.formatting import DASH, quantity, rounded

if TYPE_CHECKING:
    from longfat.analysis.captures.explained import Direction


def evidence(one: Direction, cause: str) -> str:
    """Returns the figures that show a cause."""
    path, document = one.path, one.document
    if cause in ("random-loss", "queue-overflow", "burst", "timeout"):
        shown = f"{document['repeated_packets']} of {rounded(document['data_packets'])} packets retransmitted"
        return shown + (f", {document['timeouts']} timeouts" if document["timeouts"] else "")
    if cause == "policer":
        rate = quantity(one.on_wire(document["policer_bps"] or path["peak_bps"]), "bit/s")
        return f"{document['policed_packets']} retransmissions; at most about {rate} between losses"
    if cause == "reordering":
        return f"{document['spurious_packets']} unnecessary retransmissions (DSACK)"
    if cause == "path-change":
        first = path["changes"][0]
        before, after = quantity(first["before_s"], "s"), quantity(first["after_s"], "s")
        return f"RTT from {before} to {after} at {quantity(first['time_s'], 's')}"
    if cause == "pacing":
        return f"full segments at constant intervals, flight of {quantity(path['flight'], 'B')}"
    if cause == "delayed-ack":
        return "small segments sent on late ACKs"
    if cause in ("bandwidth", "bufferbloat"):
        rate = quantity(path["rate_bps"], "bit/s") if path["rate_bps"] else DASH
        queue = path["standing_queue_s"]
        return f"payload at {rate}" + (f", queue of at least {quantity(queue, 's')}" if queue else "")
    if cause == "receive-window":
        rtt = path["rtt_p50_s"]
        return f"window of {quantity(path['window'], 'B')}" + (f" per {quantity(rtt, 's')}" if rtt else "")
    if cause == "receiver-stall":
        return f"{one.zero_windows} zero windows"
    if cause == "slow-start":
        return f"flight grew to {quantity(path['flight'], 'B')}"
    if cause == "send-buffer":
        return f"flight of {quantity(path['flight'], 'B')}"
    if cause == "handshake":
        again = one.connection["repeated_syns"]
        return f"{again} SYNs retransmitted" if again else "one RTT"
    silences = sum(1 for interval in document["intervals"] if interval["cause"] == cause)
    return f"{silences} pause{'s' if silences > 1 else ''}" if silences else "small or late writes"
