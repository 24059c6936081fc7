"""The cells that a claim is about, in pairs to compare."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from longfat.study import sweep, units
from longfat.study.claims import AGREES, BESTS, THEORY, TRENDS, Claim
from longfat.study.conditions import Condition
from longfat.study.labels import label
from longfat.study.problems import Problem, show
from longfat.study.vocabulary import allowed, canonical

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from longfat.study.cell import Cell
    from longfat.study.specification import Study

_LISTED_VALUES = 12
"""The largest number of values of a swept key in a message."""


@dataclass(frozen=True)
class Pairing:
    """A cell of the claim's protocol, and the cell to compare with (None for claims about one cell)."""

    of: Cell
    against: Cell | None

    def value(self, key: str) -> Any:
        """Returns the value of a dotted key in the first cell, else in the second."""
        value = self.of.value(key)
        return self.against.value(key) if value is None and self.against is not None else value

    def meets(self, key: str, condition: Condition) -> bool:
        """Returns whether the first cell, or else the second, has a value of a dotted key that meets it."""
        cell = self.against if self.of.value(key) is None and self.against is not None else self.of
        return cell.meets(key, condition)

    def number(self, key: str) -> float | None:
        """Returns the value of a dotted key in its base unit; None if it is no quantity."""
        value = self.of.number(key)
        return self.against.number(key) if value is None and self.against is not None else value


@dataclass(frozen=True)
class Series:
    """The points of a trend in order of its key; `fixed` are the other swept keys."""

    fixed: dict[str, Any]
    points: list[Pairing]


def pairings(claim: Claim, world: str, cells: Sequence[Cell]) -> list[Pairing]:
    """Returns the cells of one world that a claim is about, each with its counterpart, in the study's order.

    Cells of two protocols are counterparts if all swept keys that both have are equal. The theory of a cell
    is a cell with the same specification.
    """
    own = [cell for cell in cells if cell.world == world and cell.protocol == claim.of]
    if claim.relation in BESTS:
        found = _rivalries(claim, own, [cell for cell in cells if cell.world == world])
    elif claim.against is None and not claim.against_where:
        found = [Pairing(cell, None) for cell in own]
    elif claim.against_theory:
        found = [Pairing(cell, replace(cell, protocol=THEORY)) for cell in own]
    elif claim.relation == AGREES:
        others = [cell for cell in cells if cell.world == claim.against and cell.protocol == claim.of]
        found = _counterparts(own, others, ())
    else:
        others = [cell for cell in cells if cell.world == world and cell.protocol == claim.other]
        elsewhere = {key: Condition.parse(text) for key, text in claim.against_where.items()}
        others = [one for one in others if all(one.meets(key, c) for key, c in elsewhere.items())]
        found = _counterparts(own, others, elsewhere)
    conditions = claim.conditions
    return [p for p in found if all(p.meets(key, c) for key, c in conditions.items())]


def _rivalries(claim: Claim, own: Sequence[Cell], cells: Sequence[Cell]) -> list[Pairing]:
    """Returns each cell of a claim's protocol with all rivals of its group."""
    if isinstance(claim.among, str):
        return _counterparts(own, own, [claim.among])
    named = claim.among
    rivals = [one for one in cells if one.protocol != claim.of and (not named or one.protocol in named)]
    return _counterparts(own, rivals, ())


def _counterparts(own: Sequence[Cell], others: Sequence[Cell], elsewhere: Collection[str]) -> list[Pairing]:
    """Returns each cell of a protocol with the others that have its values of the keys that both have.

    Keys of another point (`elsewhere`) can have any values. No cell is its own counterpart. Cells of one
    protocol have the same keys, so a table by values finds the counterparts in linear time.
    """
    shared: dict[tuple[str, ...], tuple[str, ...]] = {}
    places: dict[tuple[tuple[str, ...], str], list[int]] = {}
    for number, other in enumerate(others if own else ()):
        names = tuple(other.params)
        if names not in shared:
            shared[names] = _shared(own[0].params, names, elsewhere)
        places.setdefault(_values(other, shared[names]), []).append(number)
    found = []
    for cell in own:
        keys = dict.fromkeys(shared.values())
        numbers = sorted(number for one in keys for number in places.get(_values(cell, one), ()))
        found += [Pairing(cell, others[number]) for number in numbers if not _are_same(cell, others[number])]
    return found


def _shared(keys: Iterable[str], other: Collection[str], elsewhere: Collection[str]) -> tuple[str, ...]:
    return tuple(
        key for key in keys if key in other and not any(sweep.sets(key, named) for named in elsewhere)
    )


