"""The tables of docs/study-file.md, made from what the program itself declares.

`LONGFAT_WRITE_DOCS=1 pytest tests/docs` writes them anew.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from longfat.study.reference import Row, rows, section_rows
from longfat.study.specification import Study
from longfat.study.vocabulary import Section, metrics, short_metric, vocabulary

PAGE = Path(__file__).parents[2] / "docs" / "study-file.md"
BLOCK = re.compile(
    r"(?<=<!-- vocabulary: )(?P<name>[a-z]+)(?: -->\n)(?P<table>.*?)(?=<!-- end -->)", re.DOTALL
)

Line = tuple[str, ...]


def _named(found: Iterator[Row]) -> Iterator[Line]:
    """Rows with their keys written out in full: `loss.enter_bad`, `loss = { model = "every" }`."""
    above: dict[int, str] = {}
    for row in found:
        owner = next((above[depth] for depth in range(row.depth - 1, -1, -1) if depth in above), "")
        above = {depth: key for depth, key in above.items() if depth < row.depth}
        if row.key.startswith(('"', "{")):
            name = f"{owner} = {row.key}"
        else:
            name = above[row.depth] = f"{owner}.{row.key}" if owner else row.key
        yield f"`{name}`", row.values, row.default, row.help


def _section(name: Section) -> Callable[[], Iterator[Line]]:
    def lines() -> Iterator[Line]:
        for variant, found in section_rows(name):
            help_text = " ".join(str(variant.get("description", "")).split())
            for key, values, default, about in _named(iter(found)):
                said = about or (help_text if key.startswith("`kind = ") else "")
                yield key, values, default, said

    return lines


def _skeleton(definition: str | None) -> Callable[[], Iterator[Line]]:
    def lines() -> Iterator[Line]:
        schema = Study.model_json_schema()
        definitions: dict[str, Any] = schema["$defs"]
        for key, values, default, about in _named(
            rows(schema if definition is None else definitions[definition], definitions)
        ):
            yield key, values.replace("object", "table"), default, about

    return lines


def _presets() -> Iterator[Line]:
    for name, keys in vocabulary()["presets"].items():
        yield f"`{name}`", f"`{_inline(keys)}`"


def _inline(value: Any) -> str:
    if not isinstance(value, dict):
        return str(value).lower() if isinstance(value, bool) else f'"{value}"'
    parts = [
        f"{key} = {{ {_inline(v)} }}" if isinstance(v, dict) else f"{key} = {_inline(v)}"
        for key, v in value.items()
    ]
    return ", ".join(parts)


def _metrics() -> Iterator[Line]:
    for column, about in metrics().items():
        yield (
            f"`{short_metric(column)}`",
            f"`{column}`",
            str(about["unit"]),
            str(about["better"]),
            str(about["help"]),
        )


_TYPES = {"integer": "whole number", "number": "number", "string": "text", "array": "list of whole numbers"}


def _flows() -> Iterator[Line]:
    for column, about in vocabulary()["flows"]["properties"].items():
        kinds = about["type"] if isinstance(about["type"], list) else [about["type"]]
        told = " or ".join(_TYPES.get(str(kind), str(kind)) for kind in kinds)
        yield f"`{column}`", told, str(about["description"])


_KEYS = ("key", "values", "default", "what")
TABLES: dict[str, tuple[Line, Callable[[], Iterator[Line]]]] = {
    "study": (_KEYS, _skeleton(None)),
    "claims": (_KEYS, _skeleton("Claim")),
    "reported": (_KEYS, _skeleton("Reported")),
    "path": (_KEYS, _section("path")),
    "topology": (_KEYS, _section("topology")),
    "presets": (("preset", "stands for"), _presets),
    "protocols": (_KEYS, _section("protocol")),
    "workload": (_KEYS, _section("workload")),
    "traffic": (_KEYS, _section("traffic")),
    "metrics": (("metric", "column", "unit", "better", "what"), _metrics),
    "flows": (("column", "holds", "what"), _flows),
}


def table(name: str) -> str:
    """One table in Markdown."""
    header, lines = TABLES[name]
    all_lines = [header, ("---",) * len(header), *lines()]
    return "".join(
        "| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |\n" for line in all_lines
    )


def first_cells(text: str) -> list[str]:
    """What a table's rows are about, in order of the alphabet."""
    return sorted(line.split(" | ")[0].removeprefix("| ") for line in text.splitlines()[2:])


def written() -> dict[str, str]:
    """The tables that stand on the page."""
    return {match["name"]: match["table"] for match in BLOCK.finditer(PAGE.read_text(encoding="utf-8"))}


def write() -> None:
    """Writes every table on the page anew."""
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(BLOCK.sub(lambda m: f"{m['name']} -->\n{table(m['name'])}", text), encoding="utf-8")
