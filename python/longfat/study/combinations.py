"""All combinations of swept values, and their cells, which are made when they are read.

A study can have a million cells. So cells of one study share the sections of their specifications that are
equal, such as its workload, and those of large studies are not kept. Nothing may change a specification.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from longfat.study.cell import Cell
from longfat.study.expressions import settings
from longfat.study.expressions.dependencies import Dependencies, dependencies
from longfat.study.grid import Grid
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
    """The points of a sweep of one protocol, in the order of `itertools.product`.

    `grids` has the sections of their specifications by name, with the swept keys that change each.
    Expressions are evaluated once for all points at which they have the same values.
    """

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
        self._base = {**base, "links": links} if links else base
        self._swept, self._protocol, self.computes = swept, protocol, computes
        sizes = [len(one.values) for one in swept]
        changed = [one.sections for one in swept]
        names = dict.fromkeys([*base, *(name for some in changed for name in sorted(some)), *self._base])
        own = {name: {n for n, some in enumerate(changed) if name in some} for name in names}
        found = Dependencies(frozenset(), frozenset())
        if computes:
            found = dependencies(base, [[placed for _, placed in one.values] for one in swept], protocol)
        self._computed = found.sections
        self._all = Grid(sizes, range(len(sizes)))
        self._evaluated = Grid(sizes, found.axes)
        self._written = {name: Grid(sizes, axes) for name, axes in own.items()}
        self.grids = {
            name: Grid(sizes, axes | found.axes) if name in found.sections else self._written[name]
            for name, axes in own.items()
        }
        self._sections: dict[tuple[str, int], Any] = {}
        self._as_written: dict[tuple[str, int], Any] = {}
        self._independent: settings.Independent = {}
        self._expressions = OfSections(lambda name, section: settings.expressions(section, name))
        self._values: dict[int, settings.Values] = {}

    def __len__(self) -> int:
        return len(self._all)

    def at(self, number: int) -> Point:
        """Returns one point; raises SettingError for an expression without a value."""
        choices = self._all.choices(number)
        params = {one.key: one.values[n][0] for one, n in zip(self._swept, choices, strict=True)}
        spec = {name: self.section(name, grid.number(choices)) for name, grid in self.grids.items()}
        computed: Mapping[str, tuple[str, str | int | float]] = {}
        if self.computes:
            computed = settings.by_key(self._values_at(self._evaluated.number(choices)))
        return Point(params, spec, computed)

    def first_with(self, name: str, number: int) -> int:
        """Returns the first point at which a section has the content of this number."""
        return self._all.number(self.grids[name].choices(number))

    def section(self, name: str, number: int) -> Any:
        """Returns the content of a section, by its number, with values in place of expressions."""
        if name not in self._computed:
            return self._section(name, number)
        return _kept(self._sections, (name, number), self._with_values)

    def unswept(self, name: str) -> Any:
        """Returns a section without swept values; None without any."""
        return self._base.get(name)

    def placed(self, name: str) -> list[tuple[int, str, list[Any]]]:
        """Returns the swept keys of a section: the number of each in the sweep, the dotted key, its values.

        A section with expressions has none, since its values depend on each other.
        """
        if name in self._computed:
            return []
        return [
            (axis, key, [placed[at][1] for _, placed in self._swept[axis].values])
            for axis in self.grids[name].axes
            for at, (key, _) in enumerate(self._swept[axis].values[0][1])
            if _section(key) == name
        ]

    def evaluate(self) -> None:
        """Evaluates all expressions; raises SettingError for one without a value."""
        if self.computes:
            for number in range(len(self._evaluated)):
                self._values_at(number)

    def _values_at(self, number: int) -> settings.Values:
        # The values alone are small, so all are kept.
        if number not in self._values:
            choices = self._evaluated.choices(number)
            spec = {name: self._section(name, grid.number(choices)) for name, grid in self._written.items()}
            places = [one for name, section in spec.items() for one in self._expressions(name, section)]
            self._values[number] = settings.values(spec, self._protocol, places, self._independent)
        return self._values[number]

    def _with_values(self, name: str, number: int) -> Any:
        choices = self.grids[name].choices(number)
        found = self._values_at(self._evaluated.number(choices))
        own = tuple(one for one in found if one[0][0] == name)
        written = self._section(name, self._written[name].number(choices))
        return settings.with_values({name: written}, own)[name]

    def _section(self, name: str, number: int) -> Any:
        """Returns the content of a section as written."""
        return _kept(self._as_written, (name, number), self._made)

    def _made(self, name: str, number: int) -> Any:
        grid = self._written[name]
        if not grid.axes:
            return self._base[name]
        choices = grid.choices(number)
        placed = [
            setting
            for axis in grid.axes
            for setting in self._swept[axis].values[choices[axis]][1]
            if _section(setting[0]) == name
        ]
        whole = {name: copy.deepcopy(self._base[name])} if name in self._base else {}
        # Tables first, then the keys inside them.
        for key, value in sorted(placed, key=lambda setting: setting[0].count(".")):
            place(whole, key, copy.deepcopy(value) if isinstance(value, dict | list) else value)
        return whole[name]


def _kept(known: dict[tuple[str, int], Any], key: tuple[str, int], make: Callable[[str, int], Any]) -> Any:
    """Returns a content that is made once, as long as there are few."""
    if key not in known:
        if len(known) >= KEPT:
            known.clear()
        known[key] = make(*key)
    return known[key]


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

    def world(self, number: int) -> str:
        """Returns the world of a cell."""
        return self._worlds[number // self._in_world]

    def blocks(self) -> Iterator[tuple[str, Points, list[tuple[range, range]]]]:
        """Yields the points of each protocol in each world, with the numbers of points and of their cells."""
        for number, world in enumerate(self._worlds):
            for (name, _), points in self._points.items():
                start, found = number * self._in_world, []
                for first, end, names in self._rows:
                    columns = [one for one, _ in names]
                    if name in columns:
                        cells = range(
                            start + columns.index(name), start + (end - first) * len(names), len(names)
                        )
                        found.append((range(first, end), cells))
                    start += (end - first) * len(names)
                yield world, points, found

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
