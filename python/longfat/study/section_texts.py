"""Sections of specifications as canonical JSON, composed of the texts of swept values where possible."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Protocol

from longfat.study.combinations import KEPT, Points
from longfat.study.keys import key_of, place
from longfat.study.vocabulary import canonical

_HOLE = 10**40
"""Numbers from here on stand for swept values in a section; no file name or class is a number."""
Numbered = dict[str, tuple[list[int], dict[int, str]]]
"""By section: the number of its content at each of some points, and the texts of these contents."""


class Change(Protocol):
    """Replaces parts of a value, such as names of files by their hashes; `key` is the value's own key."""

    def __call__(self, value: Any, key: str = "", /) -> Any:
        """Returns the changed value."""


def _unchanged(value: Any, _key: str = "") -> Any:
    return value


class SectionTexts:
    """The texts of the sections of all points of one protocol."""

    def __init__(self, points: Points, changed: Change = _unchanged) -> None:
        """Takes a function that changes each value first."""
        self._points, self._changed = points, changed
        self._of = {name: self._composed(name) or self._whole(name) for name in points.grids}

    def of(self, name: str, number: int) -> str:
        """Returns `canonical` of a changed section, by its number."""
        return self._of[name](number)

    def chunks(self) -> Iterator[Numbered]:
        """Yields the sections of up to `KEPT` points at a time, in order."""
        columns = {name: grid.numbers() for name, grid in self._points.grids.items()}
        texts: dict[str, dict[int, str]] = {name: {} for name in columns}
        for _ in range(0, len(self._points), KEPT):
            found: Numbered = {}
            for name, column in columns.items():
                numbers, before = list(islice(column, KEPT)), texts[name]
                make = self._of[name]
                texts[name] = {n: before[n] if n in before else make(n) for n in dict.fromkeys(numbers)}
                found[name] = numbers, texts[name]
            yield found

    def _whole(self, name: str) -> Callable[[int], str]:
        """Returns a function that makes a section and converts it."""
        return lambda number: canonical(self._changed(self._points.section(name, number)))

    def _composed(self, name: str) -> Callable[[int], str] | None:
        """Returns a function that joins the texts of a section's fixed parts and of its swept values.

        None if values of keys depend on each other: expressions, tables with swept keys inside, lists whose
        entries have swept names.
        """
        placed = self._points.placed(name)
        keys = [key for _, key, _ in placed]
        is_free = not any(f"{one}.".startswith(f"{other}.") for one in keys for other in keys if one != other)
        names_entries = any(key == name or key.endswith(".name") for key in keys)
        if not placed or not is_free or names_entries or len(set(keys)) < len(keys):
            return None
        whole = self._points.unswept(name)
        table = {} if whole is None else {name: copy.deepcopy(whole)}
        try:
            for hole, key in enumerate(keys):
                place(table, key, _HOLE + hole)
        except ValueError:
            return None
        left = canonical(self._changed(table[name]))
        if any(left.count(str(_HOLE + hole)) != 1 for hole in range(len(keys))):
            return None
        grid, parts = self._points.grids[name], []
        holes = sorted(range(len(keys)), key=lambda hole: left.index(str(_HOLE + hole)))
        for hole in holes:
            axis, key, values = placed[hole]
            before, _, left = left.partition(str(_HOLE + hole))
            own = key_of(table, key)
            texts = [before + canonical(self._changed(value, own)) for value in values]
            parts.append((grid.weight(axis), len(values), texts))
        if len(parts) == 1:
            ((_, _, texts),) = parts
            done = [text + left for text in texts]
            return done.__getitem__
        end = left

        def joined(number: int) -> str:
            return "".join([texts[number // weight % size] for weight, size, texts in parts]) + end

        return joined


def columns_of(chunk: Numbered, wanted: list[bool] | None = None) -> list[tuple[str, list[str], bytes]]:
    """Returns the sections of points as the native part reads them; `wanted` selects points."""
    from array import array
    from itertools import compress

    found = []
    for name, (numbers, texts) in chunk.items():
        chosen = numbers if wanted is None else list(compress(numbers, wanted))
        index = {number: at for at, number in enumerate(texts)}
        found.append((name, list(texts.values()), array("I", map(index.__getitem__, chosen)).tobytes()))
    return found