def _values(cell: Cell, keys: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    return keys, canonical([cell.params[key] for key in keys])


def _are_same(one: Cell, other: Cell) -> bool:
    return (one.world, one.protocol, one.params) == (other.world, other.protocol, other.params)


def series(claim: Claim, found: Iterable[Pairing]) -> list[Series]:
    """Returns the pairings as trends along `claim.along`, one per combination of the other swept keys."""
    along = claim.along or ""
    groups: dict[str, Series] = {}
    for pairing in found:
        params = {**(pairing.against.params if pairing.against else {}), **pairing.of.params}
        fixed = {key: value for key, value in params.items() if not sweep.sets(key, along)}
        groups.setdefault(canonical(fixed), Series(fixed, [])).points.append(pairing)
    for group in groups.values():
        group.points.sort(key=lambda pairing: pairing.number(along) or 0.0)
    return list(groups.values())


def claim_worlds(claim: Claim, worlds: Sequence[str]) -> list[str]:
    """Returns the worlds in which a claim has a verdict, without the world that it compares with."""
    other = claim.against if claim.relation == AGREES else None
    return [world for world in worlds if claim.world in (None, world) and world != other]


def check(study: Study) -> list[Problem]:
    """Returns problems of claims that no run can decide: no matching cell, or no trend.

    The study's names and its sweep must have passed their checks.
    """
    cells = sweep.cells(study)
    return [problem for claim in study.claims for problem in _check_claim(claim, study, cells)]


def _check_claim(claim: Claim, study: Study, cells: Sequence[Cell]) -> list[Problem]:
    where = f"claims[{claim.id}]"
    if claim.against == claim.of:
        return [
            Problem(f"{where}.against", f'"{claim.of}" is the protocol of the claim itself; name another')
        ]
    if claim.relation == AGREES and (problem := _check_other_world(claim, study)) is not None:
        return [problem]
    worlds = claim_worlds(claim, study.worlds)
    if not worlds:
        message = f'"{claim.world}" is not a world of this study; {allowed(str(claim.world), study.worlds)}'
        return [Problem(f"{where}.world", message)]
    # Every world has the same points, so the first represents all.
    found = pairings(claim, worlds[0], cells)
    if not found:
        own = (cell for cell in cells if cell.protocol == claim.of)
        conditions = claim.conditions
        has_own = any(all(cell.meets(key, c) for key, c in conditions.items()) for cell in own)
        if has_own and claim.relation in BESTS:
            message = "has no rival in this study; name a swept key with several values, or other protocols"
            return [Problem(f"{where}.among", message)]
        key = "against_where" if has_own and claim.against_where else "where"
        return [Problem(f"{where}.{key}", f"matches no cell of this study{_swept_over(claim, key, study)}")]
    if claim.relation not in TRENDS:
        return []
    return [problem for group in series(claim, found) if (problem := _check_trend(claim, group)) is not None]


def _swept_over(claim: Claim, key: str, study: Study) -> str:
    """Returns the values of the swept keys that a condition names, for a message."""
    conditions = claim.against_where if key == "against_where" else claim.where
    swept = sweep.selectable(study.sweep)
    found = ""
    for name in (name for name in conditions if name in swept):
        values = [label(one) for one in swept[name]]
        rest = ["…"] if len(values) > _LISTED_VALUES else []
        found += f"; {name} is swept over {', '.join(values[:_LISTED_VALUES] + rest)}"
    return found


def _check_other_world(claim: Claim, study: Study) -> Problem | None:
    where, other = f"claims[{claim.id}]", str(claim.against)
    if other not in study.worlds:
        message = f'"{other}" is not a world of this study; {allowed(other, study.worlds)}'
        return Problem(f"{where}.against", message)
    if claim.world == other or study.worlds == [other]:
        return Problem(f"{where}.against", f'"{other}" is the only world to compare; name another')
    return None


def _check_trend(claim: Claim, group: Series) -> Problem | None:
    along, where = str(claim.along), f"claims[{claim.id}]"
    values = [pairing.value(along) for pairing in group.points]
    numbers = [pairing.number(along) for pairing in group.points]
    if None in numbers:
        strange = show(values[numbers.index(None)])
        return Problem(f"{where}.along", f"{strange} is not a quantity; a trend requires quantities")
    if len(values) < 2:
        return Problem(f"{where}.where", f"leaves one point along {along}; a trend requires at least two")
    if len(set(numbers)) < len(numbers):
        twice = next(
            value for value, number in zip(values, numbers, strict=True) if numbers.count(number) > 1
        )
        return Problem(f"{where}.along", f"{show(twice)} has several points; select one of them with where")
    known_points = {*values[:-1], *numbers[:-1]}
    if claim.after is not None and not {claim.after, units.number(claim.after)} & known_points:
        known = allowed(str(claim.after), map(str, values[:-1]))
        return Problem(
            f"{where}.after", f"{show(claim.after)} is not a swept value before the last one; {known}"
        )
    return None
