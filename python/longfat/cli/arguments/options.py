"""Options and arguments that several commands have, with one help for all."""

from __future__ import annotations

from typing import Annotated

import typer

OneStudy = Annotated[str, typer.Argument(help="A study file, or a built-in study's name such as arq/loss.")]
"""The study that a command is about."""

StudySettings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a key of the study, e.g. path.loss=2%, or its path, path=@FILE; may be repeated.",
    ),
]
"""What of the study is to be another."""

StudySeed = Annotated[int | None, typer.Option(metavar="N", help="What all randomness derives from.")]
"""In the place of the study's."""

Point = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY=VALUE,...", help="The point of the sweep; the first one by default."),
]
"""Which cell of the study."""

PathSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Set a key of the path (longfat list path), also a nested one, e.g. reverse.loss=0%, "
        "loss.model=every; may be repeated.",
    ),
]
"""Keys of a path that have no option of their own."""

Seed = Annotated[
    int, typer.Option(min=0, max=2**64 - 1, metavar="N", help="What all randomness derives from.")
]
"""Of a command without a study."""
