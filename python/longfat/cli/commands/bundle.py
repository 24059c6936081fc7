"""`longfat bundle`: a run as one archive."""

from __future__ import annotations

from functools import partial
from pathlib import Path as File
from typing import Annotated

import typer

from longfat.api import bundles
from longfat.cli.arguments.from_function import command_of


@command_of(
    bundles.bundle,
    authors=Annotated[list[str] | None, typer.Option("--author", help="Name for the citations; repeatable.")],
)
def bundle(*, call: partial[File]) -> None:
    """Write a run and all its files into one archive that others can repeat.

    \b
    Examples:
      longfat bundle arq/loss
      longfat bundle arq/loss --author "Ada Lovelace" --out loss.zip
    """  # noqa: D301 - this backslash keeps the lines of the examples
    typer.echo(str(call()))
