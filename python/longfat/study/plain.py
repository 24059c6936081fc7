"""Conversion of Python values to the plain data of a study file: text, numbers, booleans, lists and tables.

Every entry from Python (`run`, `simulate`, `load_study`, `Path`, `Tcp` and the others) passes its arguments
through `plain`, so that objects, dicts, tuples, NumPy values and controller classes mix at any depth.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Protocol, runtime_checkable

from longfat.named_classes import is_class, split
from longfat.study.problems import Problem, StudyError
from longfat.study.vocabulary import protocol_kinds

ACCEPTED = (
    "text with its unit, a number, true or false, a list, a dict, an object of longfat, "
    "a NumPy value or a controller class"
)


@runtime_checkable
class HasSettings(Protocol):
    """An object that stands for a table of a study, such as `longfat.Path`."""

    def to_study(self) -> dict[str, Any]:
        """Returns the table as plain data."""


def plain(value: Any, key: str = "") -> Any:
    """Returns a value as a study file holds it: `str`, `bool`, `int`, `float`, `list` and `dict` alone.

    NumPy arrays and scalars, Series and ranges become lists and numbers; a float of NumPy without a fraction
    becomes a whole number, so that `np.linspace(4, 16, 4)` sweeps a window. A controller class becomes its
    name. `key` is where the value belongs, for messages.

    Raises:
        StudyError: naming key, value and type of what cannot be converted.

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
        return _controller(value, key)
    if hasattr(value, "tolist") or hasattr(value, "to_list"):
        return _whole(plain(value.tolist() if hasattr(value, "tolist") else value.to_list(), key))
    return _other(value, key)


def protocol_table(entry: Any) -> Any:
    """Returns the table that a protocol's name alone stands for; other plain data unchanged.

    A kind of protocol stands for itself, every other word for TCP with that congestion controller.

    >>> protocol_table("go-back-n"), protocol_table("cubic")
    ({'kind': 'go-back-n'}, {'kind': 'tcp', 'congestion': 'cubic'})
    """
    if not isinstance(entry, str):
        return entry
    return {"kind": entry} if entry in protocol_kinds() else {"kind": "tcp", "congestion": entry}


def study_tables(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the tables of a study as plain data, each of its protocols a table with a name.

    A protocol without a name is called after its congestion controller, else after its kind.

    >>> study_tables({"protocols": ["cubic", {"kind": "go-back-n", "window": 8}]})["protocols"][1]["name"]
    'go-back-n'
    """
    data: dict[str, Any] = plain(tables)
    for key in ("protocols", "traffic"):  # one alone stands for a list of one
        if isinstance(data.get(key), str | dict):
            data[key] = [data[key]]
    if isinstance(listed := data.get("protocols"), list):
        data["protocols"] = [_named(protocol_table(entry)) for entry in listed]
    if isinstance(listed := data.get("traffic"), list):
        data["traffic"] = [traffic_table(entry) for entry in listed]
    return data


def traffic_table(entry: Any) -> Any:
    """Returns an entry of the traffic as plain data, whose protocol may be given by its name alone."""
    table = plain(entry, "traffic")
    if isinstance(table, dict) and isinstance(protocol := table.get("protocol"), str | dict):
        own = protocol_table(protocol)
        table["protocol"] = {key: value for key, value in own.items() if key != "name"}
    return table


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
            raise _refused(inner, key, "a key of a table must be text")
        table[str(inner)] = plain(entry, _below(key, inner))
    return table


def _below(key: str, inner: str) -> str:
    return f'{key}."{inner}"' if key == "sweep" else f"{key}.{inner}" if key else inner


def _other(value: Any, key: str) -> Any:
    """A subclass of a plain type, a file's name, or something to iterate over."""
    for of in (str, bool, int, float):
        if isinstance(value, of):
            return of(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, bytes | bytearray | memoryview | AbstractSet):
        raise _refused(value, key, "it has no order" if isinstance(value, AbstractSet) else "it is not text")
    if isinstance(value, Sequence | Iterable):
        return [plain(entry, f"{key}[{number}]") for number, entry in enumerate(value, 1)]
    from longfat.controllers import CongestionController

    if isinstance(value, CongestionController):
        name = type(value).__name__
        hint = f'give the class {name}, with settings as {{"kind": {name}, "SETTING": VALUE}}'
        raise _refused(value, key, f"it is an object, and each connection makes its own: {hint}")
    raise _refused(value, key, f"allowed: {ACCEPTED}")


def _whole(value: Any) -> Any:
    """A float without a fraction as a whole number, in lists as well."""
    if isinstance(value, list):
        return [_whole(entry) for entry in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _controller(value: type, key: str) -> str:
    from longfat import controllers

    try:
        return controllers.name_of(value)
    except controllers.ControllerError as error:
        raise StudyError("", [Problem(key, str(error))]) from None


def _refused(value: object, key: str, why: str) -> StudyError:
    shown = repr(value).partition("\n")[0]
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
    return StudyError("", [Problem(key, f"{shown} (type {type(value).__name__}) is no study value: {why}")])
