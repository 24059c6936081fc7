"""Random losses of a captured transfer: which packets they are, and how many are independent."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from longfat.analysis.captures.explained import Direction

_DEVIATIONS = 3
"""Standard deviations below which the number of groups is not that of independent losses."""
_FEW = 0.1
"""Share of the random losses up to which an RTT that is long by chance explains losses by a full queue."""


def queue_losses(one: Direction) -> int:
    """Returns the retransmissions after losses by a full queue, those of bursts included."""
    document = one.document
    return int(document["overflow_packets"] + document["burst_packets"])


def shows_queue(one: Direction) -> bool:
    """Whether losses by a full queue show its size: a few among many random losses are random, too."""
    return queue_losses(one) > _FEW * int(one.document["random_loss_packets"])


def independent_losses(one: Direction) -> int:
    """Returns the number of random losses; groups count once if independent losses would form more groups.

    Losses within one flight are a group. The gap between independent losses is longer than a flight with the
    probability of a geometric distribution. A sender reduces its window once per group, so a path that
    loses each packet independently must not lose more often.
    """
    document, path = one.document, one.path
    lost, count = document["lost"], int(document["random_loss_packets"])
    rate = path["rate_bps"] or path["peak_bps"]
    if count < 2 or not lost or not rate or not path["base_rtt_s"] or queue_losses(one) > count:
        return count
    flight = max(rate * path["base_rtt_s"] / 8 / path["mss"], 1.0)
    gaps = [later - earlier for earlier, later in pairwise(lost)]
    groups = 1 + sum(gap > flight for gap in gaps)
    beyond = (1 - len(lost) / max(document["data_packets"], len(lost) + 1)) ** flight
    expected = 1 + len(gaps) * beyond
    deviation = math.sqrt(len(gaps) * beyond * (1 - beyond))
    return groups if groups < expected - _DEVIATIONS * deviation else count


def same_losses(one: Direction, path: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns a path that loses the packets that the capture shows as lost without a queue."""
    lost = one.document["lost"]
    if "loss" not in path or not lost or queue_losses(one) > one.document["random_loss_packets"]:
        return path
    return {**path, "loss": {"kind": "packets", "packets": lost}, "reverse": {"loss": "0%"}}
