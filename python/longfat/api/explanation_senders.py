"""The sender of a capture: which congestion controller it has.

Each possible controller sends the same data over the path of the capture, in the simulator, and the packets
are analysed as those of the capture are. The nearest result names the sender.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path as File
from typing import TYPE_CHECKING, Any

from longfat import _native
from longfat.analysis.captures import explained
from longfat.api.parallel import parallel
from longfat.api.traces import trace
from longfat.api.trials import TransferError
from longfat.worlds.environment import available_cores

if TYPE_CHECKING:
    from longfat.analysis.captures.explained import Direction
    from longfat.api.traces import Side

_SNAP = 96
"""Bytes of a captured packet: all headers."""
_LEAST_SHARE = 0.001
_WIDTHS = {"duration": 0.05, "rtt": 0.05, "repeated": 0.3, "reduction": 0.08, "clocked": 0.25}
"""Differences from a simulation that are usual for the same controller. The first three are of logarithms."""
_MOST_DISTANCE = 50.0
_PRIOR = {"vegas": 0.2}
"""Probability before any packet, relative to others: few hosts have it, and it is Reno over short queues."""


def simulated(
    protocols: Mapping[str, Mapping[str, Any]],
    path: Mapping[str, Any],
    workload: Mapping[str, Any],
    one: Direction,
) -> dict[str, Direction]:
    """Returns the transfer of a direction with each protocol by name; failed transfers are absent."""
    side: Side = "receiver" if one.path["position"] == "receiver" else "sender"

    def run(name: str, protocol: Mapping[str, Any], folder: str) -> list[Direction]:
        file = File(folder) / f"{name}.pcapng"
        try:
            trace(protocol, path, workload=workload, pcapng=file, side=side, snap=_SNAP, samples=False)
        except TransferError:
            return []
        document = json.loads(_native.explain_capture(str(file), lambda _: None))
        # The sender opens the connection.
        both = [explained.directions(one) for one in document["connections"][:1]]
        return [sent for directions in both for sent in directions if sent.is_client]

    with tempfile.TemporaryDirectory() as folder:
        work: list[Callable[[], list[Direction]]] = [
            partial(run, name, protocol, folder) for name, protocol in protocols.items()
        ]
        # A running trace ends by itself; Ctrl-C starts no further one.
        found, interrupted = parallel(work, available_cores(), lambda: None, lambda _: None)
    if interrupted:
        raise KeyboardInterrupt
    return {name: one[0] for name, one in zip(protocols, found, strict=True) if one}


def probabilities(one: Direction, found: Mapping[str, Direction]) -> dict[str, float]:
    """Returns the probability of each simulated sender, by how near its packets are to the captured ones."""
    captured = _features(one)
    distances = {name: _distance(captured, _features(other)) for name, other in found.items()}
    least = min(distances.values(), default=0.0)
    weights = {
        name: _PRIOR.get(name, 1.0) * math.exp(-(distance - least) / 2)
        for name, distance in distances.items()
    }
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()}


def _features(one: Direction) -> dict[str, float]:
    """Returns what distinguishes controllers: logarithms of figures, and shares."""
    document, path = one.document, one.path
    repeated = document["repeated_packets"] / max(document["data_packets"], 1)
    found = {
        "duration": math.log(max(document["duration_s"], 1e-6)),
        "repeated": math.log(repeated + _LEAST_SHARE),
        "clocked": document["clocked_share"],
    }
    if path["rtt_p50_s"]:
        found["rtt"] = math.log(path["rtt_p50_s"])
    if document["reduction"] is not None:
        found["reduction"] = document["reduction"]
    return found


def _distance(captured: Mapping[str, float], other: Mapping[str, float]) -> float:
    return sum(
        min(((captured[name] - other[name]) / width) ** 2, _MOST_DISTANCE)
        for name, width in _WIDTHS.items()
        if name in captured and name in other
    )
