"""What the commands that measure a host have in common."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

ECHO_PORT = 9007
"""Where `longfat echo` listens, and others ask, if nothing else is said."""

_WIDTH_ELSEWHERE = 160


def duration(option: str, text: str, least: float, most: float) -> float:
    """An option's time in seconds; ValueError names the option and what is allowed."""
    from longfat.cli.arguments.hops import quantity
    from longfat.presentation.formatting import quantity as told

    try:
        value = quantity(text, "duration")
    except ValueError as error:
        raise ValueError(f"{option}: {error}") from None
    if not least <= value <= most:
        raise ValueError(f"{option}: {text} is out of range: {told(least, 's')} to {told(most, 's')}")
    return value


def version(four: bool, six: bool) -> int | None:
    """Which version of IP is asked for; None for any."""
    if four and six:
        raise ValueError("-4 and -6: one of them")
    return 4 if four else 6 if six else None


def live(text: Callable[[Mapping[str, Any]], str]) -> tuple[Callable[[str], None], Callable[[], None]]:
    """A line that changes at a terminal, and nothing elsewhere: what tells it, and what takes it away."""
    if not sys.stderr.isatty():
        return lambda _told: None, lambda: None
    from rich.console import Console

    status = Console(stderr=True).status("")
    status.start()
    return lambda told: status.update(text(json.loads(told))), status.stop


def print_table(rows: Sequence[Sequence[str]], *, left: int) -> None:
    """The first row is the heading; so many columns are text, the others numbers."""
    from rich.console import Console
    from rich.table import Table

    head, *body = rows
    table = Table(box=None, pad_edge=False, header_style="dim")
    for number, name in enumerate(head):
        table.add_column(name, justify="left" if number < left else "right")
    for row in body:
        table.add_row(*row)
    width = None if sys.stdout.isatty() else _WIDTH_ELSEWHERE
    Console(highlight=False, markup=False, width=width).print(table)


def write_samples(target: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """All samples as Parquet or CSV, by the file's name."""
    import io

    import polars as pl

    from longfat.files import write_whole

    frame = pl.DataFrame([dict(row) for row in rows], infer_schema_length=None)
    content = io.BytesIO()
    if target.suffix == ".parquet":
        frame.write_parquet(content)
    else:
        frame.write_csv(content)
    write_whole(target, content.getvalue())


def check_samples(target: Path | None) -> None:
    """Raises ValueError for a name that says no format, before anything is measured."""
    if target is not None and target.suffix not in (".parquet", ".csv"):
        raise ValueError(f"--samples {target}: its name says no format; allowed: .parquet, .csv")


def check_report(target: Path | None) -> None:
    """Likewise of a report."""
    if target is not None and target.suffix not in (".html", ".htm"):
        raise ValueError(f"--out {target}: a report is HTML: name it .html")


def write_report(target: Path, page: str) -> None:
    """A report as a file."""
    from longfat.files import write_whole

    write_whole(target, page.encode())


def ended(interrupted: bool, measured: bool) -> None:
    """Ends the command with its code: 0 only where something was measured to the end."""
    from longfat.cli import INTERRUPTED, SYSTEM_ERROR

    if interrupted:
        raise typer.Exit(INTERRUPTED)
    if not measured:
        raise typer.Exit(SYSTEM_ERROR)
