"""The trials that have a record, one byte each."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import polars as pl

_Flags = np.ndarray[tuple[int], np.dtype[np.bool_]]


class Present:
    """The numbers of the trials with a record, by the key of their cell."""

    def __init__(self, frames: Iterable[pl.DataFrame] = ()) -> None:
        self._of_cell: dict[str, _Flags] = {}
        for frame in frames:
            for (key,), rows in frame.select("cell_key", "trial").group_by("cell_key"):
                self._add(str(key), rows["trial"].to_numpy())

    def _add(self, key: str, numbers: np.ndarray[tuple[int], np.dtype[np.int64]]) -> None:
        flags = self._of_cell.get(key, np.zeros(0, bool))
        if len(flags) <= numbers.max():
            # Twice the size, so that many small parts cost no more than one.
            flags = np.concatenate([flags, np.zeros(2 * int(numbers.max()) + 2 - len(flags), bool)])
            self._of_cell[key] = flags
        flags[numbers] = True

    def __len__(self) -> int:
        return len(self._of_cell)

    def __contains__(self, key: str) -> bool:
        return key in self._of_cell

    def missing(self, key: str, share: range) -> range | np.ndarray[tuple[int], np.dtype[np.uint32]]:
        """Returns the numbers of a cell's trials in `share` without a record."""
        flags = self._of_cell.get(key, np.zeros(0, bool))[share.start : share.stop : share.step]
        if not flags.any():
            return share
        places = np.concatenate([np.flatnonzero(~flags), np.arange(len(flags), len(share))])
        numbers = share.start + share.step * places
        return numbers.astype(np.uint32)
