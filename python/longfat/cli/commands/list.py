"""`longfat list`: what a study file may say, and the studies that come with longfat."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from longfat.study.vocabulary import Section

_WIDTH_ELSEWHERE = 140


class Topic(StrEnum):
    """What can be listed."""

    STUDIES = "studies"
    PROTOCOLS = "protocols"
    PATH = "path"
    TOPOLOGY = "topology"
    PRESETS = "presets"
    WORKLOADS = "workloads"
    TRAFFIC = "traffic"
    METRICS = "metrics"


def list_(
    topics: Annotated[list[Topic] | None, typer.Argument(help="What to list; everything by default.")] = None,
) -> None:
    """List what a study file may say, with help, units and defaults, and the built-in studies."""
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else _WIDTH_ELSEWHERE, highlight=False, markup=False)
    show = {
        Topic.STUDIES: _studies,
        Topic.PROTOCOLS: lambda c: _section(c, "protocol", "Protocols ([[protocols]])"),
        Topic.PATH: lambda c: _section(c, "path", "Path ([path])"),
        Topic.TOPOLOGY: lambda c: _section(c, "topology", "Topologies ([topology])"),
        Topic.PRESETS: _presets,
        Topic.WORKLOADS: lambda c: _section(c, "workload", "Workloads ([workload])"),
        Topic.TRAFFIC: lambda c: _section(c, "traffic", "Traffic beside the measured flows ([[traffic]])"),
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
    from longfat.cli.arguments.sections import inline
    from longfat.study.vocabulary import vocabulary

    rows = [
        (name, inline({key: keys[key] for key in keys if key != "reverse"}), inline(keys.get("reverse", {})))
        for name, keys in vocabulary()["presets"].items()
    ]
    title = 'Presets ([path] preset = "NAME"; other keys override)'
    _table(console, title, ("name", "sets", "otherwise in reverse"), rows)


def _metrics(console: Console) -> None:
    from longfat.study.vocabulary import metrics, short_metric

    rows = [
        (short_metric(column), str(about["unit"]), str(about.get("better", "")), str(about["help"]))
        for column, about in metrics().items()
    ]
    _table(console, "Metrics", ("name", "unit", "better", "what"), rows)


def _section(console: Console, section: Section, title: str) -> None:
    from longfat.study.reference import only_value, section_rows
    from longfat.study.vocabulary import vocabulary

    definitions = vocabulary()[section].get("$defs", {})
    console.print(title, style="bold")
    for variant, rows in section_rows(section):
        kind = only_value(variant.get("properties", {}).get("kind", {}), definitions)
        about = " ".join(str(variant.get("description", "")).split())
        lines = [
            ("  " * row.depth + row.key, row.values, row.default, row.help)
            for row in rows
            if not (kind and row.key.strip('"') in ("kind", kind) and row.depth <= 1)
        ]
        _table(
            console,
            f'kind = "{kind}": {about}' if kind else about,
            ("key", "values", "default", "what"),
            lines,
        )


def _table(console: Console, title: str, header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    from rich.table import Table

    console.print(title, style="bold")
    table = Table(*header, box=None, pad_edge=False, header_style="dim")
    for row in rows:
        table.add_row(*row)
    console.print(table)
