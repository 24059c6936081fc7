"""Swept values as short labels."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from longfat.extensions.names import is_class, short


def label(value: Any) -> str:
    """Returns a short label of a swept value: of a table, its kind and settings; of keys together, each one.

    >>> label("2%"), label(4), label({"kind": "every", "n": 50}), label({"kind": "red", "ecn": True})
    ('2%', '4', 'every n=50', 'red ecn=true')
    >>> label([["h5", "h9"], "1MB / 2"])
    'h5+h9, 1MB / 2'
    """
    if isinstance(value, Mapping):
        rest = " ".join(
            f"{key}={label(inner)}" for key, inner in value.items() if key not in ("kind", "model")
        )
        return f"{value.get('kind', value.get('model', ''))} {rest}".strip()
    if isinstance(value, list | tuple):
        has_lists = any(isinstance(inner, list | tuple) for inner in value)
        return (", " if has_lists else "+").join(label(inner) for inner in value)
    if isinstance(value, bool):
        return str(value).lower()
    return short(value) if is_class(value) else str(value)


def is_class_of_flows(name: str) -> bool:
    """Returns whether the part of a metric's name after the @ is a size class of flows instead of a host.

    >>> is_class_of_flows("G0"), is_class_of_flows("s1")
    (True, False)
    """
    return re.fullmatch(r"G\d+", name) is not None
