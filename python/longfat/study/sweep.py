"""From a sweep to cells: every combination of the swept values, for every world and protocol."""

from __future__ import annotations

import copy
import itertools
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from longfat.keys import place
from longfat.study import units
from longfat.study.cell import Cell
from longfat.study.problems import Problem, show
from longfat.study.specification import ProtocolEntry, Study
from longfat.study.vocabulary import allowed, canonical

MAX_CELLS = 100_000
"""The most cells that one study may have."""


PATH = "path"
"""The one section that is swept as a whole: its values are tables, most often models of paths."""
LABEL, VALUE = "label", "value"
"""The keys of a labelled point of a sweep."""


def values(swept: Any) -> list[Any]:
    """The values of one swept key as tables, charts and claims show them: a labelled one by its label.

    A list stays as it is, a range `{from, to, step}` is spelled out. Raises ValueError where there are none,
    where one stands twice, or where a range or a label cannot be read.

    >>> values({"from": "0%", "to": "10%", "step": "5%"})
    ['0%', '5%', '10%']
    >>> values([{"label": "bursts", "value": {"model": "every", "every": 50}}, "2%"])
    ['bursts', '2%']
    """
    return [shown for shown, _ in _labelled(swept)]


def _labelled(swept: Any) -> list[tuple[Any, Any]]:
    """Each value of one swept key as it is shown, and as a specification has it."""
    found = [_point(value) for value in listed(swept)]
    counts = Counter(canonical(shown) for shown, _ in found)
    if twice := [show(json.loads(text)) for text, count in counts.items() if count > 1]:
        raise ValueError(f"{' and '.join(twice)} stand{'s' if len(twice) == 1 else ''} twice")
    return found


def _point(value: Any) -> tuple[Any, Any]:
    if not isinstance(value, dict) or LABEL not in value:
        return value, value
    if set(value) != {LABEL, VALUE} or not isinstance(value[LABEL], str) or not value[LABEL].strip():
        raise ValueError(f'{show(value)}: a labelled point is {{ label = "NAME", value = ... }}')
    return value[LABEL], value[VALUE]


def listed(swept: Any) -> list[Any]:
    """The points of one swept key as a study may write them in a list, in the order of `values`."""
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
    return swept


@dataclass(frozen=True)
class Roots:
    """What the first words of a study's dotted keys name: its tables, its protocols, its traffic."""

    tables: tuple[str, ...]
    protocols: tuple[str, ...]
    traffic: tuple[str, ...]

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Roots:
        """Those of a study's raw tables, however wrong they are otherwise."""
        network = "topology" if "topology" in data else "path"
        return cls((network, "protocol", "workload"), _names(data, "protocols"), _names(data, "traffic"))

    @property
    def words(self) -> tuple[str, ...]:
        """The first words themselves."""
        return (*self.tables, "protocols", *(["traffic"] if self.traffic else []))

    def problem(self, key: str) -> str | None:
        """What is wrong with a dotted key such as `path.loss` or `traffic.rival.count`; None where it is one.

        >>> roots = Roots(("path", "protocol", "workload"), ("sr",), ())
        >>> roots.problem("path.loss"), roots.problem("protocols.sr")
        (None, 'names no key')
        """
        if key == PATH and PATH in self.tables:
            return None
        root, _, rest = key.partition(".")
        lists = {"protocols": ("protocol", self.protocols), "traffic": ("traffic", self.traffic)}
        if root in lists and root in self.words:
            what, names = lists[root]
            name, _, rest = rest.partition(".")
            if name not in names:
                return f'"{name}" is no {what} of this study; {allowed(name, names)}'
        elif root not in self.tables:
            return f'"{root}" is no section of this study; {allowed(root, self.words)}'
        if not rest or not all(rest.split(".")):
            return "names no key" if root in lists else f'names no key: write e.g. "{root}.KEY"'
        return None


def _names(data: Mapping[str, Any], key: str) -> tuple[str, ...]:
    listed = data.get(key)
    entries = listed if isinstance(listed, list) else []
    return tuple(e["name"] for e in entries if isinstance(e, dict) and isinstance(e.get("name"), str))


def roots(study: Study) -> Roots:
    """The first words of a study's dotted keys."""
    return Roots(
        (*study.network, "protocol", "workload"),
        tuple(entry.name for entry in study.protocols),
        tuple(entry.name for entry in study.traffic),
    )


def specification(study: Study, entry: ProtocolEntry) -> dict[str, Any]:
    """What a trial of one protocol runs, before anything is swept."""
    traffic = {"traffic": [flow.settings for flow in study.traffic]} if study.traffic else {}
    return {**study.network, "protocol": entry.settings, "workload": study.workload, **traffic}


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
    swept = {key: _labelled(listed) for key, listed in study.sweep.items() if _concerns(key, entry.name)}
    base = specification(study, entry)
    for combination in itertools.product(*swept.values()):
        point = dict(zip(swept, combination, strict=True))
        spec = copy.deepcopy(base)
        # A table first, then the keys inside it.
        for key in sorted(point, key=_depth):
            place(spec, own_key(key, entry.name), copy.deepcopy(point[key][1]))
        yield {key: shown for key, (shown, _) in point.items()}, spec


def _depth(key: str) -> int:
    return key.count(".") - key.startswith("protocols.")


def own_key(key: str, protocol: str) -> str:
    """A dotted key as it stands in the specification of one protocol.

    >>> own_key("protocols.sr.window", "sr"), own_key("path.loss", "sr")
    ('protocol.window', 'path.loss')
    """
    return key.replace(f"protocols.{protocol}.", "protocol.", 1)


def _concerns(key: str, protocol: str) -> bool:
    return not key.startswith("protocols.") or key.startswith(f"protocols.{protocol}.")


def problems(study: Study) -> list[Problem]:
    """What is wrong with the sweep itself: keys, lists, ranges, two keys for one setting, too many cells."""
    known = roots(study)
    names = known.protocols
    found: list[Problem] = []
    count = len(study.worlds) * len(names)
    for key, listed in study.sweep.items():
        where = f'sweep."{key}"'
        wrong = known.problem(key)
        if wrong is not None:
            found.append(Problem(where, wrong))
            continue
        if key.startswith("protocol.") and (
            both := [f"protocols.{n}.{key[9:]}" for n in names if f"protocols.{n}.{key[9:]}" in study.sweep]
        ):
            found.append(Problem(where, f'sets the same as "{both[0]}": sweep one of them'))
        try:
            points = _labelled(listed)
        except ValueError as error:
            found.append(Problem(where, str(error)))
            continue
        count *= len(points)
        if key == PATH and not all(isinstance(value, dict) for _, value in points):
            found.append(Problem(where, f"names no key: sweep {PATH}.KEY, or give tables or @FILE of models"))
    if count > MAX_CELLS:
        found.append(Problem("sweep", f"{count} cells are too many: at most {MAX_CELLS}"))
    if not found:
        try:
            for entry in study.protocols:
                next(_points(study, entry))
        except ValueError as error:
            found.append(Problem("sweep", str(error)))
    return found
