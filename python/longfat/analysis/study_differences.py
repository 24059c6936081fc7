"""The keys in which the studies of two runs differ: what a comparison of the runs compares."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from longfat.study import Study

_TEXTS = {"extends", "title", "source", "description", "notes", "show", "claims", "chart"}
"""Keys that change no trial."""


def differences(first: Study, second: Study) -> tuple[tuple[str, Any, Any], ...]:
    """Returns each key of a study that changes trials with its values, which differ; None for a missing one.

    Tables are compared key by key, lists entry by entry.
    """
    one, other = (dict(_leaves(study.model_dump(exclude=_TEXTS))) for study in (first, second))
    keys = list(dict.fromkeys([*one, *other]))
    return tuple((key, one.get(key), other.get(key)) for key in keys if one.get(key) != other.get(key))


def _leaves(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Yields each value that is no table and no list, with its dotted key.

    >>> list(_leaves({"path": {"rate": "1Mbit/s", "hops": [{"delay": 1}]}, "seed": 1}))
    [('path.rate', '1Mbit/s'), ('path.hops.0.delay', 1), ('seed', 1)]
    """
    if isinstance(value, dict):
        named = list(value.items())
    elif isinstance(value, list | tuple):
        named = list(enumerate(value))
    else:
        yield key, value
        return
    for name, inner in named:
        yield from _leaves(inner, f"{key}.{name}" if key else str(name))
