"""Names that shells complete: studies, topics, and the values of keys such as presets.

Without a match the shell completes file names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any


def matching(names: Iterable[str], incomplete: str) -> list[str]:
    """Returns the names that start with a text.

    >>> matching(["lan", "lte", "wifi"], "l")
    ['lan', 'lte']
    """
    return [name for name in names if name.startswith(incomplete)]


def studies(incomplete: str) -> list[str]:
    """Returns the built-in studies that start with a text."""
    from longfat.study.catalogue import builtin

    return matching(builtin(), incomplete)


def topics(incomplete: str) -> list[str]:
    """Returns the topics of `longfat list` that start with a text."""
    from longfat.cli.commands.list import TOPICS

    return matching(TOPICS, incomplete)


def presets(incomplete: str) -> list[str]:
    """Returns the presets of paths that start with a text."""
    from longfat.study.vocabulary import vocabulary

    return matching(vocabulary()["presets"], incomplete)


def values(about: Mapping[str, Any], definitions: Mapping[str, Any]) -> Callable[[str], list[str]] | None:
    """Returns the completion of a key's values by its JSON Schema; None if it has no named values."""
    names = list(dict.fromkeys(_names(about, definitions)))
    return (lambda incomplete: matching(names, incomplete)) if names else None


def _names(about: Mapping[str, Any], definitions: Mapping[str, Any]) -> Iterable[str]:
    if "$ref" in about:
        yield from _names(definitions[about["$ref"].rpartition("/")[2]], definitions)
    if isinstance(about.get("const"), str):
        yield about["const"]
    yield from (name for name in about.get("enum", ()) if isinstance(name, str))
    for part in (*about.get("anyOf", ()), *about.get("oneOf", ())):
        yield from _names(part, definitions)
