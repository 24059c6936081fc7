"""Readable rows of a section's JSON Schema: keys, accepted values, defaults and descriptions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from longfat.study.schema import resolve, variants
from longfat.study.vocabulary import Section, vocabulary

_NAMES = {"boolean": "true | false", "array": "list", "string": "text", "integer": "number"}


@dataclass(frozen=True)
class Row:
    """One key of a section. At a deeper `depth`: a value of that key, or a key of its table."""

    depth: int
    key: str
    values: str
    default: str
    help: str


Documented = Sequence[tuple[str, frozenset[str], str]]
"""Tables that are documented elsewhere: a name for the place, the table's keys, and its kind."""


def section_rows(section: Section) -> Iterator[tuple[dict[str, Any], list[Row]]]:
    """Yields the schema and the rows of each kind of a section.

    Keys and tables that are documented elsewhere, in another section or with an earlier kind, get one row.
    """
    schema = vocabulary()[section]
    definitions = schema.get("$defs", {})
    documented = [entry for other in _EMBEDDED.get(section, ()) for entry in _tables_of(other)]
    earlier: dict[str, dict[str, Any]] = {}
    for variant in variants(schema, definitions):
        shared = [key for key, content in variant["properties"].items() if earlier.get(key) == content]
        own = {key: content for key, content in variant["properties"].items() if key not in shared}
        found = list(rows({**variant, "properties": own}, definitions, documented=documented))
        if shared:
            found.append(Row(0, ", ".join(sorted(shared)), "", "", "as above"))
        yield variant, found
        earlier |= own
        for key, content in own.items():
            tables = alternatives(content, definitions)[1]
            documented += [
                (f"{key} above", frozenset(table["properties"]), kind)
                for table in tables
                if (kind := kind_of(table, definitions))
            ]


_EMBEDDED: dict[Section, tuple[Section, ...]] = {
    "topology": ("path",),
    "traffic": ("protocol", "workload"),
}
"""The sections whose tables also appear in another one."""
_SECTION_NAMES: dict[Section, str] = {
    "path": "[path]",
    "protocol": "[[protocols]]",
    "workload": "[workload]",
}


def _tables_of(section: Section) -> Documented:
    schema = vocabulary()[section]
    definitions = schema.get("$defs", {})
    return [
        (_SECTION_NAMES[section], frozenset(variant["properties"]), kind_of(variant, definitions))
        for variant in variants(schema, definitions)
    ]


def rows(
    schema: dict[str, Any], definitions: dict[str, Any], depth: int = 0, documented: Documented = ()
) -> Iterator[Row]:
    """Yields the keys of one table, `kind` first, each followed by its named values and its tables."""
    properties: dict[str, Any] = schema.get("properties", {})
    required = schema.get("required", [])
    for key in sorted(properties, key=lambda name: name not in ("kind", "model")):
        content = properties[key]
        if depth and ("const" in content or _is_kind_by_example(key, content)):
            continue  # The row above names the kind.
        scalars, tables, choices = alternatives(content, definitions)
        values = " | ".join(
            [*scalars, *(["values below"] if choices else []), *(["table"] if tables else [])]
        )
        default = "required" if key in required else plain_default(content.get("default"))
        yield Row(depth, key, values, default, description(content, definitions))
        for choice, help_text in choices.items():
            yield Row(depth + 1, f'"{choice}"', "", "", help_text)
        shown: set[str] = set()
        for table in tables:
            keys = frozenset(table["properties"])
            kind = kind_of(table, definitions)
            place = next((name for name, *known in documented if known == [keys, kind]), "")
            if place:
                if place not in shown:
                    yield Row(depth + 1, "{...}", "", "", f"a table with the keys of {place}")
                shown.add(place)
            elif keys <= set(properties) and not kind:
                yield Row(depth + 1, "{...}", "", "", "a table with any of the other keys here")
            else:
                shape = kind or "{ " + ", ".join(table["properties"]) + " }"
                yield Row(depth + 1, shape, "", "", description(table, definitions))
                yield from rows(table, definitions, depth + 2, documented)


def alternatives(
    content: dict[str, Any], definitions: dict[str, Any]
) -> tuple[list[str], list[dict[str, Any]], dict[str, str]]:
    """Returns what a key accepts: scalars as short texts, tables as schemas, named values with their help."""
    content = resolve(content, definitions)
    scalars: list[str] = []
    tables: list[dict[str, Any]] = []
    named: dict[str, str] = {}
    nested = content.get("anyOf") or content.get("oneOf")
    if nested:
        for alternative in nested:
            inner_scalars, inner_tables, inner_named = alternatives(alternative, definitions)
            scalars += [text for text in inner_scalars if text not in scalars]
            tables += inner_tables
            named |= inner_named
    elif "const" in content:
        named[str(content["const"])] = description(content, definitions)
    elif content.get("properties"):
        tables.append(content)
    elif text := _scalar(content):
        scalars.append(text)
    return scalars, tables, named


def _scalar(content: Mapping[str, Any]) -> str:
    if "enum" in content:
        return " | ".join(str(value) for value in content["enum"] if value is not None)
    if examples := content.get("examples"):
        return f'"{examples[0]}"'
    kinds = content.get("type", "")
    kind = next((k for k in kinds if k != "null"), "") if isinstance(kinds, list) else kinds
    low, high = content.get("minimum"), content.get("maximum")
    if kind in ("integer", "number") and low is not None:
        return f"{low} to {high}" if high is not None else f"{low} or more"
    if kind == "string" and "pattern" in content and "auto" in content["pattern"]:
        return '"auto"'
    return "" if kind == "null" else _NAMES.get(kind, kind)


def kind_of(table: Mapping[str, Any], definitions: dict[str, Any]) -> str:
    """Returns the key that identifies a table's kind, with its value; empty if the table has no kinds."""
    for key, content in table["properties"].items():
        value = only_value(content, definitions)
        if value is None and _is_kind_by_example(key, content):
            value = str(content["examples"][0])
        if value is not None:
            return f'{{ {key} = "{value}" }}'
    return ""


def _is_kind_by_example(key: str, content: Mapping[str, Any]) -> bool:
    """Whether a key names a kind that cannot be listed, such as a Python class, and gives an example."""
    return key == "kind" and "examples" in content


def only_value(content: dict[str, Any], definitions: dict[str, Any]) -> str | None:
    """Returns the only value that a key accepts; None if it accepts several."""
    content = resolve(content, definitions)
    listed = content.get("oneOf") or content.get("anyOf") or [content]
    values = content.get("enum") or [one["const"] for one in listed if "const" in one]
    return str(values[0]) if len(values) == 1 and len(listed) == 1 else None


def description(content: dict[str, Any], definitions: dict[str, Any]) -> str:
    """Returns the description of a key or table on one line."""
    text = content.get("description") or resolve(content, definitions).get("description", "")
    return " ".join(str(text).split())


def plain_default(value: Any) -> str:
    """Returns a default as a study file writes it; empty for None."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
