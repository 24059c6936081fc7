"""Converts Python values to the plain data of a study file: text, numbers, booleans, lists and tables.

All functions of the Python API pass their arguments through `plain`, so that objects, dicts, tuples, NumPy
values and custom classes can be nested in any combination.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Protocol, runtime_checkable

from longfat.extensions.names import is_class, split
from longfat.study.claim_tables import with_groups_expanded
from longfat.study.problems import Problem, StudyError
from longfat.study.vocabulary import protocol_kinds

ACCEPTED = (
    "text with its unit, a number, true or false, a list, a dict, an object of longfat, "
    "a NumPy value or a class such as a custom congestion controller"
)


@runtime_checkable
class HasSettings(Protocol):
    """An object that represents a table of a study, such as `longfat.Path`."""

    def to_study(self) -> dict[str, Any]:
        """Returns the table as plain data."""


def plain(value: Any, key: str = "") -> Any:
    """Returns a value as plain data: `str`, `bool`, `int`, `float`, `list` and `dict`.

    NumPy arrays and scalars, Series and ranges become lists and numbers. A NumPy float without a fraction
    becomes an integer, so that `np.linspace(4, 16, 4)` sweeps a window. A custom class becomes its name.
    `key` is the value's key in messages.

    Raises:
        StudyError: for a value that cannot be converted, with key, value and type.

    >>> plain({"protocol.window": (4, 8), "sizes": range(2)})
    {'protocol.window': [4, 8], 'sizes': [0, 1]}
    """
    if isinstance(value, float) and not math.isfinite(value):
        raise _refused(value, key, "a number must be finite")
    if value is None or type(value) in (str, bool, int, float):
        return value
    if isinstance(value, HasSettings) and not isinstance(value, type):
        return plain(value.to_study(), key)
    if isinstance(value, Mapping):
        return _table(value, key)
    if isinstance(value, type):
        return _class(value, key)
    if hasattr(value, "tolist") or hasattr(value, "to_list"):
        return _whole(plain(value.tolist() if hasattr(value, "tolist") else value.to_list(), key))
    return _other(value, key)


def protocol_table(entry: Any) -> Any:
    """Returns the table of a protocol given by name, and other plain data unchanged.

    A name is a kind of protocol, or else a congestion controller for TCP.

    >>> protocol_table("go-back-n"), protocol_table("cubic")
    ({'kind': 'go-back-n'}, {'kind': 'tcp', 'congestion': 'cubic'})
    """
    if not isinstance(entry, str):
        return entry
    return {"kind": entry} if entry in protocol_kinds() else {"kind": "tcp", "congestion": entry}


def study_tables(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the tables of a study as plain data; each protocol is a table with a name.

    The default name of a protocol is its congestion controller, or else its kind.

    >>> study_tables({"protocols": ["cubic", {"kind": "go-back-n", "window": 8}]})["protocols"][1]["name"]
    'go-back-n'
    """
    return with_entries(plain(tables))


def with_entries(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Returns plain tables of a study whose protocols and traffic are lists of tables, protocols with names.

    A study file and the Python API accept the same short forms: one entry instead of a list, the name of a
    kind or of a congestion controller instead of a protocol's table, and claims that share keys.
    """
    data = dict(tables)
    for key in ("protocols", "traffic"):
        if isinstance(data.get(key), str | dict):
            data[key] = [data[key]]
    if isinstance(listed := data.get("protocols"), list):
        data["protocols"] = [_named(protocol_table(entry)) for entry in listed]
    if isinstance(listed := data.get("traffic"), list):
        data["traffic"] = [traffic_table(entry) for entry in listed]
    if isinstance(listed := data.get("claims"), list):
        data["claims"] = with_groups_expanded(listed)
    return data


def traffic_table(entry: Any) -> Any:
    """Returns a plain traffic entry whose protocol is a table. It can be a name."""
    if not isinstance(entry, dict) or not isinstance(protocol := entry.get("protocol"), str | dict):
        return entry
    own = protocol_table(protocol)
    return entry | {"protocol": {key: value for key, value in own.items() if key != "name"}}


def _named(entry: Any) -> Any:
    if not isinstance(entry, dict) or "name" in entry:
        return entry
    control = entry.get("congestion")
    control = control.get("kind") if isinstance(control, dict) else control
    name = split(str(control))[1] if is_class(control) else control or entry.get("kind")
    return {"name": name, **entry} if isinstance(name, str) else entry


def _table(value: Mapping[Any, Any], key: str) -> dict[str, Any]:
    table = {}
    for inner, entry in value.items():
        if not isinstance(inner, str):
            raise _refused(inner, key, "keys of tables must be text")
        table[str(inner)] = plain(entry, _below(key, inner))
    return table


def _below(key: str, inner: str) -> str:
    return f'{key}."{inner}"' if key == "sweep" else f"{key}.{inner}" if key else inner


def _other(value: Any, key: str) -> Any:
    """Converts subclasses of plain types, file names and iterables."""
    for of in (str, bool, int, float):
        if isinstance(value, of):
            return of(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, bytes | bytearray | memoryview | AbstractSet):
        raise _refused(value, key, "it has no order" if isinstance(value, AbstractSet) else "it is not text")
    if isinstance(value, Sequence | Iterable):
        return [plain(entry, f"{key}[{number}]") for number, entry in enumerate(value, 1)]
    from longfat.extensions.base import Extension

    if isinstance(value, Extension):
        name = type(value).__name__
        hint = f"give the class {name}, with settings as {name}.configured(SETTING=VALUE)"
        raise _refused(value, key, f"it is an object, but each {value.OWNER} creates its own; {hint}")
    raise _refused(value, key, f"allowed: {ACCEPTED}")


def _whole(value: Any) -> Any:
    """Returns floats without a fraction as integers, also in lists."""
    if isinstance(value, list):
        return [_whole(entry) for entry in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _class(value: type, key: str) -> str:
    from longfat.extensions import base as extensions

    try:
        return extensions.name_of(value)
    except extensions.ExtensionError as error:
        raise StudyError("", [Problem(key, str(error))]) from None


def _refused(value: object, key: str, why: str) -> StudyError:
    shown = repr(value).partition("\n")[0]
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
    return StudyError(
        "", [Problem(key, f"{shown} (type {type(value).__name__}) is not a study value: {why}")]
    )
