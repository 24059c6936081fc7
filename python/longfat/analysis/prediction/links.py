"""The links of a specification as numbers: times in s, rates in bit/s, losses as probabilities."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from longfat import _native
from longfat.analysis.prediction.model import NoClosedFormError
from longfat.study import units
from longfat.study.vocabulary import canonical

DEFAULT_QUEUE = "1000pkt"
"""The default queue limit of a link."""


def directions(path: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Returns the keys of each link of a path, forward and reverse, with presets applied.

    Raises NoClosedFormError for an invalid path.
    """
    try:
        return [(there, back) for there, back in json.loads(_native.path_links(canonical(path)))]
    except ValueError as error:
        raise NoClosedFormError(str(error)) from None


def number(value: Any, what: str) -> float:
    """Returns a quantity in its base unit; raises NoClosedFormError if it is not a single number."""
    found = units.number(value)
    if found is None:
        raise NoClosedFormError(f"{what} = {value} is not a single number")
    return found


def sending_time(link: Mapping[str, Any], size: float) -> float:
    """Returns the transmission time of `size` bytes in s; raises NoClosedFormError if the rate varies."""
    if "trace" in link:
        raise NoClosedFormError("the rate follows a trace")
    for medium in ("cell", "wifi"):
        if medium in link:
            raise NoClosedFormError(f"the link is a part of a shared medium ({medium})")
    if "rate" not in link:
        return 0.0
    return size * 8 / number(link["rate"], "rate")


def delay(link: Mapping[str, Any]) -> float:
    """Returns the one-way delay of a link in s; raises NoClosedFormError if it varies."""
    for key in ("jitter", "reorder", "duplicate", "corrupt"):
        if key in link and units.number(link[key]) != 0:
            raise NoClosedFormError(f"the path has {key}")
    return number(link.get("delay", "0ms"), "delay")


def loss(link: Mapping[str, Any]) -> float:
    """Returns the loss probability of a link; raises NoClosedFormError if losses are not independent."""
    given = link.get("loss", "0%")
    if isinstance(given, Mapping):
        if given.get("kind", given.get("model")) != "bernoulli":
            raise NoClosedFormError("losses are not independent")
        given = given.get("probability")
    probability = number(given, "loss")
    if probability >= 0.5:
        raise NoClosedFormError("the loss is 50 % or more")
    return probability


def queue_room(link: Mapping[str, Any], packet: float) -> float:
    """Returns the number of packets of `packet` bytes in a full queue, including the one in transmission.

    Raises NoClosedFormError for an active queue management (AQM).
    """
    limit = link.get("queue", DEFAULT_QUEUE)
    if isinstance(limit, Mapping):
        if limit.get("kind", "drop-tail") not in ("drop-tail", "drop-head"):
            raise NoClosedFormError(f"the queue discipline is {limit['kind']}, not drop-tail")
        limit = limit.get("limit", DEFAULT_QUEUE)
    try:
        parsed = units.parse(limit)
    except ValueError:
        raise NoClosedFormError("the queue discipline is not drop-tail") from None
    if parsed.dimension in ("packets", "number"):
        return float(parsed.value)
    return float(parsed.value) / packet
