"""From a sweep to cells: every combination of the swept values, for every world and protocol."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator
from typing import Any

from longfat.results import Cell
from longfat.study import units
from longfat.study.problems import Problem, show
from longfat.study.specification import ProtocolEntry, Study
from longfat.study.vocabulary import SECTIONS, allowed, canonical

MAX_CELLS = 100_000
"""The most cells that one study may have."""


def values(swept: Any) -> list[Any]:
    """The values of one swept key: a list as it is, a range `{from, to, step}` spelled out.

    Raises ValueError where there are none, where one stands twice, or where a range cannot be read.

    >>> values({"from": "0%", "to": "10%", "step": "5%"})
    ['0%', '5%', '10%']
    """
    if isinstance(swept, dict):
        unknown = [key for key in swept if key not in ("from", "to", "step")]
        if unknown:
            raise ValueError(
                f'unknown key "{unknown[0]}" in a range; {allowed(unknown[0], ("from", "to", "step"))}'
            )
        missing = [key for key in ("from", "to", "step") if key not in swept]
        if missing:
            raise ValueError(
                f'a range needs the key "{missing[0]}": {{from = "20ms", to = "100ms", step = "20ms"}}'
            )
        return list(units.expand(swept["from"], swept["to"], swept["step"]))
    if not isinstance(swept, list):
        raise ValueError(f"{show(swept)}: must be a list of values or a range {{from, to, step}}")
    if not swept:
        raise ValueError("is empty: at least one value is needed")
    seen: set[str] = set()
    for value in swept:
        if canonical(value) in seen:
            raise ValueError(f"{show(value)} stands twice")
        seen.add(canonical(value))
    return swept


def key_problem(key: str, protocols: list[str]) -> str | None:
    """What is wrong with a dotted key such as `path.loss` or `protocols.sr.window`; None where it is one."""
    root, _, rest = key.partition(".")
    if root == "protocols":
        name, _, rest = rest.partition(".")
        if name not in protocols:
            return f'"{name}" is no protocol of this study; {allowed(name, protocols)}'
    elif root not in SECTIONS:
        return f'"{root}" is no section; {allowed(root, (*SECTIONS, "protocols"))}'
    if not rest or not all(rest.split(".")):
        return (
            f'names no key: write e.g. "path.loss", "{root}.KEY"' if root != "protocols" else "names no key"
        )
    return None


def place(spec: dict[str, Any], key: str, value: Any) -> None:
    """Sets a dotted key in nested tables, creating those between; ValueError where a value is in the way."""
    *parents, last = key.split(".")
    table = spec
    for parent in parents:
        inner = table.setdefault(parent, {})
        if not isinstance(inner, dict):
            raise ValueError(f"{parent} = {show(inner)} is no table, so it has no key {last}")
        table = inner
    table[last] = value


def cells(study: Study) -> list[Cell]:
    """Every cell of a study: worlds, within them the points of the sweep, within them the protocols.

    Raises ValueError where the sweep cannot be carried out (see `problems`).
    """
    found: list[Cell] = []
    for world in study.worlds:
        by_protocol = [list(_points(study, entry)) for entry in study.protocols]
        # One point after the other with all its protocols side by side, as a reader compares them.
        for row in itertools.zip_longest(*by_protocol):
            for entry, point in zip(study.protocols, row, strict=True):
                if point is not None:
                    found.append(Cell(world, entry.name, *point))
    return found


def _points(study: Study, entry: ProtocolEntry) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """(swept values, whole specification) of each point that one protocol is run at."""
    swept = {key: values(listed) for key, listed in study.sweep.items() if _concerns(key, entry.name)}
    base = {"path": study.path, "protocol": entry.settings, "workload": study.workload}
    for combination in itertools.product(*swept.values()):
        params = dict(zip(swept, combination, strict=True))
        spec = copy.deepcopy(base)
        for key, value in params.items():
            place(spec, key.replace(f"protocols.{entry.name}.", "protocol.", 1), copy.deepcopy(value))
        yield params, spec


def _concerns(key: str, protocol: str) -> bool:
    return not key.startswith("protocols.") or key.startswith(f"protocols.{protocol}.")


def problems(study: Study) -> list[Problem]:
    """What is wrong with the sweep itself: keys, lists, ranges, two keys for one setting, too many cells."""
    names = [entry.name for entry in study.protocols]
    found: list[Problem] = []
    count = len(study.worlds) * len(names)
    for key, listed in study.sweep.items():
        where = f'sweep."{key}"'
        wrong = key_problem(key, names)
        if wrong is not None:
            found.append(Problem(where, wrong))
            continue
        if key.startswith("protocol.") and (
            both := [f"protocols.{n}.{key[9:]}" for n in names if f"protocols.{n}.{key[9:]}" in study.sweep]
        ):
            found.append(Problem(where, f'sets the same as "{both[0]}": sweep one of them'))
        try:
            count *= len(values(listed))
        except ValueError as error:
            found.append(Problem(where, str(error)))
    if count > MAX_CELLS:
        found.append(Problem("sweep", f"{count} cells are too many: at most {MAX_CELLS}"))
    if not found:
        try:
            for entry in study.protocols:
                next(_points(study, entry))
        except ValueError as error:
            found.append(Problem("sweep", str(error)))
    return found
