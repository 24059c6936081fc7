"""All combinations of swept values, and their cells, which are made when they are read.

A study can have a million cells. So cells of one study share the sections of their specifications that are
equal, such as its workload, and those of large studies are not kept. Nothing may change a specification.
"""

from __future__ import annotations

import copy
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from longfat.study.cell import Cell
from longfat.study.expressions import settings
from longfat.study.keys import place
from longfat.study.vocabulary import canonical
from longfat.system.lazy_sequence import LazySequence

KEPT = 10_000
"""The largest number of cells that are kept, and of sections that cells share."""
Setting = tuple[str, Any]
"""A dotted key of a specification and its value."""
T = TypeVar("T")


@dataclass(frozen=True)
class Swept:
    """The values of one key of a sweep: as shown, and the settings that each makes."""

    key: str
    values: Sequence[tuple[Any, Sequence[Setting]]]

    @property
    def sections(self) -> set[str]:
        """The sections of the specification that the key changes."""
        return {_section(key) for _, placed in self.values for key, _ in placed}


@dataclass(frozen=True)
class Point:
    """Swept values by key, the whole specification, and the values of its expressions by dotted key."""

    params: dict[str, Any]
    spec: dict[str, Any]
    computed: Mapping[str, tuple[str, str | int | float]]


class Points(LazySequence[Point]):
    """The points of a sweep of one protocol, in the order of `itertools.product`."""

    def __init__(
        self,
        base: Mapping[str, Any],
        swept: Sequence[Swept],
        protocol: str = "",
        links: Sequence[str] = (),
        *,
        computes: bool = False,
    ) -> None:
        """Takes the specification without swept values; `computes` is whether any value is an expression."""
        self._base, self._swept, self._protocol = base, swept, protocol
        self._sizes = [len(one.values) for one in swept]
        changed = [one.sections for one in swept]
        names = dict.fromkeys([*base, *(name for some in changed for name in sorted(some))])
        axes = {name: [n for n, some in enumerate(changed) if name in some] for name in names}
        self._axes = {name: own for name, own in axes.items() if own}
        self._names = list(names)
        self._unswept = {name: base.get(name) for name in names} | ({"links": links} if links else {})
        self._count = math.prod(self._sizes)
        self._sections: dict[tuple[Any, ...], Any] = {}
        self.computes = computes
        self._independent: settings.Independent = {}
        self._expressions = OfSections(lambda name, section: settings.expressions(section, name))
        self._values: dict[int, settings.Values] = {}

    def __len__(self) -> int:
        return self._count

    def at(self, number: int) -> Point:
        """Returns one point; raises SettingError for an expression without a value."""
        choices = self._choices(number)
        params = {one.key: one.values[n][0] for one, n in zip(self._swept, choices, strict=True)}
        spec = dict(self._unswept)
        for name, axes in self._axes.items():
            spec[name] = self._section(name, axes, choices)
        computed: Mapping[str, tuple[str, str | int | float]] = {}
        if self.computes:
            # The values alone are small, so all are kept.
            if number not in self._values:
                places = [one for name in self._names for one in self._expressions(name, spec[name])]
                self._values[number] = settings.values(spec, self._protocol, places, self._independent)
            spec = settings.with_values(spec, self._values[number])
            computed = settings.by_key(self._values[number])
        return Point(params, spec, computed)

    def _choices(self, number: int) -> list[int]:
        """Returns the number of the value of each swept key at a point; the last key changes first."""
        found = []
        for size in reversed(self._sizes):
            number, choice = divmod(number, size)
            found.append(choice)
        return found[::-1]

    def _section(self, name: str, axes: Sequence[int], choices: Sequence[int]) -> Any:
        chosen = (name, *(choices[axis] for axis in axes))
        if chosen not in self._sections:
            if len(self._sections) >= KEPT:
                self._sections.clear()
            self._sections[chosen] = self._made(name, axes, choices)
        return self._sections[chosen]

    def _made(self, name: str, axes: Sequence[int], choices: Sequence[int]) -> Any:
        placed = [
            setting
            for axis in axes
            for setting in self._swept[axis].values[choices[axis]][1]
            if _section(setting[0]) == name
        ]
        whole = {name: copy.deepcopy(self._base[name])} if name in self._base else {}
        # Tables first, then the keys inside them.
        for key, value in sorted(placed, key=lambda setting: setting[0].count(".")):
            place(whole, key, copy.deepcopy(value) if isinstance(value, dict | list) else value)
        return whole[name]


