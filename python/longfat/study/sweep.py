"""Cells of a study: all combinations of swept values, for each world and protocol."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from longfat.study import units
from longfat.study.combinations import Cells, Points, Setting, Swept
from longfat.study.expressions import settings
from longfat.study.links import requested_links
from longfat.study.problems import Problem, show
from longfat.study.specification import ProtocolEntry, Study
from longfat.study.vocabulary import allowed, canonical

MAX_CELLS = 1_000_000
"""The largest number of cells of a study."""


PATH = "path"
"""The section that can be swept as a whole: its values are tables, usually path models."""
NETWORKS = (PATH, "topology")
"""The sections of which a study has one."""
TOGETHER = ","
"""Separates keys that move together."""
LABEL, VALUE = "label", "value"
"""The keys of a labelled value of a sweep."""


def values(swept: Any) -> list[Any]:
    """Returns the values of one swept key as tables, charts and claims show them, or their labels.

    A range `{from, to, step}` is expanded.

    Raises:
        ValueError: for an empty list, duplicate values, or an invalid range or label.

    >>> values({"from": "0%", "to": "10%", "step": "5%"})
    ['0%', '5%', '10%']
    >>> values([{"label": "bursts", "value": {"kind": "every", "every": 50}}, "2%"])
    ['bursts', '2%']

    Keys that move together ("path.rate, path.delay") have a list of values at each point.

    >>> values([["10Mbit/s", "40ms"], ["1Gbit/s", "1ms"]])
    ['10Mbit/s, 40ms', '1Gbit/s, 1ms']
    """
    return [shown for shown, _ in _labelled(swept)]


def selectable(swept: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Returns the values of the keys of a sweep by which cells are selected, as a study writes them.

    Of keys that move together, each has its own values as well.

    >>> selectable({"path.rate, path.delay": [["10Mbit/s", "40ms"], ["1Gbit/s", "1ms"]]})["path.delay"]
    ['40ms', '1ms']
    """
    found: dict[str, list[Any]] = {}
    for key, listed in swept.items():
        labelled = _labelled(listed)
        found[key] = [shown for shown, _ in labelled]
        if len(several := parts(key)) > 1:
            columns = zip(*(value for _, value in labelled), strict=True)
            found |= {part: list(column) for part, column in zip(several, columns, strict=True)}
    return found


def sets(swept: str, key: str) -> bool:
    """Returns whether a key of a sweep sets a dotted key: itself, one of several, or inside a table.

    >>> sets("path.rate, path.delay", "path.delay"), sets("path.queue", "path.queue.kind")
    (True, True)
    """
    return key == swept or any(key == part or key.startswith(f"{part}.") for part in parts(swept))


def _labelled(swept: Any) -> list[tuple[Any, Any]]:
    """Returns (shown value, value in the specification) of each value of one swept key."""
    found = [_point(value) for value in listed(swept)]
    counts = Counter(canonical(shown) for shown, _ in found)
    if twice := [show(json.loads(text)) for text, count in counts.items() if count > 1]:
        raise ValueError(f"{' and '.join(twice)} {'is' if len(twice) == 1 else 'are'} repeated")
    return found


def _point(value: Any) -> tuple[Any, Any]:
    if isinstance(value, list) and value and not any(isinstance(one, dict | list) for one in value):
        return ", ".join(str(one) for one in value), value
    if not isinstance(value, dict) or LABEL not in value:
        return value, value
    if set(value) != {LABEL, VALUE} or not isinstance(value[LABEL], str) or not value[LABEL].strip():
        raise ValueError(f'{show(value)}: a labelled value is {{ label = "NAME", value = ... }}')
    return value[LABEL], value[VALUE]


def listed(swept: Any) -> list[Any]:
    """Returns the values of one swept key as a study writes them in a list."""
    if isinstance(swept, dict):
        unknown = [key for key in swept if key not in ("from", "to", "step")]
        if unknown:
            raise ValueError(
                f'unknown key "{unknown[0]}" in a range; {allowed(unknown[0], ("from", "to", "step"))}'
            )
        missing = [key for key in ("from", "to", "step") if key not in swept]
        if missing:
            raise ValueError(
                f'a range requires the key "{missing[0]}": {{from = "20ms", to = "100ms", step = "20ms"}}'
            )
        return list(units.expand(swept["from"], swept["to"], swept["step"]))
    if not isinstance(swept, list):
        raise ValueError(f"{show(swept)}: must be a list of values or a range {{from, to, step}}")
    if not swept:
        raise ValueError("is empty; at least one value is required")
    return swept


