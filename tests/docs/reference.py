"""The generated tables of docs/reference: study keys, metrics and flow columns, from the schemas.

A page marks each table with `<!-- generated: NAME -->` and `<!-- end -->`. `make reference` rewrites them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from longfat.study.reference import alternatives, description, kind_of, plain_default
from longfat.study.schema import variants
from longfat.study.specification import Study
from longfat.study.vocabulary import Section, metrics, short_metric, vocabulary

FOLDER = Path(__file__).parents[2] / "docs" / "reference"
BLOCK = re.compile(r"(?<=<!-- generated: )(?P<name>[a-z-]+) -->\n(?P<text>.*?)(?=<!-- end -->)", re.DOTALL)

Schema = Mapping[str, Any]
Line = tuple[str, ...]

QUANTITIES = {
    "20ms": "time",
    "100Mbit/s": "rate",
    "1500B": "size",
    "2%": "percentage",
    "100pkt": "packets or size",
    "1000/s": "frequency",
    "aimd.py:Aimd": "Python class",
    "fastest.py:Fastest": "Python class",
    "nearest.py:Nearest": "Python class",
    "red.py:Red": "Python class",
    "object": "table",
}
"""The first example of each quantity's schema, and the name that the reference gives the quantity."""


def table(header: Line, lines: Iterator[Line]) -> str:
    """Returns a table in Markdown."""
    return "".join(
        "| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |\n"
        for line in [header, ("---",) * len(header), *lines]
    )


def keys(schema: Schema, definitions: dict[str, Any], pages: Mapping[str, str]) -> str:
    """Returns the table of a schema's keys. `pages` names the page that documents a key's tables or kinds."""
    return table(("key", "value", "default", "meaning"), _key_lines(schema, definitions, pages, ""))


def _key_lines(
    schema: Schema, definitions: dict[str, Any], pages: Mapping[str, str], prefix: str
) -> Iterator[Line]:
    for key in sorted(schema["properties"], key=lambda name: name not in ("kind", "model")):
        content = schema["properties"][key]
        if prefix and kind_of({"properties": {key: content}}, definitions):
            continue  # The line above names the kind.
        scalars, tables, words = alternatives(content, definitions)
        values = [QUANTITIES.get(text.strip('"'), text) for text in scalars]
        meaning = description(content, definitions)
        page = pages.get(key)
        if page:
            values = ["name" if " | " in text else text for text in values] + ["name"] * bool(words)
            meaning += f" See [{page}]({page}.md)."
        else:
            values += [f'`"{word}"`' for word in words]
            if len(words) > 1:
                meaning += "".join(f"<br>`{word}`: {text}" for word, text in words.items() if text)
        values += ["table"] * bool(tables)
        default = "required" if key in schema.get("required", []) else plain_default(content.get("default"))
        yield f"`{prefix}{key}`", " | ".join(dict.fromkeys(values)), default, meaning
        if page:
            continue
        for inner in tables:
            if kind := kind_of(inner, definitions):
                yield f"`{prefix}{key} = {kind}`", "", "", description(inner, definitions)
            elif set(inner["properties"]) <= set(schema["properties"]):
                continue  # The same keys occur above, such as those of `reverse`.
            yield from _key_lines(inner, definitions, pages, f"{prefix}{key}.")


def kinds(content: Schema, definitions: dict[str, Any], pages: Mapping[str, str], level: str = "##") -> str:
    """Returns a heading, the description and the keys of each kind that a key's tables can have."""
    _, tables, _ = alternatives(dict(content), definitions)
    parts = []
    for inner in tables:
        name = re.search(r'"(.*)"', kind_of(inner, definitions))
        if name is None or name[1] in QUANTITIES:
            continue
        lines = list(_key_lines(inner, definitions, pages, "x."))
        parts.append(f"{level} `{name[1]}`\n\n{description(inner, definitions)}\n")
        if lines:
            parts.append(table(("key", "value", "default", "meaning"), map(_unprefixed, lines)))
    return "\n".join(parts)


def _unprefixed(line: Line) -> Line:
    return (line[0].replace("`x.", "`", 1), *line[1:])


