"""The samples of `longfat ping`, summed up by size."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from longfat.analysis.round_trips import Bounded, Line, Times, known, line, share

MOST_UNSTAMPED = 0.1
"""Where more of the answers have no stamps of the kernel, round trips are the application's."""


@dataclass(frozen=True)
class OfSize:
    """Requests of one size."""

    size: int
    sent: int
    answered: int
    late: int
    failed: int
    duplicates: int
    closed: int
    """Answers that said that the port is closed."""
    loss: Bounded
    rtt: Times
    """On the clock of the summary."""
    application: Times
    kernel: Times
    outbound: float
    """Median from the application's call to the kernel's stamp of the request, in s; NaN without stamps."""
    inbound: float
    """Median from the kernel's stamp of the answer to the application."""

    def to_json(self) -> dict[str, Any]:
        """For a document."""
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
    """All of a measurement."""

    clock: str
    """`kernel` where round trips are between its stamps, else `application`."""
    sizes: tuple[OfSize, ...]
    line: Line | None
    errors: dict[str, int]
    """Why requests failed, and how often."""

    @property
    def answered(self) -> int:
        """All requests that were answered in time."""
        return sum(one.answered for one in self.sizes)

    @property
    def closed(self) -> int:
        """All answers that said that a port is closed."""
        return sum(one.closed for one in self.sizes)


def rows(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The samples of a native report, each by the names of its columns."""
    return [dict(zip(report["columns"], sample, strict=True)) for sample in report["samples"]]


def summarise(samples: Sequence[Mapping[str, Any]]) -> Summary:
    """Sums up the samples of a measurement."""
    good = [sample for sample in samples if sample["state"] == "answered"]
    stamped = sum(sample["kernel_s"] is not None for sample in good)
    clock = "kernel" if good and stamped >= len(good) * (1 - MOST_UNSTAMPED) else "application"
    sizes = sorted({sample["size"] for sample in samples})
    told = tuple(_of_size(size, [s for s in samples if s["size"] == size], clock) for size in sizes)
    return Summary(
        clock,
        told,
        line({one.size: one.rtt.least for one in told}),
        dict(Counter(sample["error"] for sample in samples if sample["error"] is not None)),
    )


def _of_size(size: int, samples: Sequence[Mapping[str, Any]], clock: str) -> OfSize:
    good = [sample for sample in samples if sample["state"] == "answered"]
    states = Counter(sample["state"] for sample in samples)

    def values(key: str) -> list[float]:
        return [float(sample[key]) for sample in good if sample[key] is not None]

    application, kernel = Times.of(values("application_s")), Times.of(values("kernel_s"))
    return OfSize(
        size,
        sent=len(samples),
        answered=len(good),
        late=states["late"],
        failed=states["failed"],
        duplicates=sum(sample["duplicates"] for sample in samples),
        closed=sum(sample["answer"] == "closed" for sample in good),
        loss=share(len(samples) - len(good), len(samples)),
        rtt=kernel if clock == "kernel" else application,
        application=application,
        kernel=kernel,
        outbound=_median(values("outbound_s")),
        inbound=_median(values("inbound_s")),
    )


def _median(values: Sequence[float]) -> float:
    return float(np.median(values)) if values else math.nan
