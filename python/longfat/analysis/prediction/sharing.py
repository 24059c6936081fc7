"""Fair shares: the max-min shares of flows that share a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from longfat.analysis.prediction.layout import Flow, edge, layout
from longfat.analysis.prediction.model import NoClosedFormError, Prediction, nothing

NOTE = "max-min fair shares by water-filling"


def several(spec: Mapping[str, Any]) -> bool:
    """Whether several flows use the network."""
    try:
        return len(layout(spec).flows) > 1
    except NoClosedFormError:
        return False


def of_host(spec: Mapping[str, Any], host: str) -> Prediction:
    """Returns the fair goodput in bit/s of a host's measured flows, or of the traffic with that name."""
    try:
        flows = [flow for flow in layout(spec).flows if (flow.traffic or flow.sender) == host]
    except NoClosedFormError as reason:
        return nothing(reason)
    shares = [flow.fair for flow in flows if flow.fair is not None]
    if not flows or len(shares) < len(flows):
        return nothing("these flows are unlimited, or not permanent")
    return Prediction(sum(shares), exact=False, note=NOTE)


def _most(spec: Mapping[str, Any], flows: Sequence[Flow]) -> float:
    """An upper bound of the payload bits per second, for any division of the links.

    A flow can use capacity that another flow leaves because of losses, so a fair share is not a bound. Every
    flow crosses one of the links that are the slowest of some flow, and every link that all flows share;
    neither carries more than its rate.
    """
    share = max(flow.payload / flow.packet for flow in flows)
    slowest = {flow.bottleneck.name: flow.bottleneck.rate for flow in flows}
    common = set.intersection(*({(link.name, link.rate) for link in flow.forward} for flow in flows))
    by_links = min([sum(slowest.values()), *(rate for _, rate in common)]) * share
    by_links += edge(spec, max(flow.payload for flow in flows) * len(slowest))
    return min(by_links, sum(flow.most * flow.payload * 8 + edge(spec, flow.burst) for flow in flows))


def whole(spec: Mapping[str, Any]) -> Prediction:
    """Returns the total fair goodput of the measured flows; an upper bound if links lose packets."""
    try:
        found = layout(spec)
    except NoClosedFormError as reason:
        return nothing(reason)
    shares = [flow.fair for flow in found.measured if flow.fair is not None]
    if not shares or len(shares) < len(found.measured):
        return nothing("these flows are unlimited, or not permanent")
    if any("loss" in link.config for flow in found.flows for link in flow.forward):
        note = "upper bound by links and windows; no closed form: losses limit several flows"
        return Prediction(None, exact=False, note=note, bound=_most(spec, found.measured))
    return Prediction(sum(shares), exact=False, note=NOTE)
