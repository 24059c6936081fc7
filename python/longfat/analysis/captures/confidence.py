"""Confidence in a limit: how often it was right in captures whose cause is known.

`benchmarks/explain_accuracy.py` makes these captures, each for one cause, in the simulator and between Linux
kernels. The figures count those in which a limit had the largest share, and those of them made for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from longfat.analysis.captures import explained

if TYPE_CHECKING:
    from longfat.analysis.captures.explained import Direction

HIGH, MEDIUM, LOW, UNMEASURED = "high", "medium", "low", "not measured"
_LEAST_HIGH, _LEAST_MEDIUM = 0.95, 0.8
_ENOUGH = 10
"""Captures with a limit below which it counts as not measured."""

AT_SENDER: dict[str, tuple[int, int]] = {
    explained.BANDWIDTH: (26, 26),
    explained.WINDOW: (26, 26),
    explained.LOSS: (26, 27),
    explained.LATENCY: (26, 26),
    explained.APPLICATION: (26, 26),
    explained.BUFFERBLOAT: (26, 26),
    explained.BURSTS: (25, 25),
    explained.POLICER: (24, 24),
    explained.PACING: (28, 28),
    explained.DELAYED_ACKS: (4, 4),
    explained.STALL: (2, 2),
}
AT_RECEIVER: dict[str, tuple[int, int]] = {
    explained.BANDWIDTH: (16, 18),
    explained.WINDOW: (16, 16),
    explained.LOSS: (16, 16),
    explained.LATENCY: (16, 16),
    explained.APPLICATION: (13, 13),
    explained.BUFFERBLOAT: (16, 16),
    explained.SENDER: (0, 1),
}
"""Captures that a limit named correctly, and all that it named, by the place of the capture."""


@dataclass(frozen=True)
class Confidence:
    """How often a limit is right: `right` of `named` captures. Both are 0 if it was not measured."""

    right: int
    named: int

    @property
    def word(self) -> str:
        """Confidence: high (95 % or more), medium (80 %), low, or not measured (fewer than 10 captures)."""
        if self.named < _ENOUGH:
            return UNMEASURED
        share = self.right / self.named
        return HIGH if share >= _LEAST_HIGH else MEDIUM if share >= _LEAST_MEDIUM else LOW


def confidence(one: Direction, limit: str) -> Confidence:
    """Returns the confidence in a limit of a direction, for the place of its capture."""
    known = {"sender": AT_SENDER, "receiver": AT_RECEIVER}.get(one.path["position"], {})
    return Confidence(*known.get(limit, (0, 0)))


def of_cause(one: Direction, cause: str) -> Confidence:
    """Returns the confidence in the limit that a cause belongs to."""
    return confidence(one, explained.GROUPS[cause])
