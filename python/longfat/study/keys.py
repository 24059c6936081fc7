"""Dotted keys into a study's nested tables: `path.loss`, `topology.access.2.rate`, `traffic.rival.count`.

In a list, a part of a key is an entry's `name`, or its number from 1.
"""

from __future__ import annotations

import json
from typing import Any

KINDS_BY_NAME = ("congestion",)
"""Keys whose text value is short for a table of that kind, so that single keys of the table can be set."""

_LONGEST = 60


def place(spec: dict[str, Any], key: str, value: Any) -> None:
    """Sets a dotted key in nested tables, which it creates. Raises ValueError for a value instead of a table.

    >>> spec = {"protocol": {"congestion": "vegas"}, "topology": {"access": [{}, {}]}}
    >>> place(spec, "protocol.congestion.alpha", 2)
    >>> place(spec, "topology.access.2.rate", "5Mbit/s")
    >>> spec["protocol"], spec["topology"]
    ({'congestion': {'kind': 'vegas', 'alpha': 2}}, {'access': [{}, {'rate': '5Mbit/s'}]})
    """
    *parents, last = key.split(".")
    table: Any = spec
    for part in parents:
        at = _position(table, part)
        inner = table.setdefault(at, {}) if isinstance(table, dict) else table[at]
        if isinstance(inner, str) and part in KINDS_BY_NAME:
            inner = table[at] = {"kind": inner}
        if not isinstance(inner, dict | list):
            raise ValueError(f"{part} = {_shown(inner)} is not a table, so it has no key {last}")
        table = inner
    table[_position(table, last)] = value


def lookup(value: Any, parts: list[str]) -> Any:
    """Returns the value of a dotted key, split into its parts; None for a missing key.

    >>> lookup({"traffic": [{"name": "rival", "count": 3}]}, ["traffic", "rival", "count"])
    3
    """
    for part in parts:
        try:
            value = value[_position(value, part)]
        except (KeyError, TypeError, ValueError):
            return None
    return value


def key_of(spec: dict[str, Any], key: str) -> str:
    """Returns the last part of a dotted key that names a key, and not the entry of a list.

    >>> key_of({"cell": {"traces": ["a", "b"]}}, "cell.traces.2")
    'traces'
    """
    found = ""
    table: Any = spec
    for part in key.split("."):
        found = found if isinstance(table, list) else part
        table = table[_position(table, part)]
    return found


def _position(table: Any, part: str) -> Any:
    """Returns the key or index of a part in a table or list. Raises ValueError for an unknown entry."""
    if not isinstance(table, list):
        return part
    names = [entry.get("name") if isinstance(entry, dict) else None for entry in table]
    if part in names:
        return names.index(part)
    if part.isdigit() and 1 <= int(part) <= len(table):
        return int(part) - 1
    known = [str(name) for name in names if name is not None]
    raise ValueError(
        f'"{part}" is not an entry of the list; allowed: {", ".join(known) or f"1 to {len(table)}"}'
    )


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
