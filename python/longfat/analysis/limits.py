"""What limits TCP other than the network: the receive window or the send buffer, counted as in TCP_INFO."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from longfat.study import units

if TYPE_CHECKING:
    from longfat.results.run import CellResult

LEAST_SHARE = 0.2
"""Share of the time from which a cell counts as limited."""
LIMITS = {
    "sndbuf_limited_s": ("send buffer", "send_buffer"),
    "rwnd_limited_s": ("receive window", "receive_buffer"),
}
"""Limits by their metric: the name, and the key of the protocol that changes it."""


@dataclass(frozen=True)
class Limit:
    """One limit in the cells of a run. `share` is the largest share of the time, in `worst`."""

    name: str
    keys: tuple[str, ...]
    cells: int
    share: float
    worst: CellResult


def limits(cells: Sequence[CellResult]) -> Iterator[Limit]:
    """Yields the limits that at least one cell has for `LEAST_SHARE` of the time, by number of cells."""
    found = []
    for metric, (name, key) in LIMITS.items():
        shares = [(share(cell, metric), cell) for cell in cells]
        limited = [one for one in shares if one[0] >= LEAST_SHARE]
        if limited:
            most, worst = max(limited, key=lambda one: one[0])
            keys = tuple(dict.fromkeys(_key(cell.cell.spec["protocol"], key) for _, cell in limited))
            found.append(Limit(name, keys, len(limited), most, worst))
    yield from sorted(found, key=lambda limit: -limit.cells)


def _key(protocol: dict[str, Any], key: str) -> str:
    """Returns the key to change: without window scaling, no receive buffer makes the window exceed 64 kB."""
    return "window_scaling" if key == "receive_buffer" and protocol.get("window_scaling") is False else key


def share(cell: CellResult, metric: str) -> float:
    """Returns the share of its time in which a cell was limited, as the mean of its trials; 0 if unknown."""
    seconds = cell.samples.get(metric) or []
    lives = _lives(cell)
    # The time is counted from event to event, so it may begin a round trip before the measured time.
    known = [min(1.0, limited / life) for limited, life in zip(seconds, lives, strict=False) if life > 0]
    return math.fsum(known) / len(known) if known else 0.0


def _lives(cell: CellResult) -> Sequence[float]:
    """Returns for how long flows ran in each trial, in s: the measured time, or the mean completion time."""
    workload = cell.cell.spec.get("workload", {})
    duration = units.number(workload.get("duration"))
    if workload.get("kind") in ("file", "arrivals") or duration is None:
        return cell.samples.get("fct_mean_s") or cell.samples.get("completion_s") or []
    return [duration - (units.number(workload.get("warm_up")) or 0.0)] * cell.n
