"""What a specification says of its links, as numbers: times in s, rates in bit/s, losses as probabilities."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from longfat import _native
from longfat.analysis.prediction.model import NoClosedFormError
from longfat.study import units
from longfat.study.vocabulary import canonical

DEFAULT_QUEUE = "1000pkt"
"""What a link's queue holds where a study does not say."""


def directions(path: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """The keys of each link of a path in order, there and back, with those of presets; raises for no path."""
    try:
        return [(there, back) for there, back in json.loads(_native.path_links(canonical(path)))]
    except ValueError as error:
        raise NoClosedFormError(str(error)) from None


def number(value: Any, what: str) -> float:
    """A quantity in its base unit; raises where it is none."""
    found = units.number(value)
    if found is None:
        raise NoClosedFormError(f"{what} = {value} is no single number")
    return found


def sending_time(link: Mapping[str, Any], size: float) -> float:
    """The time that a link takes to send so many bytes; raises where its rate is none alone."""
    if "trace" in link:
        raise NoClosedFormError("the rate follows a trace")
    if "rate" not in link:
        return 0.0
    return size * 8 / number(link["rate"], "rate")


def delay(link: Mapping[str, Any]) -> float:
    """The one-way delay of a link; raises where it varies."""
    for key in ("jitter", "reorder", "duplicate", "corrupt"):
        if key in link and units.number(link[key]) != 0:
            raise NoClosedFormError(f"the path has {key}")
    return number(link.get("delay", "0ms"), "delay")


def loss(link: Mapping[str, Any]) -> float:
    """The probability that a link loses a packet; raises where losses are not independent."""
    given = link.get("loss", "0%")
    if isinstance(given, Mapping):
        if given.get("model") != "bernoulli":
            raise NoClosedFormError("losses are not independent of each other")
        given = given.get("probability")
    probability = number(given, "loss")
    if probability >= 0.5:
        raise NoClosedFormError("half of all packets or more are lost")
    return probability


def queue_room(link: Mapping[str, Any], packet: float) -> float:
    """How many packets of so many bytes the queue in front of a link holds, that being sent included.

    Raises where the queue drops by a rule of its own.
    """
    limit = link.get("queue", DEFAULT_QUEUE)
    if isinstance(limit, Mapping):
        if limit.get("kind", "drop-tail") not in ("drop-tail", "drop-head"):
            raise NoClosedFormError(f"the queue drops by a rule of its own ({limit['kind']})")
        limit = limit.get("limit", DEFAULT_QUEUE)
    try:
        parsed = units.parse(limit)
    except ValueError:
        raise NoClosedFormError("the queue drops by a rule of its own") from None
    if parsed.dimension in ("packets", "number"):
        return float(parsed.value)
    return float(parsed.value) / packet
