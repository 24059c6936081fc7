"""Which swept keys change the values of a study's expressions: the others need no evaluation of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from longfat.study.expressions import settings
from longfat.study.expressions.dimension import ExpressionError
from longfat.study.expressions.parsing import names, parse
from longfat.study.vocabulary import vocabulary

NETWORKS = ("path", "topology")
WORKLOAD = "workload"
Placed = Sequence[tuple[str, Any]]
"""Dotted keys of a specification and their values."""


@dataclass(frozen=True)
class Dependencies:
    """The keys of a sweep, by number, that change values of expressions, and the sections with these."""

    axes: frozenset[int]
    sections: frozenset[str]


def dependencies(
    base: Mapping[str, Any], swept: Sequence[Sequence[Placed]], protocol: str = ""
) -> Dependencies:
    """Returns the dependencies of a specification, and of the settings by each value of each swept key.

    RTT and BDP depend on the network, and on the keys of the workload that choose hosts
    (`HOST_KEYS` in `crates/experiment`). In sections with lists of tables, whose entries have names and
    numbers, all keys count as one.
    """
    own = f"protocols.{protocol}."
    found = list(_expressions(base, swept))
    with_lists = frozenset(
        name for name in base if _has_tables_in_lists(base[name]) or _sweeps_lists(name, swept)
    )
    axes = set()
    for axis, points in enumerate(swept):
        keys = {key for placed in points for key, _ in placed}
        for key, text in found:
            reached = [key, *(name.replace(own, "protocol.", 1) for name in _names(text))]
            if any(_overlap(one, other, with_lists) for one in keys for other in reached) or (
                _uses_path(text) and any(map(_chooses_path, keys))
            ):
                axes.add(axis)
    return Dependencies(frozenset(axes), frozenset(key.partition(".")[0] for key, _ in found))


def _expressions(base: Mapping[str, Any], swept: Sequence[Sequence[Placed]]) -> Iterator[tuple[str, str]]:
    """Yields the dotted keys with expressions, and these."""
    for name, section in base.items():
        for place, text in settings.expressions(section, name):
            yield settings.dotted(place), text
    for points in swept:
        for placed in points:
            for key, value in placed:
                for place, text in settings.expressions(value, key):
                    yield settings.dotted(place), text


def _names(text: str) -> Iterable[str]:
    try:
        return names(parse(text))
    except ExpressionError:
        return ()  # Its evaluation reports the mistake.


def _uses_path(text: str) -> bool:
    try:
        return settings.is_relative(parse(text))
    except ExpressionError:
        return False


def _chooses_path(key: str) -> bool:
    section, _, rest = key.partition(".")
    hosts = vocabulary()["host_keys"]
    return section in NETWORKS or (section == WORKLOAD and rest.partition(".")[0] in hosts)


def _overlap(one: str, other: str, with_lists: frozenset[str]) -> bool:
    """Returns whether one key is the other, or inside of it.

    >>> _overlap("path.queue", "path.queue.limit", frozenset()), _overlap("path.a", "path.ab", frozenset())
    (True, False)
    """
    section = one.partition(".")[0]
    if section in with_lists and section == other.partition(".")[0]:
        return True
    return f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")


def _has_tables_in_lists(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_has_tables_in_lists, value.values()))
    return isinstance(value, list) and any(isinstance(one, Mapping | list) for one in value)


def _sweeps_lists(name: str, swept: Sequence[Sequence[Placed]]) -> bool:
    """Returns whether a value of a swept key brings a list of tables into a section."""
    placed = (one for points in swept for settings_ in points for one in settings_)
    return any(key.partition(".")[0] == name and _has_tables_in_lists(value) for key, value in placed)