def _section(section: Section, number: int = 0) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the schema of one variant of a section, and its definitions."""
    schema = vocabulary()[section]
    definitions = schema.get("$defs", {})
    return variants(schema, definitions)[number], definitions


def _keys_of(section: Section, number: int = 0, **pages: str) -> Callable[[], str]:
    def text() -> str:
        schema, definitions = _section(section, number)
        return keys(schema, definitions, pages)

    return text


def _kinds_of(section: Section, key: str, number: int = 0, **pages: str) -> Callable[[], str]:
    def text() -> str:
        schema, definitions = _section(section, number)
        return kinds(schema["properties"][key], definitions, pages)

    return text


def _topology(**pages: str) -> Callable[[], str]:
    """The description and the keys of each kind of topology."""

    def text() -> str:
        schema = vocabulary()["topology"]
        return kinds(schema, schema.get("$defs", {}), pages)

    return text


def _mptcp() -> str:
    """The keys that Multipath TCP adds to TCP's, and the names of those that it shares."""
    schema, definitions = _section("protocol", 1)
    tcp = _section("protocol")[0]["properties"]
    shared = [key for key, content in schema["properties"].items() if tcp.get(key) == content]
    own = {key: content for key, content in schema["properties"].items() if key not in shared}
    added = keys(
        {**schema, "properties": own}, definitions, {"scheduler": "schedulers", "policy": "policies"}
    )
    names = ", ".join(f"`{key}`" for key in sorted(shared))
    return f"{added}\nThese keys of [TCP](tcp.md) apply to each subflow: {names}.\n"


def _study(definition: str | None, **pages: str) -> Callable[[], str]:
    def text() -> str:
        schema = Study.model_json_schema()
        definitions: dict[str, Any] = schema["$defs"]
        return keys(schema if definition is None else definitions[definition], definitions, pages)

    return text


def _presets() -> str:
    lines = ((f"`{name}`", f"`{_inline(settings)}`") for name, settings in vocabulary()["presets"].items())
    return table(("preset", "keys"), lines)


def _inline(value: Any) -> str:
    if not isinstance(value, dict):
        return str(value).lower() if isinstance(value, bool) else f'"{value}"'
    parts = [
        f"{key} = {{ {_inline(v)} }}" if isinstance(v, dict) else f"{key} = {_inline(v)}"
        for key, v in value.items()
    ]
    return ", ".join(parts)


def _metrics() -> str:
    lines = (
        (
            f"`{short_metric(column)}`",
            f"`{column}`",
            str(about["unit"]),
            str(about["better"]),
            str(about["help"]),
        )
        for column, about in metrics().items()
    )
    return table(("metric", "column", "unit", "better", "definition"), lines)


_TYPES = {"integer": "integer", "number": "number", "string": "text", "array": "list of integers"}


def _flows() -> str:
    def lines() -> Iterator[Line]:
        for column, about in vocabulary()["flows"]["properties"].items():
            types = about["type"] if isinstance(about["type"], list) else [about["type"]]
            yield (
                f"`{column}`",
                " or ".join(_TYPES.get(str(name), str(name)) for name in types),
                str(about["description"]),
            )

    return table(("column", "type", "meaning"), lines())


_TCP, _ARQ, _QUIC, _UDP, _ICMP = 0, 2, 3, 4, 5
_LINKS = ("access", "bottleneck", "exit", "hub", "leaf", "level", "link", "path", "uplink")
TABLES: dict[str, Callable[[], str]] = {
    "study": _study(
        None,
        **{name: name for name in ("path", "topology", "workload", "traffic", "claims")},
        protocols="protocols",
        sweep="sweeps",
        reported="claims",
        show="metrics",
    ),
    "claims": _study("Claim"),
    "reported": _study("Reported"),
    "path": _keys_of("path", queue="queue", loss="loss"),
    "queue": _kinds_of("path", "queue"),
    "loss": _kinds_of("path", "loss"),
    "presets": _presets,
    "topology": _topology(**dict.fromkeys(_LINKS, "path")),
    "workload": _keys_of("workload"),
    "traffic": _keys_of("traffic", protocol="protocols", workload="workload"),
    "tcp": _keys_of("protocol", _TCP, congestion="controllers"),
    "controllers": _kinds_of("protocol", "congestion", _TCP),
    "mptcp": _mptcp,
    "schedulers": _kinds_of("protocol", "scheduler", 1),
    "policies": _kinds_of("protocol", "policy", 1),
    "arq": _keys_of("protocol", _ARQ, congestion="controllers"),
    "quic": _keys_of("protocol", _QUIC, congestion="controllers"),
    "udp": _keys_of("protocol", _UDP),
    "icmp": _keys_of("protocol", _ICMP),
    "metrics": _metrics,
    "flows": _flows,
}


def pages() -> list[Path]:
    """Returns the pages of the reference."""
    return sorted(FOLDER.glob("*.md"))


def written() -> dict[str, str]:
    """Returns the tables as they are on the pages, by name."""
    return {
        match["name"]: match["text"]
        for page in pages()
        for match in BLOCK.finditer(page.read_text(encoding="utf-8"))
    }


def write() -> None:
    """Rewrites the tables of all pages."""
    for page in pages():
        text = page.read_text(encoding="utf-8")
        page.write_text(
            BLOCK.sub(lambda m: f"{m['name']} -->\n{TABLES[m['name']]()}", text), encoding="utf-8"
        )


if __name__ == "__main__":
    write()