@dataclass(frozen=True)
class Roots:
    """The valid first parts of a study's dotted keys: tables, protocols, traffic."""

    tables: tuple[str, ...]
    protocols: tuple[str, ...]
    traffic: tuple[str, ...]

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Roots:
        """Returns the roots of a study's raw tables, which can be invalid otherwise."""
        network = "topology" if "topology" in data else PATH
        return cls((network, "protocol", "workload"), _names(data, "protocols"), _names(data, "traffic"))

    @property
    def names(self) -> tuple[str, ...]:
        """The first parts themselves."""
        return (*self.tables, "protocols", *(["traffic"] if self.traffic else []))

    def problem(self, key: str) -> str | None:
        """Returns the problem of a dotted key such as `path.loss`; None for a valid key.

        >>> roots = Roots(("path", "protocol", "workload"), ("sr",), ())
        >>> roots.problem("path.loss"), roots.problem("protocols.sr")
        (None, 'has no key')
        """
        if key == PATH and PATH in self.tables:
            return None
        root, _, rest = key.partition(".")
        lists = {"protocols": ("protocol", self.protocols), "traffic": ("traffic", self.traffic)}
        if root in lists and root in self.names:
            what, known = lists[root]
            name, _, rest = rest.partition(".")
            if name not in known:
                for_all = (
                    f'; for all of them, write "protocol.{name}"' if root == "protocols" and not rest else ""
                )
                return f'"{name}" is not a {what} of this study; {allowed(name, known)}{for_all}'
        elif root in NETWORKS and root not in self.tables:
            return f'this study has no [{root}] but a [{self.tables[0]}]: write e.g. "{self.tables[0]}.KEY"'
        elif root not in self.tables:
            return f'"{root}" is not a section of this study; {allowed(root, self.names)}'
        if not rest or not all(rest.split(".")):
            return "has no key" if root in lists else f'has no key; write e.g. "{root}.KEY"'
        return None


def _names(data: Mapping[str, Any], key: str) -> tuple[str, ...]:
    listed = data.get(key)
    entries = listed if isinstance(listed, list) else []
    return tuple(e["name"] for e in entries if isinstance(e, dict) and isinstance(e.get("name"), str))


def roots(study: Study) -> Roots:
    """Returns the valid first parts of a study's dotted keys."""
    return Roots(
        (*study.network, "protocol", "workload"),
        tuple(entry.name for entry in study.protocols),
        tuple(entry.name for entry in study.traffic),
    )


def specification(study: Study, entry: ProtocolEntry) -> dict[str, Any]:
    """Returns the specification of one protocol's trials without swept values."""
    traffic = {"traffic": [flow.settings for flow in study.traffic]} if study.traffic else {}
    return {**study.network, "protocol": entry.settings, "workload": study.workload, **traffic}


def cells(study: Study) -> Cells:
    """Returns all cells of a study, ordered by world, swept values and protocol.

    Raises:
        ValueError: for an invalid sweep (see `problems`).
    """
    return study.derived("cells", _cells)


def _cells(study: Study) -> Cells:
    points = {(entry.name, entry.label): points_of(study, entry) for entry in study.protocols}
    return Cells(study.worlds, points)


def points_of(study: Study, entry: ProtocolEntry) -> Points:
    """Returns the points of one protocol, with those of its cells."""
    return study.derived(f"points of {entry.name}", lambda study: _made(study, entry))


def _made(study: Study, entry: ProtocolEntry) -> Points:
    base = specification(study, entry)
    swept = [
        Swept(key, [(shown, _settings(key, value, entry.name)) for shown, value in _labelled(listed)])
        for key, listed in study.sweep.items()
        if _concerns(key, entry.name)
    ]
    named = study.derived("links", requested_links)
    return Points(base, swept, entry.name, named, computes=settings.contains([base, study.sweep]))


