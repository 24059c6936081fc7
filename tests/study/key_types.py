"""Writes the types of study keys, `python/longfat/study/key_types.py`: `python -m tests.study.key_types`."""

from __future__ import annotations

import json
import keyword
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from longfat import _native
from longfat.study.specification import ProtocolEntry

TARGET = Path(__file__).parents[2] / "python" / "longfat" / "study" / "key_types.py"
HEAD = '''"""The keys of study tables as types, for editors and type checkers.

Generated from the vocabulary (`make reference`); not for editing. Quantities are text with units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, SupportsIndex, TypedDict

from longfat.study.plain import HasSettings

'''
_PLAIN = {"string": "str", "integer": "SupportsIndex", "number": "float", "boolean": "bool", "null": "None"}
_CLASSES = ("CongestionControl", "Queue", "Policy", "Scheduler")
"""Definitions whose kind may also be a Python class."""
_WIDTH = 104

Schema = dict[str, Any]


class Types:
    """The types of one section's schema; tables become typed dictionaries."""

    def __init__(self, section: str, definitions: dict[str, Schema]) -> None:
        self.section = section
        self.definitions = definitions
        self.tables: dict[str, str] = {}

    def of(self, schema: Schema, name: str) -> list[str]:
        """Returns the alternatives of a schema; `name` is that of a table in it."""
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            found = self.of(self.definitions[name], name)
            return [*found, "type[Any]"] if name in _CLASSES else found
        if "const" in schema:
            return [f'Literal["{schema["const"]}"]']
        if "enum" in schema:
            return [f'Literal["{value}"]' for value in schema["enum"]]
        if "properties" in schema:
            return [self.table(name, [schema]), "HasSettings"]
        for key in ("anyOf", "oneOf"):
            if key in schema:
                return self.either(schema[key], name)
        kind = schema.get("type", "object")
        kinds = kind if isinstance(kind, list) else [kind]
        return [one for kind in kinds for one in self.simple(kind, schema, name)]

    def simple(self, kind: str, schema: Schema, name: str) -> list[str]:
        """Returns a plain type, a list or a table with any keys."""
        if kind == "array":
            items = self.union(schema.get("items") or {}, name) if schema.get("items") else "Any"
            return [f"Sequence[{items}]"]
        return [_PLAIN.get(kind, "Mapping[str, Any]")]

    def either(self, schemas: list[Schema], name: str) -> list[str]:
        """Returns the alternatives of several schemas; all tables among them become one."""
        flat = [one for schema in schemas for one in self.flattened(schema)]
        tables = [one for one in flat if "properties" in one]
        found = [part for one in flat if "properties" not in one for part in self.of(one, name)]
        return [*found, *([self.table(name, tables), "HasSettings"] if tables else [])]

    def flattened(self, schema: Schema) -> list[Schema]:
        """Returns the alternatives within alternatives."""
        for key in ("anyOf", "oneOf"):
            if key in schema and "properties" not in schema:
                return [one for inner in schema[key] for one in self.flattened(inner)]
        return [schema]

    def resolved(self, schema: Schema) -> Schema:
        """Returns the definition of a reference."""
        return self.definitions[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema

    def union(self, schema: Schema, name: str) -> str:
        """Returns a schema as the text of a type."""
        parts = list(dict.fromkeys(self.of(schema, name)))
        named = [part for part in parts if part.startswith("Literal") and "str" not in parts]
        literals = [part.removeprefix("Literal[").removesuffix("]") for part in named]
        others = [part for part in parts if not part.startswith("Literal")]
        return " | ".join([*([f"Literal[{', '.join(literals)}]"] if literals else []), *others])

    def table(self, name: str, schemas: list[Schema], *, without: tuple[str, ...] = ()) -> str:
        """Adds a typed dictionary with the keys of all schemas; returns its name."""
        name = f"{self.section}{'' if name == self.section else name}Keys"
        if name in self.tables:
            return name
        self.tables[name] = ""
        keys: dict[str, list[str]] = {}
        help_: dict[str, str] = {}
        for schema in schemas:
            for key, value in schema["properties"].items():
                found = self.union(value, key.title().replace("_", ""))
                keys.setdefault(key, []).append(found)
                help_.setdefault(key, str(value.get("description", "")))
        lines = [f"class {name}(TypedDict, total=False):", f'    """Keys of {_article(name)}."""', ""]
        reserved = [key for key in keys if keyword.iskeyword(key)]
        for key, types in keys.items():
            if key not in reserved and key not in without:
                lines += [f"    {key}: {_joined(types)}", *_help(help_[key])]
        if len(lines) == 3:
            lines.append("    pass")
        if reserved:
            # Keys such as "from" are no names in Python.
            pairs = ", ".join(
                f"'{key}': {_quoted(types)}" for key, types in keys.items() if key not in without
            )
            self.tables[name] = f"{name} = TypedDict('{name}', {{{pairs}}}, total=False)\n"
        else:
            self.tables[name] = "\n".join(lines) + "\n"
        return name


def _quoted(types: list[str]) -> str:
    """Returns a type as text in quotes, since its names may follow later."""
    return repr(_joined(types))


def _joined(unions: list[str]) -> str:
    """Returns the union of unions, each alternative once."""
    return " | ".join(dict.fromkeys(part for union in unions for part in union.split(" | ")))


def _article(name: str) -> str:
    return f"the table `{name.removesuffix('Keys')}`"


def _help(text: str) -> list[str]:
    text = " ".join(text.split()).replace("\\", "\\\\").replace('"""', "'''")
    if not text:
        return []
    text = f"{text} " if text.endswith('"') else text
    words, lines = f'"""{text}"""'.split(), [""]
    for word in words:
        if len(lines[-1]) + len(word) >= _WIDTH:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return [f"    {line}" for line in lines]


def _of_kind(schema: Schema, definitions: dict[str, Schema], kind: str) -> bool:
    about = schema.get("properties", {}).get("kind", {})
    return f'"{kind}"' in json.dumps([about, definitions.get(str(about.get("$ref", "")).rpartition("/")[2])])


def _sections() -> list[str]:
    vocabulary = json.loads(_native.vocabulary())
    parts: list[str] = []
    for section in ("path", "topology", "workload", "protocol", "traffic"):
        schema = vocabulary[section]
        title = section.title()
        types = Types(title, schema.get("$defs", {}))
        families = types.flattened(schema)
        families = [
            types.definitions[one["$ref"].rpartition("/")[2]] if "$ref" in one else one for one in families
        ]
        without = () if section == "path" else ("kind", "name") if section != "traffic" else ("name",)
        if section == "protocol":
            label = ProtocolEntry.model_json_schema()["properties"]["label"]
            families = [{**one, "properties": {"label": label, **one["properties"]}} for one in families]
            for name, kind in (
                ("Tcp", "tcp"),
                ("Mptcp", "mptcp"),
                ("Quic", "quic"),
                ("Udp", "udp"),
                ("Arq", "go-back-n"),
            ):
                own = [one for one in families if _of_kind(one, types.definitions, kind)]
                left_out = (*without, "congestion") if name == "Tcp" else without
                types.table(name, own, without=left_out)
        types.table(title, families, without=without)
        parts += types.tables.values()
        if section in ("topology", "workload"):
            kinds = [part for one in families for part in types.of(one["properties"]["kind"], "Kind")]
            names = ", ".join(
                dict.fromkeys(part.removeprefix("Literal[").removesuffix("]") for part in kinds)
            )
            parts.append(f'{title}Kind = Literal[{names}]\n"""Kinds of the table `{title}`."""\n')
    return parts


def _without_copies(parts: list[str]) -> list[str]:
    """Replaces tables that equal an earlier one: several sections have links and controllers."""
    while True:
        first: dict[str, str] = {}
        copies: dict[str, str] = {}
        kept = []
        for part in parts:
            if not (found := re.match(r"class (\w+)Keys\(", part)):
                kept.append(part)
                continue
            name = f"{found[1]}Keys"
            body = re.sub(rf"\b{found[1]}(Keys)?\b", "", part)
            if (known := first.setdefault(body, name)) == name:
                kept.append(part)
            else:
                copies[name] = known
        if not copies:
            return parts
        for name, known in copies.items():
            kept = [re.sub(rf"\b{name}\b", known, part) for part in kept]
        parts = kept


def text() -> str:
    """Returns the content of the file."""
    raw = HEAD + "\n\n".join(_without_copies(_sections()))
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(TARGET), "-"],
        input=raw,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


if __name__ == "__main__":
    TARGET.write_text(text(), encoding="utf-8")
