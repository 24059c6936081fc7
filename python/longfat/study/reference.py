"""A section's JSON Schema as rows to read: its keys, what each may hold, its default, and what it means."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from longfat.study.schema import resolve, variants
from longfat.study.vocabulary import Section, vocabulary

_NAMES = {"boolean": "true | false", "array": "list", "string": "text", "integer": "number"}


@dataclass(frozen=True)
class Row:
    """One key of a section, or (at a deeper `depth`) one of its words or of its table's keys."""

    depth: int
    key: str
    values: str
    default: str
    help: str


Told = Sequence[tuple[str, frozenset[str]]]
"""Tables that are told elsewhere: how to name them, and their keys."""


def section_rows(section: Section) -> Iterator[tuple[dict[str, Any], list[Row]]]:
    """Each kind of a section (its schema, with the `description`) and its rows.

    Tables that another section has, such as a path's keys in a topology's links, are named and not repeated.
    """
    schema = vocabulary()[section]
    definitions = schema.get("$defs", {})
    told = [entry for other in _TELLERS.get(section, ()) for entry in _told(other)]
    for variant in variants(schema, definitions):
        yield variant, list(rows(variant, definitions, told=told))


_TELLERS: dict[Section, tuple[Section, ...]] = {
    "topology": ("path",),
    "traffic": ("protocol", "workload"),
}
"""The sections whose tables stand in another one too."""
_NAMES_OF_SECTIONS: dict[Section, str] = {
    "path": "[path]",
    "protocol": "[[protocols]]",
    "workload": "[workload]",
}


def _told(section: Section) -> Told:
    schema = vocabulary()[section]
    listed = variants(schema, schema.get("$defs", {}))
    return [(_NAMES_OF_SECTIONS[section], frozenset(variant["properties"])) for variant in listed]


def rows(
    schema: dict[str, Any], definitions: dict[str, Any], depth: int = 0, told: Told = ()
) -> Iterator[Row]:
    """The keys of one table, what tells kinds apart first; under each the words and tables that it takes."""
    properties: dict[str, Any] = schema.get("properties", {})
    required = schema.get("required", [])
    for key in sorted(properties, key=lambda name: name not in ("kind", "model")):
        content = properties[key]
        if depth and ("const" in content or _is_kind_by_example(key, content)):
            continue  # said in the row above
        scalars, tables, words = _alternatives(content, definitions)
        same = [
            table
            for table in tables
            if set(table["properties"]) <= set(properties) and not _kind(table, definitions)
        ]
        values = " | ".join([*scalars, *(["words below"] if words else []), *(["table"] if tables else [])])
        default = "required" if key in required else _plain(content.get("default"))
        yield Row(depth, key, values, default, _help(content, definitions))
        for word, help_text in words.items():
            yield Row(depth + 1, f'"{word}"', "", "", help_text)
        named: set[str] = set()
        for table in tables:
            elsewhere = next((name for name, keys in told if keys == frozenset(table["properties"])), "")
            if elsewhere:
                if elsewhere not in named:
                    yield Row(depth + 1, "{...}", "", "", f"a table with the keys of {elsewhere}")
                named.add(elsewhere)
            elif table in same:
                yield Row(depth + 1, "{...}", "", "", "a table with any of the other keys here")
            else:
                shape = _shape(table, definitions)
                yield Row(depth + 1, shape, "", "", _one_line(table.get("description", "")))
                yield from rows(table, definitions, depth + 2, told)


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


def _shape(table: dict[str, Any], definitions: dict[str, Any]) -> str:
    """A table by the word that names its kind, else by its keys."""
    return _kind(table, definitions) or "{ " + ", ".join(table["properties"]) + " }"


def _kind(table: dict[str, Any], definitions: dict[str, Any]) -> str:
    """The key of a table that holds one word alone, with the word; empty where there is none."""
    for key, content in table["properties"].items():
        word = only_word(content, definitions)
        if word is None and _is_kind_by_example(key, content):
            word = str(content["examples"][0])
        if word is not None:
            return f'{{ {key} = "{word}" }}'
    return ""


def _is_kind_by_example(key: str, content: dict[str, Any]) -> bool:
    """Whether a key names a kind that nobody can list, such as a class of Python, and shows one."""
    return key == "kind" and "examples" in content


def only_word(content: dict[str, Any], definitions: dict[str, Any]) -> str | None:
    """The one word that a key may hold; None where it may hold anything else."""
    content = resolve(content, definitions)
    listed = content.get("oneOf") or content.get("anyOf") or [content]
    words = content.get("enum") or [one["const"] for one in listed if "const" in one]
    return str(words[0]) if len(words) == 1 and len(listed) == 1 else None


def _help(content: dict[str, Any], definitions: dict[str, Any]) -> str:
    return _one_line(content.get("description") or resolve(content, definitions).get("description", ""))


def _one_line(text: str) -> str:
    return " ".join(str(text).split())


def _plain(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
