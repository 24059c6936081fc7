"""What would be fair: the max-min shares of flows that share a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from longfat.analysis.prediction.layout import Flow, layout
from longfat.analysis.prediction.model import NoClosedFormError, Prediction, nothing

NOTE = "max-min fair shares by water-filling"


def several(spec: Mapping[str, Any]) -> bool:
    """Whether more than one flow is on the network."""
    try:
        return len(layout(spec).flows) > 1
    except NoClosedFormError:
        return False


def of_host(spec: Mapping[str, Any], host: str) -> Prediction:
    """The fair goodput, in bit/s, of the measured flows of a host, or of the traffic of that name."""
    try:
        flows = [flow for flow in layout(spec).flows if (flow.traffic or flow.sender) == host]
    except NoClosedFormError as reason:
        return nothing(reason)
    shares = [flow.fair for flow in flows if flow.fair is not None]
    if not flows or len(shares) < len(flows):
        return nothing("nothing limits these flows, or they come and go")
    return Prediction(sum(shares), exact=False, note=NOTE)


def _most(flows: Sequence[Flow]) -> float:
    """Bits of payload per second that no rules of sharing exceed.

    What one flow leaves because of its losses another may use, so a fair share is no bound. Every flow
    crosses one of the links that are the slowest of some flow, and every link that all have in common;
    neither carries more than its rate.
    """
    share = max(flow.payload / flow.packet for flow in flows)
    slowest = {flow.bottleneck.name: flow.bottleneck.rate for flow in flows}
    common = set.intersection(*({(link.name, link.rate) for link in flow.forward} for flow in flows))
    by_links = min([sum(slowest.values()), *(rate for _, rate in common)]) * share
    return min(by_links, sum(flow.most * flow.payload * 8 for flow in flows))


def whole(spec: Mapping[str, Any]) -> Prediction:
    """What measured flows would have together if all were fair; a bound where links lose packets."""
    try:
        found = layout(spec)
    except NoClosedFormError as reason:
        return nothing(reason)
    shares = [flow.fair for flow in found.measured if flow.fair is not None]
    if not shares or len(shares) < len(found.measured):
        return nothing("nothing limits these flows, or they come and go")
    if any("loss" in link.config for flow in found.flows for link in flow.forward):
        note = "at most links and windows; no closed form: losses hold several flows back"
        return Prediction(None, exact=False, note=note, bound=_most(found.measured))
    return Prediction(sum(shares), exact=False, note=NOTE)
