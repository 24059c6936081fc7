"""The depth of tables and lists in a study, which functions walk recursively."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MOST_LEVELS = 32
"""Tables and lists inside each other. A study's own keys need 8."""


def check_depth(value: Any, what: str = "") -> None:
    """Raises ValueError, with `what` first, for a value with more than `MOST_LEVELS`.

    >>> check_depth({"sweep": {"path.loss": ["1%", "2%"]}})
    """
    left = [(value, 1)]
    while left:
        inner, level = left.pop()
        if not isinstance(inner, Mapping | list | tuple):
            continue
        if level > MOST_LEVELS:
            raise ValueError(f"{what}nested too deeply: at most {MOST_LEVELS} tables and lists in each other")
        entries = inner.values() if isinstance(inner, Mapping) else inner
        left += [(entry, level + 1) for entry in entries]
