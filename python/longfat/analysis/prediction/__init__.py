"""Predictions for a trial by the applicable closed form.

Each module covers a family of forms: ARQ file transfers, single TCP flows, flows that share a network, and
requests with responses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from longfat.analysis.prediction import arq, bbr, requests, sharing, tcp
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
SHARE = "share"
STEADY = ("bulk", "on-off")
"""Workloads that reach a steady state."""


def pipe(spec: Mapping[str, Any]) -> float | None:
    """Returns the bandwidth-delay product in packets, for an ARQ protocol or a single TCP flow."""
    if spec["protocol"].get("kind") not in ARQ_KINDS:
        return tcp.pipe(spec)
    setting = numbers(spec)
    return setting.round_trip / setting.frame_time if setting is not None and setting.frame_time > 0 else None


def predict(spec: Mapping[str, Any], metric: str = GOODPUT) -> Prediction:
    """Predicts a metric (a column of the records) for a trial of this specification."""
    kind, workload = str(spec["protocol"].get("kind")), str(spec.get("workload", {}).get("kind", "file"))
    if kind in ARQ_KINDS and "path" in spec:
        return arq.predict(spec) if metric == GOODPUT else nothing(f"{metric} is not predicted")
    if workload == "request-response":
        return requests.predict(spec, metric)
    if workload not in STEADY:
        return nothing(f"the workload {workload} is not predicted here")
    name, _, host = metric.partition(AT_HOST)
    if name == GOODPUT and host:
        return sharing.of_host(spec, host)
    if kind == "tcp" and workload == "bulk" and "rate" not in spec["workload"]:
        if metric == QUEUE:
            return tcp.queue(spec)
        if metric == SHARE:
            return bbr.share(spec)
        if metric == GOODPUT:
            return sharing.whole(spec) if sharing.several(spec) else tcp.goodput(spec)
    if kind != "tcp" and metric == GOODPUT:
        return nothing(f"only for TCP and ARQ protocols, not {kind}")
    return nothing(f"{metric} is not predicted here")
