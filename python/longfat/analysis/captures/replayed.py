"""A simulated transfer next to the captured one, and what changes would give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from longfat.results.run import Interval


CAPTURE, PEAK, FASTER = "capture", "peak", "faster"
"""The rate of the capture, the largest one of a round trip, and a multiple of it."""
_CLEAR = 0.5
"""Probability above which a controller is named as the sender's."""


@dataclass(frozen=True)
class Change:
    """A change of the path or of the hosts with the duration that it would give, in s, and the median RTT."""

    name: str
    duration: Interval
    rtt: float | None

    def document(self) -> dict[str, Any]:
        """Returns the figures as JSON values."""
        return {"name": self.name, "duration_s": self.duration.to_json(), "rtt_p50_s": self.rtt}


@dataclass(frozen=True)
class Replay:
    """A simulated transfer next to the captured one; durations in s.

    `controllers` maps the sender's possible controllers to their probabilities. `problem` is why there is no
    simulation or no change. `simulated` is that with the nearest controller, with the error of
    the model. `baseline` is the transfer without a change, in the same trials as the changes.
    `unknown` names the changes without a prediction because their durations depend on the rate of the
    bottleneck, which the capture does not show. `is_queue_assumed` states that no loss shows the size of the
    bottleneck's queue. `rate_from` is where the rate of the model comes from: others than `CAPTURE` are
    tried if the simulation does not take as long as the capture. `messages` is the number of messages of the
    sender, which the peer answers or pauses follow; 1 for a file.
    """

    captured: float
    model: Mapping[str, Any]
    controllers: Mapping[str, float]
    simulated: Interval | None = None
    changes: tuple[Change, ...] = ()
    baseline: Change | None = None
    unknown: tuple[str, ...] = ()
    problem: str | None = None
    is_queue_assumed: bool = False
    rate_from: str = CAPTURE
    messages: int = 1

    @property
    def controller(self) -> str | None:
        """The most probable controller."""
        return max(self.controllers, key=lambda name: self.controllers[name], default=None)

    @property
    def is_controller_clear(self) -> bool:
        """Whether one controller is more probable than all others together, and fits the capture."""
        return self.problem is None and max(self.controllers.values(), default=0.0) > _CLEAR

    def document(self) -> dict[str, Any]:
        """Returns all figures as JSON values."""
        return {
            "captured_s": self.captured,
            "simulated_s": None if self.simulated is None else self.simulated.to_json(),
            "controllers": dict(self.controllers),
            "problem": self.problem,
            "unknown": list(self.unknown),
            "model": dict(self.model),
            "is_queue_assumed": self.is_queue_assumed,
            "rate_from": self.rate_from,
            "messages": self.messages,
            "baseline": None if self.baseline is None else self.baseline.document(),
            "changes": [one.document() for one in self.changes],
        }
