"""The comparison of two runs as a table, a sentence and Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longfat.presentation import formatting, names
from longfat.presentation.text_table import TextTable
from longfat.study.vocabulary import unit

if TYPE_CHECKING:
    from longfat.analysis.run_comparison import Change, RunComparison
    from longfat.results.run import Cell

_COLUMNS = ("cell", "metric", "first", "second", "second / first", "n")


def _place(cell: Cell) -> str:
    return ", ".join(part for part in (cell.world, cell.protocol, formatting.place(cell.params)) if part)


def _row(change: Change) -> tuple[str, ...]:
    of = unit(change.metric)
    ratio = f"{formatting.digits(change.ratio.value)} {formatting.bounds(change.ratio)}"
    return (
        _place(change.cell),
        names.metric_title(change.metric),
        formatting.quantity(change.first, of),
        formatting.quantity(change.second, of),
        ratio.strip(),
        str(change.n),
    )


def table(found: RunComparison) -> TextTable:
    """Returns a row for each change, the largest first."""
    return TextTable(_COLUMNS, [_row(change) for change in found.changed], (2, 3, 5))


def conclusion(found: RunComparison) -> str:
    """Returns how many cells have changed, and at which confidence."""
    cells = len({id(change.cell) for change in found.changed})
    of = len({id(change.cell) for change in found.changes})
    equal = sum(change.outcome == "equal" for change in found.changes)
    text = (
        f"{cells} of {of} cells changed: {len(found.changed)} of {len(found.changes)} comparisons "
        f"(95 % confidence for all together, {found.level:.2%} for each)"
    )
    if equal:
        text += f"; {equal} {'is' if equal == 1 else 'are'} bit-identical"
    for name, only in (("first", found.only_first), ("second", found.only_second)):
        if only:
            text += f"\nOnly in the {name} run: {'; '.join(map(_place, only))}"
    return text


def markdown(found: RunComparison) -> str:
    """Returns a summary with the table of changes."""
    from longfat.presentation.run.summary import markdown_table

    lines = ["## Comparison of two runs", "", *conclusion(found).splitlines(), ""]
    if found.changed:
        lines += markdown_table(_COLUMNS, [_row(change) for change in found.changed])
    return "\n".join(lines).rstrip() + "\n"
