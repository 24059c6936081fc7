"""The contents of a part of a specification over a sweep, and the number of that at each point."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence


class Grid:
    """The contents that some keys of a sweep give a part, numbered in the order of `itertools.product`.

    >>> grid = Grid([2, 5, 3], [0, 2])
    >>> len(grid), grid.number([1, 4, 2]), grid.choices(5)
    (6, 5, [1, 0, 2])
    """

    def __init__(self, sizes: Sequence[int], axes: Iterable[int]) -> None:
        """Takes the number of values of each key of the sweep, and the keys that change the part."""
        self.axes = tuple(sorted(axes))
        self._sizes = sizes
        self._weights = [0] * len(sizes)
        weight = 1
        for axis in reversed(self.axes):
            self._weights[axis] = weight
            weight *= sizes[axis]
        self._count = weight

    def __len__(self) -> int:
        return self._count

    def number(self, choices: Sequence[int]) -> int:
        """Returns the number of the content at a point, given the number of the value of each key."""
        return sum(choices[axis] * self._weights[axis] for axis in self.axes)

    def choices(self, number: int) -> list[int]:
        """Returns the number of the value of each key for a content, 0 for keys that do not change it."""
        found = [0] * len(self._sizes)
        for axis in self.axes:
            found[axis], number = divmod(number, self._weights[axis])
        return found

    def weight(self, axis: int) -> int:
        """Returns by how much the number of a content grows with that of the value of a key."""
        return self._weights[axis]

    def numbers(self) -> Iterator[int]:
        """Yields the number of the content at each point; the last key changes first.

        >>> list(Grid([2, 3], [1]).numbers())
        [0, 1, 2, 0, 1, 2]
        """
        if not self.axes:
            return itertools.repeat(0, math.prod(self._sizes))
        if len(self.axes) == len(self._sizes):
            return iter(range(self._count))
        terms = (
            [choice * weight for choice in range(size)]
            for size, weight in zip(self._sizes, self._weights, strict=True)
        )
        return map(sum, itertools.product(*terms))
