"""A share of a run's trials, for processes without a common scheduler."""

from __future__ import annotations

import re
from dataclasses import dataclass

from longfat.system.parameters import ParameterError


@dataclass(frozen=True)
class Shard:
    """Shard `number` (from 1) of `count`."""

    number: int
    count: int

    @classmethod
    def of(cls, text: str | None) -> Shard | None:
        """Returns the shard in a text, None for None. Raises ParameterError.

        >>> Shard.of("3/100")
        Shard(number=3, count=100)
        """
        if text is None:
            return None
        found = re.fullmatch(r"(\d+)/(\d+)", text.strip())
        if found is None or not 1 <= int(found[1]) <= int(found[2]):
            raise ParameterError(
                "shard", f'"{text}" is not a shard: write it like "1/2" for the first of two'
            )
        return cls(int(found[1]), int(found[2]))

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    @property
    def tag(self) -> str:
        """The shard in names of files, e.g. "3of100"."""
        return f"{self.number}of{self.count}"

    def excludes(self, tag: str) -> bool:
        """Returns whether a file with this tag, if any, has only trials of other shards.

        >>> [Shard(3, 100).excludes(tag) for tag in ("4of100", "3of100", "4of8", "")]
        [True, False, False, False]
        """
        return tag.endswith(f"of{self.count}") and tag != self.tag

    def share(self, count: int, before: int) -> range:
        """Returns this shard's part of a cell's `count` trials; `before` trials are in the cells before it.

        Shards take the trials in turns, so each has about as many of every cell.

        >>> list(Shard(2, 3).share(5, 0)), list(Shard(2, 3).share(5, 5))
        ([1, 4], [2])
        """
        return range((self.number - 1 - before) % self.count, count, self.count)
