"""Which cells a claim is about, and which of them stand against each other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from longfat.study import sweep, units
from longfat.study.claims import AGREES, THEORY, TRENDS, Claim
from longfat.study.problems import Problem, show
from longfat.study.vocabulary import allowed, canonical

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from longfat.study.cell import Cell
    from longfat.study.specification import Study


@dataclass(frozen=True)
class Pairing:
    """A cell of the claim's protocol, and the cell it is held against (None where the claim has no other)."""

    of: Cell
    against: Cell | None

    def value(self, key: str) -> Any:
        """The value of a dotted key: that of the claim's protocol, else that of the other."""
        value = self.of.value(key)
        return self.against.value(key) if value is None and self.against is not None else value


@dataclass(frozen=True)
class Series:
    """The points of a trend in order of the key it goes along; `fixed` are the other swept keys."""

    fixed: dict[str, Any]
    points: list[Pairing]


def pairings(claim: Claim, world: str, cells: Sequence[Cell]) -> list[Pairing]:
    """The cells of one world that a claim is about, each with its counterpart, in the order of the study.

    Two protocols meet where all swept keys that both have are equal; the theory of a cell is a cell of the
    same specification.
    """
    own = [cell for cell in cells if cell.world == world and cell.protocol == claim.of]
    if claim.against is None:
        found = [Pairing(cell, None) for cell in own]
    elif claim.against_theory:
        found = [Pairing(cell, replace(cell, protocol=THEORY)) for cell in own]
    elif claim.relation == AGREES:
        others = [cell for cell in cells if cell.world == claim.against and cell.protocol == claim.of]
        found = [Pairing(cell, other) for cell in own for other in others if cell.params == other.params]
    else:
        others = [cell for cell in cells if cell.world == world and cell.protocol == claim.against]
        found = [Pairing(cell, other) for cell in own for other in others if _meet(cell, other)]
    conditions = claim.conditions
    return [p for p in found if all(c.matches(p.value(key)) for key, c in conditions.items())]


def _meet(one: Cell, other: Cell) -> bool:
    return all(other.params[key] == value for key, value in one.params.items() if key in other.params)


def series(claim: Claim, found: Iterable[Pairing]) -> list[Series]:
    """The pairings as trends along `claim.along`, one for each combination of the other swept keys."""
    along = claim.along or ""
    groups: dict[str, Series] = {}
    for pairing in found:
        params = {**(pairing.against.params if pairing.against else {}), **pairing.of.params}
        fixed = {key: value for key, value in params.items() if key != along}
        groups.setdefault(canonical(fixed), Series(fixed, [])).points.append(pairing)
    for group in groups.values():
        group.points.sort(key=lambda pairing: units.number(pairing.value(along)) or 0.0)
    return list(groups.values())


def claim_worlds(claim: Claim, worlds: Sequence[str]) -> list[str]:
    """The worlds that a claim is judged in; what is held against a world has no verdict in that one."""
    other = claim.against if claim.relation == AGREES else None
    return [world for world in worlds if claim.world in (None, world) and world != other]


def check(study: Study) -> list[Problem]:
    """Claims that no run could answer: they match no cell, or what they match has no trend.

    Expects a study whose names are checked: its claims name protocols, metrics and swept keys that exist, and
    its sweep can be carried out.
    """
    cells = sweep.cells(study)
    return [problem for claim in study.claims for problem in _check_claim(claim, study, cells)]


def _check_claim(claim: Claim, study: Study, cells: Sequence[Cell]) -> list[Problem]:
    where = f"claims[{claim.id}]"
    if claim.against == claim.of:
        return [
            Problem(f"{where}.against", f'"{claim.of}" is the protocol that the claim is about: name another')
        ]
    if claim.relation == AGREES and (problem := _check_other_world(claim, study)) is not None:
        return [problem]
    worlds = claim_worlds(claim, study.worlds)
    if not worlds:
        message = f'"{claim.world}" is no world of this study; {allowed(str(claim.world), study.worlds)}'
        return [Problem(f"{where}.world", message)]
    # Every world has the same points, so the first stands for all.
    found = pairings(claim, worlds[0], cells)
    if not found:
        return [Problem(f"{where}.where", "matches no cell of this study")]
    if claim.relation not in TRENDS:
        return []
    return [problem for group in series(claim, found) if (problem := _check_trend(claim, group)) is not None]


def _check_other_world(claim: Claim, study: Study) -> Problem | None:
    where, other = f"claims[{claim.id}]", str(claim.against)
    if other not in study.worlds:
        message = f'"{other}" is no world of this study; {allowed(other, study.worlds)}'
        return Problem(f"{where}.against", message)
    if claim.world == other or study.worlds == [other]:
        return Problem(
            f"{where}.against", f'"{other}" is the only world that is left to compare: name another'
        )
    return None


def _check_trend(claim: Claim, group: Series) -> Problem | None:
    along, where = str(claim.along), f"claims[{claim.id}]"
    values = [pairing.value(along) for pairing in group.points]
    numbers = [units.number(value) for value in values]
    if None in numbers:
        strange = show(values[numbers.index(None)])
        return Problem(f"{where}.along", f"{strange} has no place in an order: a trend goes along quantities")
    if len(values) < 2:
        return Problem(f"{where}.where", f"leaves one point along {along}: a trend needs two or more")
    if claim.after is not None and units.number(claim.after) not in numbers[:-1]:
        known = allowed(str(claim.after), map(str, values[:-1]))
        return Problem(
            f"{where}.after", f"{show(claim.after)} is no point of the sweep that others follow; {known}"
        )
    return None