def parts(key: str) -> list[str]:
    """Returns the keys that a key of a sweep sets together.

    >>> parts("path.rate, path.delay"), parts("path.loss")
    (['path.rate', 'path.delay'], ['path.loss'])
    """
    return [part.strip() for part in key.split(TOGETHER)]


def _settings(key: str, value: Any, protocol: str) -> list[Setting]:
    """Returns the settings of one protocol's specification that a value of a swept key makes."""
    several = parts(key)
    placed = [(key, value)] if len(several) == 1 else zip(several, value, strict=True)
    return [(own_key(one, protocol), setting) for one, setting in placed]


def own_key(key: str, protocol: str) -> str:
    """Returns a dotted key as the specification of one protocol has it.

    >>> own_key("protocols.sr.window", "sr"), own_key("path.loss", "sr")
    ('protocol.window', 'path.loss')
    """
    return key.replace(f"protocols.{protocol}.", "protocol.", 1)


def _concerns(key: str, protocol: str) -> bool:
    return not key.startswith("protocols.") or key.startswith(f"protocols.{protocol}.")


def problems(study: Study) -> list[Problem]:
    """Returns the problems of the sweep: keys, lists, ranges, duplicate settings, too many cells."""
    known = roots(study)
    names = known.protocols
    found: list[Problem] = []
    count = len(study.worlds) * len(names)
    for key, listed in study.sweep.items():
        where = f'sweep."{key}"'
        several = parts(key)
        wrong = next(filter(None, map(known.problem, several)), None) or _apart(several, study.sweep)
        if wrong is not None:
            found.append(Problem(where, wrong))
            continue
        if key.startswith("protocol.") and (
            both := [f"protocols.{n}.{key[9:]}" for n in names if f"protocols.{n}.{key[9:]}" in study.sweep]
        ):
            found.append(Problem(where, f'sets the same key as "{both[0]}"; sweep only one of them'))
        try:
            points = _labelled(listed)
        except ValueError as error:
            found.append(Problem(where, str(error)))
            continue
        count *= len(points)
        if len(several) > 1 and not all(isinstance(v, list) and len(v) == len(several) for _, v in points):
            example = ", ".join(["..."] * len(several))
            found.append(
                Problem(
                    where, f"{len(several)} keys need a list of as many values at each point: [{example}]"
                )
            )
        if key == PATH and not all(isinstance(value, dict) for _, value in points):
            found.append(
                Problem(where, f"has no key; sweep {PATH}.KEY, or give tables or path models (@FILE)")
            )
    if count > MAX_CELLS:
        found.append(Problem("sweep", f"{count} cells are too many: at most {MAX_CELLS}"))
    if not found:
        try:
            for entry in study.protocols:
                found += _point_problems(study, entry)
        except ValueError as error:
            found.append(Problem("sweep", str(error)))
    return found


def _point_problems(study: Study, entry: ProtocolEntry) -> list[Problem]:
    """Returns the problem of the first point whose expressions have no values."""
    try:
        points = points_of(study, entry)
        points.evaluate()
        points[0]
    except settings.SettingError as error:
        return [Problem(_written(error.key, study, entry.name), str(error))]
    return []


def _apart(several: list[str], swept: Mapping[str, Any]) -> str | None:
    """Returns why keys cannot move together; None if they can."""
    if len(several) == 1:
        return None
    if own := next((key for key in several if key.startswith("protocols.")), None):
        return f'"{own}" is of one protocol, and cannot move with other keys'
    twice = next((key for key in several if several.count(key) > 1 or key in swept), None)
    return f'"{twice}" is swept twice' if twice else None


def _written(key: str, study: Study, protocol: str) -> str:
    """Returns the key of a specification as the study writes it: with its protocol, or in the sweep."""
    keys = [key, key.replace("protocol.", f"protocols.{protocol}.", 1)]
    swept = next((one for one in study.sweep if set(keys) & set(parts(one))), None)
    return f'sweep."{swept}"' if swept is not None else keys[-1]
