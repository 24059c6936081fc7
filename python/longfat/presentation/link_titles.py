"""Titles of the counters of an emulated link, with units; metrics have the titles of the vocabulary."""

from __future__ import annotations

from longfat.presentation.names import column_title, metric_phrase, with_unit

PACKETS = "packets"
_LONGEST = "queue_max_packets"
_METRICS = {
    "lost": "losses",
    "queue_dropped": "drops",
    "outage_dropped": "outage_drops",
    "nat_dropped": "nat_drops",
    "host_dropped": "host_drops",
    "marked": "marks",
    "max_queue_packets": _LONGEST,
    "max_waiting": _LONGEST,
}
"""The metrics of trials that count the same."""
_OTHERS = {
    "packets": "entered",
    "entered": "entered",
    "delivered": "delivered",
    "waiting": "queue now",
    "mtu_dropped": "above the MTU",
    "duplicated": "duplicated",
    "corrupted": "corrupted",
    "reordered": "reordered",
}


def title(counter: str) -> str:
    """Returns the title of a counter of packets as the heading of a row.

    >>> title("max_queue_packets"), title("lost"), title("delivered")
    ('queue, maximum (packets)', 'losses (packets)', 'delivered (packets)')
    """
    named = metric_phrase(_METRICS[counter]) if counter in _METRICS else _OTHERS[counter]
    return with_unit(named, PACKETS)


def narrow_title(counter: str) -> str:
    r"""Returns the title and the unit of a counter as the lines of a column's heading.

    >>> narrow_title("max_waiting"), narrow_title("packets")
    ('queue max\npackets', 'entered\npackets')
    """
    named = column_title(_METRICS[counter]) if counter in _METRICS else _OTHERS[counter]
    return f"{named}\n{PACKETS}"
