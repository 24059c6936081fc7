"""Studies that extend others: `extends = "base.toml"`, or a built-in study's name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from longfat.study import catalogue
from longfat.study.problems import Problem, StudyError, show
from longfat.study.vocabulary import nearest

KEY = "extends"

MOST_BASES = 32
"""Length of a chain of studies that extend each other."""
_NAMED = {"protocols": "name", "traffic": "name", "claims": "id"}
"""Lists that are merged by this key of their entries."""
_IDENTITY = ("kind", "model", "preset", "hops")
"""A table that sets one of these to another value replaces the base study's table."""
_NETWORKS = {"path": "topology", "topology": "path"}

Data = dict[str, Any]
Read = Callable[[Path], Data]


def extended(data: Data, origin: Path, read: Read, chain: tuple[Path, ...] = ()) -> Data:
    """Returns a study's tables merged into those of the study that it extends.

    Args:
        data: The study's tables.
        origin: The study's file. A relative name of the base study refers to its folder.
        read: Returns the tables of a study file, or raises StudyError.
        chain: The files that led to this one, to detect cycles.

    Raises:
        ValueError: for a base study that does not exist, a cycle, or an unknown key in `without`.
        StudyError: for a base study that cannot be read.
    """
    if KEY not in data:
        return data
    name, without = _parsed(data[KEY])
    path = _find(name, origin.parent)
    chain = (*chain, origin.resolve())
    if len(chain) > MOST_BASES:
        raise ValueError(f"{KEY}: more than {MOST_BASES} studies extend each other")
    if path.resolve() in chain:
        cycle = " extends ".join(f'"{file.name}"' for file in (*chain, path))
        raise ValueError(f"{KEY}: {cycle}: a study cannot extend itself")
    try:
        base = extended(read(path), path, read, chain)
    except StudyError:
        raise
    except ValueError as error:
        raise StudyError(str(path), [Problem("", str(error))]) from None
    for key in without:
        if not _remove(base, key.split(".")):
            raise ValueError(f'{KEY}.without: "{name}" has no key "{key}"')
    return _merged(base, {key: value for key, value in data.items() if key != KEY})


def _parsed(value: Any) -> tuple[str, list[str]]:
    match value:
        case str(name):
            return name, []
        case {"study": str(name), **rest} if set(rest) <= {"without"}:
            without = rest.get("without", [])
            if isinstance(without, list) and all(isinstance(key, str) for key in without):
                return name, without
    raise ValueError(
        f'{KEY}: must be a study ("base.toml", "arq/loss") or {{ study = "base.toml", without = ["claims"] }}'
    )


def _find(name: str, folder: Path) -> Path:
    path = folder / name
    if catalogue.is_file(path):
        return path
    known = catalogue.builtin()
    if name in known:
        return known[name]
    near = nearest(name, known)
    hint = f' (did you mean "{near}"?)' if near else ""
    raise ValueError(f"{KEY}: {show(name)} is neither a file in {folder} nor a built-in study{hint}")


def _remove(data: Any, key: list[str]) -> bool:
    """Removes a key, or an entry of a list by its name. Returns whether it existed."""
    first, *rest = key
    if isinstance(data, list):
        at = next((i for i, entry in enumerate(data) if first in (entry.get("name"), entry.get("id"))), None)
        if at is None:
            return False
        if rest:
            return _remove(data[at], rest)
        del data[at]
        return True
    if not isinstance(data, dict):
        return False
    whole = ".".join(key)  # Swept keys contain dots.
    if whole in data:
        del data[whole]
        return True
    return bool(rest) and first in data and _remove(data[first], rest)


def _merged(base: Data, own: Data) -> Data:
    found = dict(base)
    for key, value in own.items():
        found.pop(_NETWORKS.get(key, ""), None)
        before = found.get(key)
        if key in _NAMED and isinstance(before, list) and isinstance(value, list):
            found[key] = _entries(before, value, _NAMED[key])
        else:
            found[key] = _value(before, value)
    return found


def _value(base: Any, own: Any) -> Any:
    if not isinstance(base, dict) or not isinstance(own, dict):
        return own
    if any(key in own and own[key] != base.get(key) for key in _IDENTITY):
        return own
    return base | {key: _value(base.get(key), value) for key, value in own.items()}


def _entries(base: list[Any], own: list[Any], key: str) -> list[Any]:
    """Merges entries with the same name; the others follow the base study's entries."""
    found = list(base)
    names = [entry.get(key) if isinstance(entry, dict) else None for entry in found]
    for entry in own:
        name = entry.get(key) if isinstance(entry, dict) else None
        if name is not None and name in names:
            at = names.index(name)
            found[at] = _value(found[at], entry)
        else:
            found.append(entry)
    return found
