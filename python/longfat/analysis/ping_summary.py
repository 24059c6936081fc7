"""Summary of the samples of `longfat ping` by size."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from longfat.analysis.round_trips import Line, Times, line, share
from longfat.results.run import Interval, known

MOST_UNSTAMPED = 0.1
"""If more replies lack kernel timestamps, round trips use the application's clock."""


@dataclass(frozen=True)
class OfSize:
    """The requests of one size."""

    size: int
    sent: int
    answered: int
    late: int
    failed: int
    duplicates: int
    closed: int
    """Replies that report a closed port."""
    loss: Interval
    rtt: Times
    """Round trips on the clock of the summary."""
    application: Times
    kernel: Times
    outbound: float
    """Median time of answered requests from the application's call to the kernel's timestamp, in s;
    NaN without timestamps."""
    inbound: float
    """Median time from the kernel's timestamp of the reply to the application, in s."""

    def to_json(self) -> dict[str, Any]:
        """Returns the figures as JSON values."""
        counts = {key: getattr(self, key) for key in _COUNTS}
        return {
            "size": self.size,
            **counts,
            "loss": self.loss.to_json(),
            "rtt_s": self.rtt.to_json(),
            "application_s": self.application.to_json(),
            "kernel_s": self.kernel.to_json(),
            "outbound_s": known(self.outbound),
            "inbound_s": known(self.inbound),
        }


_COUNTS = ("sent", "answered", "late", "failed", "duplicates", "closed")


@dataclass(frozen=True)
class Summary:
    """The summary of a measurement."""

    clock: str
    """`kernel` if round trips use the kernel's timestamps, else `application`."""
    sizes: tuple[OfSize, ...]
    line: Line | None
    errors: dict[str, int]
    """The number of failed requests by reason."""

    @property
    def answered(self) -> int:
        """The number of requests with a reply in time."""
        return sum(one.answered for one in self.sizes)

    @property
    def closed(self) -> int:
        """The number of replies that report a closed port."""
        return sum(one.closed for one in self.sizes)


def rows(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The samples of a native report as dictionaries."""
    return [dict(zip(report["columns"], sample, strict=True)) for sample in report["samples"]]


def summarise(samples: Sequence[Mapping[str, Any]]) -> Summary:
    """Summarises the samples of a measurement."""
    good = [sample for sample in samples if sample["state"] == "answered"]
    stamped = sum(sample["kernel_s"] is not None for sample in good)
    clock = "kernel" if good and stamped >= len(good) * (1 - MOST_UNSTAMPED) else "application"
    sizes = sorted({sample["size"] for sample in samples})
    found = tuple(_of_size(size, [s for s in samples if s["size"] == size], clock) for size in sizes)
    return Summary(
        clock,
        found,
        line({one.size: one.rtt.minimum for one in found}),
        dict(Counter(sample["error"] for sample in samples if sample["error"] is not None)),
    )


def _of_size(size: int, samples: Sequence[Mapping[str, Any]], clock: str) -> OfSize:
    good = [sample for sample in samples if sample["state"] == "answered"]
    states = Counter(sample["state"] for sample in samples)

    def values(key: str) -> list[float]:
        return [float(sample[key]) for sample in good if sample[key] is not None]

    beyond = len(samples) - len(good)
    application, kernel = (Times.of(values(key), beyond) for key in ("application_s", "kernel_s"))
    return OfSize(
        size,
        sent=len(samples),
        answered=len(good),
        late=states["late"],
        failed=states["failed"],
        duplicates=sum(sample["duplicates"] for sample in samples),
        closed=sum(sample["answer"] == "closed" for sample in good),
        loss=share(beyond, len(samples)),
        rtt=kernel if clock == "kernel" else application,
        application=application,
        kernel=kernel,
        outbound=_median(values("outbound_s")),
        inbound=_median(values("inbound_s")),
    )


def _median(values: Sequence[float]) -> float:
    return float(np.median(values)) if values else math.nan
