"""The figures of a path model by which `diagnose` decides, and its bottleneck."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from longfat.analysis.diagnosis import SEGMENT, PathFigures
from longfat.analysis.prediction.links import directions, queue_room
from longfat.analysis.theory.latency import serialization
from longfat.analysis.theory.lossy_transfer import way_loss
from longfat.api.hops import of_path
from longfat.measurement.path_document import size
from longfat.measurement.path_draws import first_lossy
from longfat.presentation.formatting import digits

if TYPE_CHECKING:
    from longfat.analysis.theory.latency import Hop

_ACK = 60


def figures(path: dict[str, Any], name: str, **more: Any) -> PathFigures:
    """Returns the figures of a path's table; `more` are those that no model has.

    Raises ValueError, with the name, for a path without a rate or without a closed form.
    """
    (there, back), _ = of_path(path, name)
    rate = min(hop.rate for hop in there)
    if not math.isfinite(rate):
        raise ValueError(f"{name}: no link has a rate, so nothing limits the bandwidth: set path.rate")
    round_trip = _one_way(there, SEGMENT) + _one_way(back, _ACK)
    return PathFigures(rate=rate, round_trip=round_trip, loss=way_loss(there), **more)


def bottleneck(path: dict[str, Any], name: str) -> tuple[int, bool, float]:
    """Returns the slowest link: its number from 0, whether its reverse direction is meant, and its rate.

    Of equal directions it is the forward one.
    """
    (there, back), _ = of_path(path, name)
    found = [(hop.rate, False, number) for number, hop in enumerate(there)]
    found += [(hop.rate, True, number) for number, hop in enumerate(reversed(back))]
    rate, is_reverse, number = min(found)
    return number, is_reverse, rate


def echo_round_trip(path: dict[str, Any], name: str) -> float:
    """Returns the RTT in s of a full packet with a reply of its size."""
    (there, back), _ = of_path(path, name)
    return _one_way(there, SEGMENT) + _one_way(back, SEGMENT)


def with_queue(path: dict[str, Any], name: str, queue: str | float) -> dict[str, Any]:
    """Returns the path with another queue at its bottleneck: a discipline, or a limit in bytes."""
    number, is_reverse, _ = bottleneck(path, name)
    changed = copy.deepcopy(path)
    link = changed["hops"][number] if "hops" in changed else changed
    if is_reverse:
        link = link.setdefault("reverse", {})
    link["queue"] = queue if isinstance(queue, str) else size(queue)
    return changed


def queue_bytes(path: dict[str, Any], name: str) -> float:
    """Returns the limit of the bottleneck's queue in bytes, of full packets if it counts packets."""
    number, is_reverse, _ = bottleneck(path, name)
    keys = directions(path)[number][is_reverse]
    return queue_room(keys, SEGMENT) * SEGMENT


def worst_links(path: dict[str, Any], name: str, measured: Sequence[Mapping[str, Any]] = ()) -> str:
    """Returns which of several links is the slowest and which loses most; empty for one link.

    `measured` are the links in the model's table `[measured]`: a loss may be that of several links together.

    >>> hops = [{"rate": "9Mbit/s", "delay": "1ms"}, {"rate": "10Mbit/s", "delay": "1ms", "loss": "1%"}]
    >>> worst_links({"hops": hops}, "path")
    'Links: 2 in all; link 1 is the slowest, and link 2 loses most (1.00 %)'
    >>> worst_links({"hops": hops}, "path", [{"ttls": [1]}, {"ttls": [2], "loss_ttls": [1, 2]}])
    'Links: 2 in all; link 1 is the slowest, and links 1 to 2 together lose most (1.00 %)'
    """
    (there, _), _ = of_path(path, name)
    if len(there) < 2:
        return ""
    slowest = min(range(len(there)), key=lambda number: there[number].rate)
    lossiest = max(range(len(there)), key=lambda number: there[number].loss)
    text = f"Links: {len(there)} in all; link {slowest + 1} is the slowest"
    share = there[lossiest].loss
    if not share:
        return text
    first = first_lossy(lossiest, measured) if len(measured) == len(there) else lossiest
    which = f"link {lossiest + 1} loses"
    if first < lossiest:
        which = f"links {first + 1} to {lossiest + 1} together lose"
    return f"{text}, and {which} most ({digits(share * 100)} %)"


def _one_way(hops: tuple[Hop, ...], packet: int) -> float:
    return math.fsum(hop.delay + serialization(packet, hop.rate) for hop in hops)
