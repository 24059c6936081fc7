"""The resolution of percentiles that a trial reads from a histogram.

Histograms of durations have bins of 512 ns below 1.05 ms; the width doubles with each doubling of the value
(`crates/foundation/src/duration_histogram.rs`). A percentile is the end of its bin.
"""

from __future__ import annotations

import math

from longfat.study.vocabulary import whole_metric

OF_HISTOGRAMS = frozenset(
    f"{name}_{percentile}_s"
    for name in ("rtt", "queueing_delay", "one_way_delay")
    for percentile in ("p50", "p95", "p99")
)
_LEAST_NANOS = 512
_BINS = 2048
"""Bins of the smallest width; half as many are in each doubling above."""


def bin_width(metric: str, value: float) -> float:
    """Returns the width in s of the bin that contains a value of a metric; 0 without a histogram.

    >>> round(bin_width("rtt_p99_s", 0.011) * 1e6, 3), bin_width("rtt_mean_s", 0.011)
    (8.192, 0.0)
    """
    if whole_metric(metric) not in OF_HISTOGRAMS or not math.isfinite(value) or value <= 0:
        return 0.0
    doublings = math.floor(math.log2(value * 1e9 / (_LEAST_NANOS * _BINS))) + 1
    return math.ldexp(_LEAST_NANOS, max(0, doublings)) / 1e9
