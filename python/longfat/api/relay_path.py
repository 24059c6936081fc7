"""The path of a TCP relay: which keys it supports, and changes of them at run time."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_SIDES = ("", "reverse.")
"""Prefixes of the keys of a link."""
_FIXED = {
    "cell": "part of the relay from its start: start another relay",
    "down": "scheduled at the start only: start an outage instead",
    "wifi": "part of the relay from its start: start another relay",
}
"""Keys that a running relay cannot change, with the reason."""


def refuse_unsupported(path: Mapping[str, Any], *, section: str = "") -> None:
    """Raises ValueError for keys that a TCP relay lacks; `section` is their prefix in messages."""
    from longfat.study.problems import Problem, StudyError

    problems = [
        Problem(section + key, f"not in longfat relay --tcp, {reason}; use longfat net")
        for key, reason in _unsupported(path)
    ]
    if problems:
        raise StudyError("", problems)


def changed_path(path: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a path with changed keys; None removes a key.

    Raises ValueError for keys that are not valid, and for those that a running relay cannot change.
    """
    from longfat.study.keys import place
    from longfat.study.problems import Problem, StudyError
    from longfat.study.tables import refuse

    changed = copy.deepcopy(dict(path))
    for key, value in changes.items():
        if value is None:
            _remove(changed, key.split("."))
        else:
            place(changed, key, value)
    refuse("path", changed)
    refuse_unsupported(changed)
    problems = [
        Problem(side + key, reason)
        for side in _SIDES
        for key, reason in _FIXED.items()
        if _link(path, side).get(key) != _link(changed, side).get(key)
    ]
    if problems:
        raise StudyError("", problems)
    return changed


def _unsupported(path: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for side in _SIDES:
        link = _link(path, side)
        if "nat" in link:
            yield f"{side}nat", "whose hosts have one address each"
        queue = link.get("queue")
        if isinstance(queue, Mapping) and queue.get("ack_filter"):
            yield f"{side}queue.ack_filter", "whose queues do not read ACKs"


def _link(path: Mapping[str, Any], side: str) -> Mapping[str, Any]:
    link = path.get("reverse", {}) if side else path
    return link if isinstance(link, Mapping) else {}


def _remove(table: dict[str, Any], parts: Sequence[str]) -> None:
    """Removes a dotted key, if it is there."""
    *parents, last = parts
    for part in parents:
        inner = table.get(part)
        if not isinstance(inner, dict):
            return
        table = inner
    table.pop(last, None)
