"""Places of labels in a drawing: rotated boxes that do not overlap."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Box:
    """A rectangle around `x`, `y`, rotated by `angle` (rad); lengths in px."""

    x: float
    y: float
    width: float
    height: float
    angle: float = 0.0

    def overlaps(self, other: Box) -> bool:
        """Returns whether two boxes share a point.

        >>> Box(0, 0, 40, 10).overlaps(Box(30, 0, 40, 10)), Box(0, 0, 40, 10).overlaps(Box(30, 12, 40, 10))
        (True, False)
        """
        # Two convex shapes are apart if and only if one of their edges' normals separates them.
        return not any(self._apart(other, angle) for one in (self, other) for angle in one._axes)

    @property
    def _axes(self) -> tuple[float, float]:
        return (self.angle, self.angle + math.pi / 2)

    def _apart(self, other: Box, axis: float) -> bool:
        distance = (other.x - self.x) * math.cos(axis) + (other.y - self.y) * math.sin(axis)
        return abs(distance) > self._reach(axis) + other._reach(axis)

    def _reach(self, axis: float) -> float:
        """Half of the box's extent along an axis."""
        turn = self.angle - axis
        return (abs(math.cos(turn)) * self.width + abs(math.sin(turn)) * self.height) / 2


@dataclass
class LabelPlaces:
    """The boxes taken so far."""

    taken: list[Box] = field(default_factory=list)

    def take(self, boxes: Iterable[Box]) -> int | None:
        """Takes the first free box and returns its number; None if no box is free.

        >>> places = LabelPlaces()
        >>> [places.take([Box(0, 0, 40, 10), Box(50, 0, 40, 10)]) for _ in range(3)]
        [0, 1, None]
        """
        for number, box in enumerate(boxes):
            if not any(box.overlaps(one) for one in self.taken):
                self.taken.append(box)
                return number
        return None
