"""The rate at which data arrive at the receiver of a flow, in order or not.

Goodput counts bytes when the application reads them: data behind a lost segment wait until the segment
arrives, and are then read at once. Goodput then exceeds the rate of the link; the rate of arrivals does not.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from longfat.analysis.series_events import Event

COLUMN = "received_bps"


def add_arrivals(record: Mapping[str, Any]) -> None:
    """Adds `received_bps` to the samples of each flow of a traced trial's record, if it has any."""
    series = record.get("series")
    if not series:
        return
    by_flow = _arrivals(record["events"])
    for flow in series["flows"]:
        if arrivals := by_flow.get(flow["flow"]):
            flow[COLUMN] = rates(arrivals, flow["time"], series["interval_s"])


def _arrivals(events: Iterable[Event]) -> dict[int, list[tuple[float, int]]]:
    """Returns (time, payload in B) of the packets of each flow that arrived at its main receiver."""
    found: dict[int, dict[str, list[tuple[float, int]]]] = defaultdict(lambda: defaultdict(list))
    for event in events:
        if event["what"] == "receive":
            found[event.get("flow", 0)][event["host"]].append((event["time"], event.get("length") or 0))
    most = {
        flow: max(hosts.values(), key=lambda listed: sum(length for _, length in listed))
        for flow, hosts in found.items()
    }
    return {flow: listed for flow, listed in most.items() if any(length for _, length in listed)}


def rates(arrivals: Sequence[tuple[float, int]], times: Sequence[float], interval: float) -> list[float]:
    """Returns the rate of arriving payload in bit/s from each sample to the next, given (time, payload in B).

    A packet arrives evenly from the end of the previous one to its own end, so single packets make no peaks.

    >>> rates([(1.0, 0), (3.0, 500)], [1.0, 2.0, 3.0, 4.0], 1.0)
    [0.0, 2000.0, 2000.0, 0.0]
    """
    steps = [0.0, *itertools.accumulate(length * 8.0 for _, length in arrivals)]
    ends = [time for time, _ in arrivals]
    found, place, before = [], 0, 0.0
    last = times[0] - interval if times else 0.0
    for time in times:
        while place < len(ends) and ends[place] <= time:
            place += 1
        so_far = steps[place]
        if 0 < place < len(ends):
            passed = (time - ends[place - 1]) / (ends[place] - ends[place - 1])
            so_far += passed * (steps[place + 1] - steps[place])
        found.append((so_far - before) / (time - last) if time > last else 0.0)
        before, last = so_far, time
    return found
