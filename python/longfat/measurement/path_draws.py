"""Random paths that fit a measurement, one for each simulated trial: its uncertainty is that of the results.

Delays, rates and losses follow normal distributions whose 95 % intervals are those of the measurement, with
separate widths below and above the value. A link that lost no probe stays without loss. A loss of several
links together is on one of them. The directions of a link, and the sharing of losses between them, stay as
assumed.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from longfat.analysis.diagnosis import QueueLimit
from longfat.analysis.forecast import NORMAL_TAIL
from longfat.analysis.inference.losses import is_shared, one_way
from longfat.measurement.path_document import duration, percentage, rate, size
from longfat.study import units

FACTORS: Mapping[QueueLimit, tuple[float, float]] = {
    "given": (1.0, 1.0),
    "measured": (0.95, 1.05),
    "lower limit": (1.0, 2.0),
    "assumed": (0.5, 2.0),
}
"""Smallest and largest limit of the queue in a draw, in multiples of the model's limit."""
LARGEST_LOSS = 0.95


def drawn(
    path: dict[str, Any],
    hops: Sequence[Mapping[str, Any]],
    bottleneck: tuple[int, bool],
    queue: QueueLimit,
    random: np.random.Generator,
) -> dict[str, Any]:
    """Returns a path within the intervals of a measurement.

    `path` is a path's table, and `hops` are the links in its table `[measured]`, none for a path that is
    known. `bottleneck` is the number of the slowest link from 0, and whether its reverse direction is meant.
    """
    made = copy.deepcopy(path)
    links = made.get("hops", [made])
    number, is_reverse = bottleneck
    _draw_queue(links[number].get("reverse", {}) if is_reverse else links[number], queue, random)
    if len(hops) != len(links):
        return made
    for link, found in zip(links, hops, strict=True):
        if "delay" in found and "delay" in link:
            link["delay"] = duration(_within(link["delay"], found["delay"], random))
        if "rate" in found and "rate" in link:
            bounds = [units.number(bound) for bound in found["rate"]]
            link["rate"] = rate(max(_within(link["rate"], bounds, random), (bounds[0] or 0.0) / 2, 1.0))
    for place, (link, found) in enumerate(zip(links, hops, strict=True)):
        if "loss_round_trip" in found and isinstance(link.get("loss"), str):
            bounds = [one_way(units.number(bound) or 0.0) for bound in found["loss_round_trip"]]
            lost = percentage(min(max(_within(link.pop("loss"), bounds, random), 0.0), LARGEST_LOSS))
            links[int(random.integers(first_lossy(place, hops), place + 1))]["loss"] = lost
    return made


def _draw_queue(link: dict[str, Any], queue: QueueLimit, random: np.random.Generator) -> None:
    low, high = FACTORS[queue]
    limit = units.number(link.get("queue"))
    if limit is not None and low < high and isinstance(link["queue"], str) and link["queue"].endswith("B"):
        link["queue"] = size(limit * float(np.exp(random.uniform(np.log(low), np.log(high)))))


def _within(value: Any, bounds: Sequence[Any], random: np.random.Generator) -> float:
    """Returns a random number with these bounds of its 95 % interval."""
    mean = units.number(value) or 0.0
    low, high = (units.number(bound) or 0.0 for bound in bounds)
    away = float(random.standard_normal()) / NORMAL_TAIL
    return max(mean + away * max((high - mean) if away > 0 else (mean - low), 0.0), 0.0)


def first_lossy(place: int, hops: Sequence[Mapping[str, Any]]) -> int:
    """Returns the number of the first link of those that share the loss of link `place`, from 0."""
    if not is_shared(hops[place]):
        return place
    start = hops[place]["loss_ttls"][0]
    return next(number for number, hop in enumerate(hops) if hop["ttls"][-1] >= start)