class Cells(LazySequence[Cell]):
    """The cells of a study, ordered by world, point and protocol.

    All protocols of one point follow each other, because readers compare them. Protocols with fewer points
    than others have no cells at the last ones. Only the cells of small studies are the same objects again.
    """

    def __init__(self, worlds: Sequence[str], points: Mapping[tuple[str, str], Points]) -> None:
        """Takes the points of each protocol, by its name and label."""
        self._worlds, self._points = worlds, points
        counts = [len(one) for one in points.values()]
        self._in_world = sum(counts)
        ends = sorted(set(counts))
        self._rows = [
            (start, end, [names for names, one in points.items() if len(one) >= end])
            for start, end in zip([0, *ends], ends, strict=False)
        ]
        self._keeps = len(self) <= KEPT
        self._kept: dict[int, Cell] = {}

    def __len__(self) -> int:
        return len(self._worlds) * self._in_world

    @property
    def computes(self) -> bool:
        """Whether a value of a specification can be an expression."""
        return any(points.computes for points in self._points.values())

    def at(self, number: int) -> Cell:
        """Returns one cell."""
        if not self._keeps:
            return self._made(number)
        if number not in self._kept:
            self._kept[number] = self._made(number)
        return self._kept[number]

    def __eq__(self, other: object) -> bool:
        """Whether both are the same cells in the same order."""
        if not isinstance(other, Cells):
            return NotImplemented
        return len(self) == len(other) and all(map(operator.eq, self, other))

    __hash__ = None  # type: ignore[assignment]

    def _made(self, number: int) -> Cell:
        world, left = divmod(number, self._in_world)
        for start, end, names in self._rows:
            size = (end - start) * len(names)
            if left < size:
                row, column = divmod(left, len(names))
                (name, label), point = names[column], self._points[names[column]][start + row]
                return Cell(self._worlds[world], name, point.params, point.spec, point.computed, label)
            left -= size
        raise IndexError(number)


class OfSections:
    """Values of sections of specifications, computed once for a section that cells share."""

    def __init__(self, compute: Callable[[str, Any], T]) -> None:
        """Takes a function of a section's name and content."""
        self._compute = compute
        self._known: dict[tuple[str, int], tuple[Any, Any]] = {}

    def __call__(self, name: str, section: Any) -> Any:
        """Returns the value of a section."""
        # The section is kept, so that no other one has its identity.
        known = self._known.get((name, id(section)))
        if known is None:
            if len(self._known) >= KEPT:
                self._known.clear()
            known = self._known[name, id(section)] = (section, self._compute(name, section))
        return known[1]


class SpecTexts:
    """Specifications as canonical JSON, composed of the texts of their sections."""

    def __init__(self, changed: Callable[[Any], Any] = lambda section: section) -> None:
        """Takes a function that changes each section first."""
        self._texts = OfSections(lambda _, section: canonical(changed(section)))

    def of(self, spec: Mapping[str, Any]) -> str:
        """Returns `canonical(spec)`, of the changed sections.

        >>> SpecTexts().of({"protocol": {"kind": "tcp"}, "path": {"loss": "1%"}, "seed": 7})
        '{"path":{"loss":"1%"},"protocol":{"kind":"tcp"},"seed":7}'
        """
        parts = [f'"{name}":{self._texts(name, spec[name])}' for name in sorted(spec)]
        return f"{{{','.join(parts)}}}"


def _section(key: str) -> str:
    return key.partition(".")[0]
