"""Summary of the samples of `longfat transact` by protocol and size."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from longfat.analysis.round_trips import quantile
from longfat.results.run import Interval, known


@dataclass(frozen=True)
class Transactions:
    """The transactions of one protocol and size. Times are medians, in seconds.

    A failed transaction counts as slower than all completed ones.
    """

    protocol: str
    size: int
    count: int
    failed: int
    application: Interval
    wire: Interval
    stack: Interval
    """The difference of application and wire, per completed transaction."""
    packets: float
    """Median number of packets in both directions; NaN without a capture."""
    packets_usual: bool
    """Whether every transaction has the same number of packets."""
    bytes_on_wire: float
    syn_data: int
    """Number of transactions whose request is acknowledged together with the SYN."""
    retransmissions: int

    def to_json(self) -> dict[str, Any]:
        """Returns the figures as JSON values."""
        return {
            "protocol": self.protocol,
            "size": self.size,
            "count": self.count,
            "failed": self.failed,
            "application_s": self.application.to_json(),
            "wire_s": self.wire.to_json(),
            "stack_s": self.stack.to_json(),
            "packets": known(self.packets),
            "packets_usual": self.packets_usual,
            "wire_bytes": known(self.bytes_on_wire),
            "syn_data": self.syn_data,
            "retransmissions": self.retransmissions,
        }


@dataclass(frozen=True)
class Summary:
    """The summary of a measurement."""

    groups: tuple[Transactions, ...]
    errors: dict[str, int]

    @property
    def done(self) -> int:
        """The number of completed transactions."""
        return sum(one.count - one.failed for one in self.groups)


def summarise(samples: Sequence[Mapping[str, Any]], protocols: Sequence[str]) -> Summary:
    """Summarises samples in the order of protocols and sizes."""
    groups: dict[tuple[int, int], list[Mapping[str, Any]]] = {}
    for sample in samples:
        groups.setdefault((protocols.index(sample["protocol"]), sample["size"]), []).append(sample)
    found = tuple(_group(protocols[place], size, group) for (place, size), group in sorted(groups.items()))
    return Summary(found, dict(Counter(sample["error"] for sample in samples if sample["error"] is not None)))


def _group(protocol: str, size: int, samples: Sequence[Mapping[str, Any]]) -> Transactions:
    good = [sample for sample in samples if sample["error"] is None]
    seen = [sample for sample in good if sample["wire_s"] is not None]
    packets = [sample["packets"] for sample in seen]
    failed = len(samples) - len(good)
    return Transactions(
        protocol,
        size,
        count=len(samples),
        failed=failed,
        application=quantile([sample["application_s"] for sample in good], 0.5, failed),
        wire=quantile([sample["wire_s"] for sample in seen], 0.5, failed),
        stack=quantile([sample["application_s"] - sample["wire_s"] for sample in seen], 0.5),
        packets=_median(packets),
        packets_usual=len(set(packets)) <= 1,
        bytes_on_wire=_median([sample["wire_bytes"] for sample in seen]),
        syn_data=sum(sample["syn_data"] for sample in good),
        retransmissions=sum(sample["retransmissions"] for sample in good),
    )


def _median(values: Sequence[float]) -> float:
    return float(np.median(values)) if values else math.nan
