"""Parts that the tables and charts of measurements share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from longfat.presentation.formatting import DASH, digits

if TYPE_CHECKING:
    from longfat.results.run import Interval


def with_bounds(estimate: Interval, scale: float) -> str:
    """Returns an estimate with its interval, in multiples of `scale`; unknown bounds are "?"."""
    if not math.isfinite(estimate.value):
        return DASH
    low, high = (digits(v / scale) if math.isfinite(v) else "?" for v in (estimate.low, estimate.high))
    return f"{digits(estimate.value / scale)} [{low}, {high}]"


def chart_points(estimates: Sequence[tuple[str, int, Interval]]) -> list[dict[str, Any]]:
    """Returns the points of a chart by size, in ms, of (series, size in bytes, estimate in s)."""
    return [
        {
            "series": series,
            "size": size,
            "ms": one.value * 1e3,
            "low": one.low * 1e3 if math.isfinite(one.low) else None,
            "high": one.high * 1e3 if math.isfinite(one.high) else None,
        }
        for series, size, one in estimates
        if math.isfinite(one.value)
    ]
