"""Options from signatures and docstrings."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path as File
from typing import Annotated, Any, Literal

import pytest
import typer
from typer.testing import CliRunner

from longfat.api.quantities import Duration
from longfat.cli.arguments.from_function import command, command_of
from longfat.cli.arguments.mistakes import NamingCommand
from longfat.system.parameters import ParameterError

Colour = Literal["red", "green"]


def paint(
    what: str,
    *,
    colour: Colour = "red",
    time: Duration | None = None,
    names: Sequence[str] = (),
    file: File | str | None = None,
    wet: bool = False,
    fast: bool = True,
    progress: bool | None = None,
) -> dict[str, Any]:
    """Paints something.

    Args:
        what: What is painted.
        colour: Colour.
        time: Time for `what`, with `wet`; by default as long as it takes.
        names: Names, e.g. "a".
        file: Output file.
        wet: Wet paint.
        fast: Fast
            painting.
        progress: Whether to show the progress.
    """
    if time == "never":
        raise ParameterError("time", "excludes {wet}")
    return dict(locals())


@command_of(
    paint,
    time=typer.Option("--for"),
    names=Annotated[list[str] | None, typer.Option("--name")],
    extra=typer.Option(min=1),
)
def painting(*, call: partial[dict[str, Any]], extra: int = 3) -> None:
    """Paint something.

    Args:
        extra: More of it.
    """
    typer.echo({**call(), "extra": extra})


def _run(*words: str) -> Any:
    app = typer.Typer(rich_markup_mode=None)
    app.command(cls=NamingCommand)(painting)
    return CliRunner().invoke(app, words)


def test_values_reach_the_function() -> None:
    words = ("wall", "--colour", "green", "--for", "1s", "--name", "a", "--name", "b", "--wet", "--no-fast")
    expected = {"what": "wall", "colour": "green", "time": "1s", "names": ["a", "b"], "file": None}
    shown = {**expected, "wet": True, "fast": False, "progress": True, "extra": 3}
    assert _run(*words).stdout == f"{shown}\n"
    assert "'file': PosixPath('x')" in _run("wall", "--file", "x").stdout


def test_help_has_the_texts_of_both_docstrings() -> None:
    text = " ".join(_run("--help").stdout.split())
    assert "Paint something. Arguments:" in text
    for line in (
        "what <str> What is painted. [required]",
        "--colour <red|green> Colour. [default: red]",
        "--for DURATION Time for WHAT, with --wet. [default: as long as it takes]",
        "Names, e.g. a; repeatable.",
        "--file FILE Output file.",
        "--wet Wet paint.",
        "--fast / --no-fast Fast painting. [default: fast]",
        "More of it. [default: 3; x>=1]",
    ):
        assert line in text
    assert "--progress" not in text
    assert "--no-wet" not in text


def test_mistakes_name_the_option() -> None:
    assert str(_run("wall", "--for", "never").exception) == "--for: excludes --wet"


def test_an_option_without_text_is_refused() -> None:
    def silent(*, loud: bool = False) -> None:
        """Does nothing."""

    with pytest.raises(KeyError, match="loud"):
        command_of(silent)


def test_a_command_declares_its_own_options() -> None:
    @command()
    def own(name: str, *, loud: bool = False) -> None:
        """Do something.

        Args:
            name: Name.
            loud: Loud names.
        """
        typer.echo(name.upper() if loud else name)

    app = typer.Typer()
    app.command()(own)
    assert CliRunner().invoke(app, ["x", "--loud"]).stdout == "X\n"
