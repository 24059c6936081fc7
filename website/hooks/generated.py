"""Pages generated from the program: the commands and the Python API."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

import click
import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import longfat
from longfat.cli.app import app

_INTRODUCTION = """# Commands

Each command prints this help with `--help`. Results go to standard output, progress and errors to standard
error. A command exits with 0 on success, 1 for a failed or negative result, 2 for wrong arguments.
"""


def _cell(text: str) -> str:
    text = " ".join(text.split()).replace("<", "&lt;")
    return re.sub(r"([|\[\]*_])", r"\\\1", text)


def _code_cell(text: str) -> str:
    return "`" + " ".join(text.split()).replace("|", "\\|") + "`"


def _help(command: Any) -> str:
    """Returns a command's help as Markdown: examples are blocks."""
    paragraphs = re.split(r"\n\n", (command.help or "").replace("\b\n", ""))
    parts = []
    for paragraph in paragraphs:
        head, _, rest = paragraph.partition("\n")
        if head.rstrip(":") in ("Examples", "Example"):
            parts.append("```text\n" + "\n".join(line.strip() for line in rest.splitlines()) + "\n```")
        else:
            parts.append(_cell(paragraph))
    return "\n\n".join(parts)


def _parameters(command: Any, context: click.Context) -> Iterator[tuple[str, str]]:
    for parameter in command.get_params(context):
        if getattr(parameter, "hidden", False) or parameter.name == "help":
            continue
        record = parameter.get_help_record(context)
        name, about = record or (parameter.make_metavar(context), getattr(parameter, "help", "") or "")
        yield name, about


def _section(name: str, command: Any, level: str) -> str:
    context = click.Context(command, info_name=f"longfat {name}")
    usage = " ".join([f"longfat {name}", *command.collect_usage_pieces(context)])
    parts = [f"{level} longfat {name}", _help(command), f"```text\n{usage}\n```"]
    rows = [f"| {_code_cell(n)} | {_cell(about)} |" for n, about in _parameters(command, context)]
    if rows:
        parts.append("\n".join(["| argument or option | meaning |", "| --- | --- |", *rows]))
    inner = getattr(command, "commands", {}).values()
    parts += [_section(f"{name} {one.name}", one, level + "#") for one in inner]
    return "\n\n".join(parts)


def commands_page() -> str:
    """Returns the page of all commands."""
    root: Any = typer.main.get_command(app)
    parts = [_INTRODUCTION]
    groups = dict.fromkeys(getattr(command, "rich_help_panel", "") for command in root.commands.values())
    for group in groups:
        parts.append(f"## {group}")
        members = [c for c in root.commands.values() if getattr(c, "rich_help_panel", "") == group]
        parts += [_section(str(command.name), command, "###") for command in members]
    return "\n\n".join(parts) + "\n"


_API = """# Python API

```python
import longfat as lf
```

These names are public and typed. Arguments with units are text, as in a study file; results are numbers in s,
bit/s, B or a share of 1.
"""


def _summary(value: Any) -> str:
    return (value.__doc__ or "").strip().partition("\n")[0]


def python_page() -> str:
    """Returns the page of the public names, functions first."""
    public = {name: getattr(longfat, name) for name in longfat.__all__}
    parts = [_API]
    for title, members in (
        ("Functions", {n: v for n, v in public.items() if callable(v) and not isinstance(v, type)}),
        ("Classes", {n: v for n, v in public.items() if isinstance(v, type)}),
        ("Modules", {n: v for n, v in public.items() if type(v) is type(sys)}),
    ):
        rows = [f"| `{name}` | {_cell(_summary(value))} |" for name, value in members.items()]
        parts.append("\n".join([f"## {title}", "", "| name | |", "| --- | --- |", *rows]))
        for name, value in members.items():
            source = getattr(value, "__module__", "")
            where = f"{source}.{name}" if source.startswith("longfat.") else f"longfat.{name}"
            if source != "longfat._native":
                parts.append(f"::: {where}")
    return "\n\n".join(parts) + "\n"


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Adds the generated pages."""
    files.append(File.generated(config, "reference/commands.md", content=commands_page()))
    files.append(File.generated(config, "reference/python.md", content=python_page()))
    return files
