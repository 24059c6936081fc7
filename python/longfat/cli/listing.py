"""`longfat list`: what a study file may say, and the studies that come with longfat."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

_WIDTH_ELSEWHERE = 140


class Topic(StrEnum):
    """What can be listed."""

    STUDIES = "studies"
    PROTOCOLS = "protocols"
    PATH = "path"
    PRESETS = "presets"
    WORKLOADS = "workloads"
    METRICS = "metrics"


def listing(
    topics: Annotated[list[Topic] | None, typer.Argument(help="What to list; everything by default.")] = None,
) -> None:
    """List what a study file may say, with help, units and defaults, and the built-in studies."""
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else _WIDTH_ELSEWHERE, highlight=False, markup=False)
    show = {
        Topic.STUDIES: _studies,
        Topic.PROTOCOLS: lambda c: _section(c, "protocol", "Protocols ([[protocols]])"),
        Topic.PATH: lambda c: _section(c, "path", "Path ([path])"),
        Topic.PRESETS: _presets,
        Topic.WORKLOADS: lambda c: _section(c, "workload", "Workloads ([workload])"),
        Topic.METRICS: _metrics,
    }
    for number, topic in enumerate(topics or list(Topic)):
        if number:
            console.print()
        show[topic](console)


def _studies(console: Console) -> None:
    import tomllib

    from longfat.study.catalogue import builtin

    rows = []
    for name, path in builtin().items():
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        rows.append((name, str(content.get("title", ""))))
    _table(console, "Studies (longfat run NAME)", ("name", "question"), rows)


def _presets(console: Console) -> None:
    from longfat.study.vocabulary import vocabulary

    rows = [
        (name, ", ".join(f"{key} {_plain(value)}" for key, value in keys.items() if key != "preset"))
        for name, keys in vocabulary()["presets"].items()
    ]
    _table(console, 'Presets ([path] preset = "NAME"; other keys override)', ("name", "sets"), rows)


def _metrics(console: Console) -> None:
    from longfat.study.vocabulary import metrics, short_metric

    rows = [
        (short_metric(column), str(about["unit"]), str(about.get("better", "")), str(about["help"]))
        for column, about in metrics().items()
    ]
    _table(console, "Metrics", ("name", "unit", "better", "what"), rows)


def _section(console: Console, section: str, title: str) -> None:
    from longfat.study.schema import variants
    from longfat.study.vocabulary import vocabulary

    schema = vocabulary()[section]
    definitions = schema.get("$defs", {})
    for number, variant in enumerate(variants(schema, definitions)):
        kind = variant.get("properties", {}).get("kind", {})
        about = " ".join(str(variant.get("description", "")).split())
        if number == 0 or not kind:
            console.print(title, style="bold")
        heading = f'kind = "{_values(kind, definitions)}": {about}' if kind else about
        _table(console, heading, ("key", "values", "default", "what"), _rows(variant, definitions))


def _rows(variant: dict[str, Any], definitions: dict[str, Any]) -> Iterable[tuple[str, str, str, str]]:
    from longfat.study.schema import resolve

    required = variant.get("required", [])
    for key, content in variant.get("properties", {}).items():
        if key == "kind":
            continue
        default = "required" if key in required else _plain(content.get("default"))
        about = content.get("description") or resolve(content, definitions).get("description", "")
        yield key, _values(content, definitions), default, " ".join(str(about).split())


def _values(content: dict[str, Any], definitions: dict[str, Any]) -> str:
    """What a key may hold, in a few words: its words, its range, or an example with its unit."""
    from longfat.study.schema import resolve

    content = resolve(content, definitions)
    alternatives = content.get("anyOf") or content.get("oneOf")
    if alternatives:
        return " | ".join(dict.fromkeys(text for a in alternatives if (text := _values(a, definitions))))
    if "const" in content:
        return str(content["const"])
    if "enum" in content:
        return " | ".join(str(word) for word in content["enum"] if word is not None)
    if examples := content.get("examples"):
        return f'e.g. "{examples[0]}"'
    kinds = content.get("type", "")
    kind = next((k for k in kinds if k != "null"), "") if isinstance(kinds, list) else kinds
    if kind == "object":
        words = content.get("properties", {}).get("kind")
        return f'table, kind = "{_values(words, definitions)}"' if words else "table"
    low, high = content.get("minimum"), content.get("maximum")
    if kind in ("integer", "number") and low is not None:
        return f"{low} to {high}" if high is not None else f"{kind} from {low}"
    return "" if kind == "null" else {"boolean": "true | false", "array": "list", "string": "text"}.get(kind, kind)


def _plain(value: Any) -> str:
    import json

    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _table(console: Console, title: str, header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    from rich.table import Table

    console.print(title, style="bold")
    table = Table(*header, box=None, pad_edge=False, header_style="dim")
    for row in rows:
        table.add_row(*row)
    console.print(table)
