"""Plain tables of the command line, and the console that prints them."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, TextIO, cast

from longfat.presentation.text_table import TextTable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_BLANKS = re.compile(r" +(?=\n)")
WIDTH_ELSEWHERE = 160
"""Width in columns of output that is not a terminal."""


def console(*, stderr: bool = False) -> Console:
    """Returns a console for standard output or standard error that prints text as it is."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    if stream.isatty():
        return Console(stderr=stderr, highlight=False, markup=False)
    file = cast("TextIO", _Trimmed(stream))
    return Console(file=file, highlight=False, markup=False, width=WIDTH_ELSEWHERE)


class _Trimmed:
    """A text stream without blanks at the ends of lines, which tables add to reach their width."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(_BLANKS.sub("", text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def table(*columns: str, right: Collection[int] = (), rows: Sequence[Sequence[str]] = ()) -> Table:
    """Returns a borderless table; columns whose numbers are in `right` are right-aligned.

    Without column names it has no header.
    """
    return TextTable(columns, rows, right).rich()


def show(shown: Table | TextTable | str) -> None:
    """Prints a table or a line on standard output."""
    if isinstance(shown, TextTable):
        shown = shown.rich()
    console().print(shown, soft_wrap=isinstance(shown, str))
