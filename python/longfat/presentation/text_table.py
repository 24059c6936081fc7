"""Tables of formatted numbers, and their forms: aligned text, terminal and HTML."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Self

from longfat.presentation.html.markup import Markup, render, tag

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

_BETWEEN = 3
"""Blanks between the columns of a ruled table; one is at each end."""
MOST_ROWS = 60
"""Rows of a table in a notebook; the others are counted."""


class Minor(str):
    """Text whose last line is less important: dim on terminals."""

    __slots__ = ()


class Noted(str):
    """Text with a note, which HTML shows under the pointer."""

    __slots__ = ("note",)
    note: str

    def __new__(cls, text: str, note: str) -> Self:
        """Returns the text with its note."""
        made = super().__new__(cls, text)
        made.note = note
        return made


@dataclass(frozen=True, repr=False)
class TextTable:
    """A table of formatted numbers. Its text is aligned, its HTML a table.

    >>> TextTable(("loss", "goodput"), [["1%", "5.95 Mbit/s"]], right=(1,))
    loss      goodput
    1%    5.95 Mbit/s
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    """An empty row ends a section."""
    right: Collection[int] = ()
    """Columns that are aligned at the right."""
    whole: Collection[int] = ()
    """Columns whose lines a terminal does not break."""
    title: str = ""
    labels: int = 0
    """Leading columns with the headings of rows."""
    groups: Sequence[tuple[str, int]] = ()
    """Headings over the columns after `labels`, each with its number of columns."""

    def lines(self, most: int | None = None) -> list[str]:
        """Returns the lines of the text, the header first; `most` limits the rows."""
        rows = [list(map(_flat, row)) for row in (self.head, *filter(None, self.rows))]
        shown = rows if most is None or len(rows) <= most + 1 else rows[:most]
        widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
        lines = []
        for row in shown:
            cells = [
                cell.rjust(width) if number in self.right else cell.ljust(width)
                for number, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            lines.append("  ".join(cells).rstrip())
        left = len(rows) - len(shown)
        return [*lines, f"... {left} more rows"] if left else lines

    def rich(self, *, ruled: bool = False) -> Table:
        """Returns the table for a terminal, with a line below its header if it is `ruled`.

        Groups have no row of their own: each replaces the heading of its first column.
        """
        from rich import box
        from rich.table import Table

        made = Table(
            title=self.title or None,
            title_justify="left",
            title_style="",
            box=box.SIMPLE_HEAD if ruled else None,
            header_style="table.header" if ruled else "dim",
            pad_edge=False,
            show_header=bool(self.head),
        )
        narrowest = self._narrowest() if ruled else []
        firsts = dict(zip(self._edges(), (name for name, _ in self.groups), strict=False))
        for number, head in enumerate(self.head):
            made.add_column(
                _rich(firsts.get(number, head)),
                justify="right" if number in self.right else "left",
                no_wrap=number in self.whole,
                min_width=narrowest[number] if ruled else None,
            )
        for row in self.rows:
            if row:
                made.add_row(*map(_rich, row))
            else:
                made.add_section()
        return made

    def narrowest(self) -> int:
        """Returns the width of the ruled table on a terminal that breaks all columns but those in `whole`."""
        widths = self._narrowest()
        return sum(widths) + _BETWEEN * (len(widths) - 1) + 2

    def _narrowest(self) -> list[int]:
        """The width of each column without broken words, or without broken lines if it is in `whole`."""
        widths = []
        for number, column in enumerate(zip(self.head, *filter(None, self.rows), strict=True)):
            apart = "\n" if number in self.whole else None
            widths.append(max((len(part) for entry in column for part in entry.split(apart)), default=0))
        return widths

    def html(self, most: int | None = None) -> Markup:
        """Returns the table as HTML; `most` limits the rows."""
        shown = self.rows if most is None else self.rows[:most]
        left = len(self.rows) - len(shown)
        heads = [tag("tr", row) for row in self._heads()]
        body = [tag("tr", self._row(row)) for row in shown]
        made = tag("table", [tag("thead", heads), tag("tbody", body)])
        return render([made, tag("p", f"{left} more rows") if left else None])

    def _edges(self) -> list[int]:
        """The first column of each group, and the end of the last one."""
        return list(accumulate((count for _, count in self.groups), initial=self.labels))

    def _heads(self) -> Iterator[list[Markup]]:
        if not self.groups:
            yield [tag("th", _flat(head)) for head in self.head]
            return
        yield [
            *(tag("th", _flat(head), rowspan=2) for head in self.head[: self.labels]),
            *(tag("th", name, class_="group edge", colspan=n, scope="colgroup") for name, n in self.groups),
        ]
        heads = list(enumerate(self.head))[self.labels :]
        yield [tag("th", _flat(head), class_=self._class(number)) for number, head in heads]

    def _row(self, row: Sequence[str]) -> Iterator[Markup]:
        for number, entry in enumerate(row):
            text = tag("span", entry, class_="of") if isinstance(entry, Minor) else _flat(entry)
            if number < self.labels:
                yield tag("th", text, scope="row")
            else:
                note = entry.note if isinstance(entry, Noted) else None
                yield tag("td", text, class_=self._class(number), title=note)

    def _class(self, number: int) -> str | None:
        return "edge" if self.groups and number in self._edges() else None

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> Markup:
        return self.html(MOST_ROWS)


def _flat(entry: str) -> str:
    return entry.replace("\n", " ")


def _rich(entry: str) -> Text:
    from rich.text import Text

    above, newline, last = entry.rpartition("\n")
    return Text.assemble(above + newline, (last, "dim" if isinstance(entry, Minor) else ""))
