"""A share of a run's trials, for processes without a common scheduler."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

_Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass(frozen=True)
class Shard:
    """Shard `number` (from 1) of `count`."""

    number: int
    count: int

    @classmethod
    def of(cls, text: str | None, name: str) -> Shard | None:
        """Returns the shard in a text, None for None. Raises ValueError, with the name of the option.

        >>> Shard.of("3/100", "--shard")
        Shard(number=3, count=100)
        """
        if text is None:
            return None
        found = re.fullmatch(r"(\d+)/(\d+)", text.strip())
        if found is None or not 1 <= int(found[1]) <= int(found[2]):
            raise ValueError(f'{name}: "{text}" is not a shard: number/count, from 1/100 to 100/100')
        return cls(int(found[1]), int(found[2]))

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def share(self, numbers: _Numbers, before: int) -> _Numbers:
        """Returns this shard's part of a cell's trials; `before` trials are in the cells before it.

        Shards take the trials in turns, so each has about as many of every cell.

        >>> Shard(2, 3).share(np.arange(5), 0).tolist(), Shard(2, 3).share(np.arange(5), 5).tolist()
        ([1, 4], [2])
        """
        chosen: _Numbers = numbers[(numbers + before) % self.count == self.number - 1]
        return chosen
