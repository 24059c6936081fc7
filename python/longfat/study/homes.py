"""The tables of a study that have a key of some name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_TABLES = {"path": "path", "topology": "topology", "workload": "workload", "protocol": "a protocol"}
"""Sections by their schema; hints do not name further ones."""
_NESTED = ("queue", "loss", "congestion", "scheduler", "policy")
"""Keys with a table whose keys users write most."""
_MOST = 3


def hint(key: str, section: str, schemas: Mapping[str, Any]) -> str:
    """Returns which tables have a key of this name, nearest first; empty if none has it, or too many.

    Args:
        key: A name without dots, unknown where it stands.
        section: The section in which it stands; empty for the top level.
        schemas: The JSON Schema of each section.
    """
    homes = dict.fromkeys(_homes(key, section, schemas))
    return f"it is a key of {' or '.join(homes)}" if 0 < len(homes) <= _MOST else ""


def _homes(key: str, section: str, schemas: Mapping[str, Any]) -> Iterator[str]:
    inside = [*_inside(key, schemas[section])] if section in _TABLES else []
    if inside:
        yield from inside
        return
    others = {name: title for name, title in _TABLES.items() if name != section}
    for name, title in others.items():
        if any(key in one.get("properties", {}) for one in _variants(schemas[name], schemas[name]["$defs"])):
            yield title
    for name, title in others.items():
        yield from (f"{inner} of {title}" for inner in _inside(key, schemas[name]))


def _inside(key: str, schema: Mapping[str, Any]) -> Iterator[str]:
    """Yields the nested tables of a section that have the key."""
    definitions = schema["$defs"]
    for variant in _variants(schema, definitions):
        for inner in _NESTED:
            tables = _variants(variant.get("properties", {}).get(inner, {}), definitions)
            if any(key in table.get("properties", {}) for table in tables):
                yield inner


def _variants(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yields a schema with those that it refers to."""
    yield schema
    if "$ref" in schema:
        yield from _variants(definitions[str(schema["$ref"]).rpartition("/")[2]], definitions)
    for alternatives in ("anyOf", "oneOf", "allOf"):
        for one in schema.get(alternatives, ()):
            yield from _variants(one, definitions)
