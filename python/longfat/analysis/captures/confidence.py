"""Confidence in a limit: how often it was right in captures whose cause is known.

`benchmarks/explain_accuracy.py` makes these captures, each for one cause: in the simulator 30 of each cause
(seed 4 at the sender, seed 9 at the receiver), and at the sender 2 to 16 of each between Linux kernels, with
seeds that did not serve to choose the rules. The figures count the captures in which a limit had the largest
share, and those of them made for it. Captures for causes that a place cannot show, such as policers at the
receiver, count as well. Captures for changes of the path do not, since another limit has the largest share in
them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from longfat.analysis.binomial import inverse_beta
from longfat.analysis.captures import explained

if TYPE_CHECKING:
    from longfat.analysis.captures.explained import Direction

HIGH, MEDIUM, LOW, UNMEASURED = "high", "medium", "low", "not measured"
_LEAST_HIGH, _LEAST_MEDIUM = 0.9, 0.75
_ENOUGH = 10
"""Captures with a limit below which it counts as not measured."""
_TAIL = 0.05
_LEAST_SHARE = 0.1
"""Share of the time below which the evidence of a limit is weak, next to another one."""

CAPTURES: dict[str, dict[str, tuple[int, int]]] = {
    "sender": {
        explained.BANDWIDTH: (42, 42),
        explained.WINDOW: (38, 38),
        explained.LOSS: (57, 58),
        explained.LATENCY: (38, 38),
        explained.APPLICATION: (46, 46),
        explained.BUFFERBLOAT: (42, 42),
        explained.BURSTS: (42, 43),
        explained.POLICER: (28, 29),
        explained.PACING: (32, 32),
        explained.DELAYED_ACKS: (2, 2),
        explained.STALL: (16, 16),
    },
    "receiver": {
        explained.BANDWIDTH: (30, 30),
        explained.WINDOW: (30, 30),
        explained.LOSS: (30, 90),
        explained.LATENCY: (30, 30),
        explained.APPLICATION: (30, 30),
        explained.BUFFERBLOAT: (30, 30),
        explained.SENDER: (0, 30),
    },
}
"""Captures that a limit named correctly, and all that it named, by the place of the capture."""


@dataclass(frozen=True)
class Confidence:
    """How often a limit is right: `right` of `named` captures. Both are 0 if it was not measured."""

    right: int
    named: int

    @property
    def least(self) -> float:
        """Lower bound of the share of right captures, with 95 % confidence (one-sided, Clopper-Pearson).

        >>> round(Confidence(32, 32).least, 3), round(Confidence(19, 20).least, 3), Confidence(0, 9).least
        (0.911, 0.784, 0.0)
        """
        return inverse_beta(self.right, self.named - self.right + 1, _TAIL) if self.right else 0.0

    @property
    def word(self) -> str:
        """Confidence: high (`least` is 90 % or more), medium (75 %), low, or not measured (few captures)."""
        if self.named < _ENOUGH:
            return UNMEASURED
        return HIGH if self.least >= _LEAST_HIGH else MEDIUM if self.least >= _LEAST_MEDIUM else LOW


def confidence(one: Direction, limit: str) -> Confidence:
    """Returns the confidence in a limit of a direction, for the place of its capture."""
    return Confidence(*CAPTURES.get(one.path["position"], {}).get(limit, (0, 0)))


def word_of(one: Direction, limit: str) -> str:
    """Returns the word for the confidence in a limit of a direction.

    The benchmark measures limits with the largest share. Others have medium confidence at most, and low
    confidence below a tenth of the time.
    """
    word = confidence(one, limit).word
    if limit == one.limit or word == UNMEASURED:
        return word
    return LOW if one.limits[limit] < _LEAST_SHARE else min(word, MEDIUM, key=(LOW, MEDIUM, HIGH).index)


def of_cause(one: Direction, cause: str) -> str:
    """Returns the word for the confidence in a cause: that in its limit.

    A handshake is seen in its packets. A cause with less than a tenth of the time has low confidence,
    whatever other causes of its limit have.
    """
    limit = explained.GROUPS[cause]
    if cause == "handshake":
        return confidence(one, limit).word
    word = word_of(one, limit)
    return LOW if word != UNMEASURED and one.times[cause] < _LEAST_SHARE * one.time else word
