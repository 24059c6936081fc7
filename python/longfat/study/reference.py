"""A section's JSON Schema as rows to read: its keys, what each may hold, its default, and what it means."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from longfat.study.schema import resolve

_NAMES = {"boolean": "true | false", "array": "list", "string": "text", "integer": "number"}


@dataclass(frozen=True)
class Row:
    """One key of a section, or (at a deeper `depth`) one of its words or of its table's keys."""

    depth: int
    key: str
    values: str
    default: str
    help: str


def rows(schema: dict[str, Any], definitions: dict[str, Any], depth: int = 0) -> Iterator[Row]:
    """The keys of one table, what tells kinds apart first; under each the words and tables that it takes."""
    properties: dict[str, Any] = schema.get("properties", {})
    required = schema.get("required", [])
    for key in sorted(properties, key=lambda name: name not in ("kind", "model")):
        content = properties[key]
        if "const" in content and depth:
            continue  # said in the row above
        scalars, tables, words = _alternatives(content, definitions)
        same = [table for table in tables if set(table["properties"]) <= set(properties)]
        values = " | ".join([*scalars, *(["words below"] if words else []), *(["table"] if tables else [])])
        default = "required" if key in required else _plain(content.get("default"))
        yield Row(depth, key, values, default, _help(content, definitions))
        for word, help_text in words.items():
            yield Row(depth + 1, f'"{word}"', "", "", help_text)
        for table in tables:
            if table in same:
                yield Row(depth + 1, "{...}", "", "", "a table with any of the other keys here")
            else:
                yield Row(depth + 1, _shape(table), "", "", _one_line(table.get("description", "")))
                yield from rows(table, definitions, depth + 2)


def _alternatives(
    content: dict[str, Any], definitions: dict[str, Any]
) -> tuple[list[str], list[dict[str, Any]], dict[str, str]]:
    """What a key may hold: scalars in a few words each, tables, and single words with their help."""
    content = resolve(content, definitions)
    scalars: list[str] = []
    tables: list[dict[str, Any]] = []
    words: dict[str, str] = {}
    nested = content.get("anyOf") or content.get("oneOf")
    if nested:
        for alternative in nested:
            inner_scalars, inner_tables, inner_words = _alternatives(alternative, definitions)
            scalars += [text for text in inner_scalars if text not in scalars]
            tables += inner_tables
            words |= inner_words
    elif "const" in content:
        words[str(content["const"])] = _one_line(content.get("description", ""))
    elif content.get("properties"):
        tables.append(content)
    elif text := _scalar(content):
        scalars.append(text)
    return scalars, tables, words


def _scalar(content: dict[str, Any]) -> str:
    if "enum" in content:
        return " | ".join(str(word) for word in content["enum"] if word is not None)
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


def _shape(table: dict[str, Any]) -> str:
    """A table by the word that names its kind, else by its keys."""
    for key, content in table["properties"].items():
        if "const" in content:
            return f'{{ {key} = "{content["const"]}" }}'
    return "{ " + ", ".join(table["properties"]) + " }"


def _help(content: dict[str, Any], definitions: dict[str, Any]) -> str:
    return _one_line(content.get("description") or resolve(content, definitions).get("description", ""))


def _one_line(text: str) -> str:
    return " ".join(str(text).split())


def _plain(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
