"""What would be fair: the max-min shares of flows that share a network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from longfat.analysis.prediction.layout import layout
from longfat.analysis.prediction.model import NoClosedFormError, Prediction, nothing

NOTE = "max-min fair shares by water-filling"


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


def whole(spec: Mapping[str, Any]) -> Prediction:
    """What measured flows would have together if all were fair; with several bottlenecks no bound."""
    try:
        flows = layout(spec).measured
    except NoClosedFormError as reason:
        return nothing(reason)
    shares = [flow.fair for flow in flows if flow.fair is not None]
    if not flows or len(shares) < len(flows):
        return nothing("nothing limits these flows, or they come and go")
    return Prediction(sum(shares), exact=False, note=NOTE)
