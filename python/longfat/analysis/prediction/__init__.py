"""Which closed form speaks of a trial, and what it says.

One module for each family of forms: an ARQ protocol that sends a file, a lone TCP flow, several flows that
share a network, requests and their responses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from longfat.analysis.prediction import arq, requests, sharing, tcp
from longfat.analysis.prediction.arq import ARQ_HEADER, UDP_IPV4, Setting, numbers
from longfat.analysis.prediction.arq import KINDS as ARQ_KINDS
from longfat.analysis.prediction.model import Prediction, nothing
from longfat.study.vocabulary import AT_HOST

__all__ = [
    "ARQ_HEADER",
    "ARQ_KINDS",
    "GOODPUT",
    "UDP_IPV4",
    "Prediction",
    "Setting",
    "numbers",
    "pipe",
    "predict",
]

GOODPUT = "goodput_bps"
QUEUE = "queue_mean_packets"
STEADY = ("bulk", "on-off")
"""Workloads that go on long enough for a steady state."""


def pipe(spec: Mapping[str, Any]) -> float | None:
    """The bandwidth-delay product in packets: of an ARQ protocol's path, or of a lone TCP flow's way."""
    if spec["protocol"].get("kind") not in ARQ_KINDS:
        return tcp.pipe(spec)
    setting = numbers(spec)
    return setting.round_trip / setting.frame_time if setting is not None and setting.frame_time > 0 else None


def predict(spec: Mapping[str, Any], metric: str = GOODPUT) -> Prediction:
    """What theory expects of a metric (its column in records) in a trial of this specification."""
    kind, workload = str(spec["protocol"].get("kind")), str(spec.get("workload", {}).get("kind", "file"))
    if kind in ARQ_KINDS and "path" in spec:
        return arq.predict(spec) if metric == GOODPUT else nothing(f"theory does not speak of {metric}")
    if workload == "request-response":
        return requests.predict(spec, metric)
    if workload not in STEADY:
        return nothing(f"theory does not speak of a workload of kind {workload} here")
    name, _, host = metric.partition(AT_HOST)
    if name == GOODPUT and host:
        return sharing.of_host(spec, host)
    if kind == "tcp" and workload == "bulk" and "rate" not in spec["workload"]:
        if metric == QUEUE:
            return tcp.queue(spec)
        if metric == GOODPUT:
            return sharing.whole(spec) if sharing.several(spec) else tcp.goodput(spec)
    return nothing(f"theory does not speak of {metric} here")
