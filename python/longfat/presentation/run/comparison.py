"""The comparison of two runs: a table, sentences, Markdown, and a result that displays itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

from longfat.analysis.run_comparison import Effect, RunComparison
from longfat.presentation import formatting, names
from longfat.presentation.displayed import Displayed
from longfat.presentation.text_table import TextTable
from longfat.study.labels import label

if TYPE_CHECKING:
    import polars

    from longfat.analysis.run_comparison import Change
    from longfat.results.run import Cell

_MOST_SETTINGS = 8
EFFECTS = get_args(Effect)
_COLUMNS = ("cell", "metric", "first", "second", "second / first", "n", "change")


@dataclass(frozen=True, repr=False)
class ComparedRuns(RunComparison, Displayed):
    """The cells that differ between two runs, with what only one of them has.

    Its text is a row for each changed metric of a cell, by metrics with the largest change first, then the
    differences of the studies, lost metrics and failures.
    """

    @property
    def title(self) -> str:
        """How many cells have changed, and at which confidence."""
        return headline(self)

    def table(self) -> TextTable:
        """Returns a row for each change, by metrics with the largest change first."""
        return table(self)

    def remarks(self) -> Sequence[str]:
        """Returns how the studies differ, what is lost, failures, and the cells of one run only."""
        return [*differences(self), *remarks(self)]

    def to_polars(self) -> polars.DataFrame:
        """Returns a row for each comparison, in SI units: cell, both means, difference, ratio."""
        import polars as pl

        keys = dict.fromkeys(key for change in self.changes for key in change.cell.params)
        rows = [
            {
                "world": change.cell.world,
                "protocol": change.cell.protocol,
                **{
                    key.replace(".", "_"): label(change.cell.params[key])
                    if key in change.cell.params
                    else None
                    for key in keys
                },
                "metric": change.metric,
                "first": change.first,
                "second": change.second,
                "difference": change.difference.value,
                "difference_low": change.difference.low,
                "difference_high": change.difference.high,
                "ratio": change.ratio.value,
                "ratio_low": change.ratio.low,
                "ratio_high": change.ratio.high,
                "n": change.n,
                "outcome": change.outcome,
                "effect": change.effect,
            }
            for change in self.changes
        ]
        return pl.DataFrame(rows, infer_schema_length=None)


def _place(cell: Cell) -> str:
    return ", ".join(part for part in (cell.world, cell.protocol, formatting.place(cell.params)) if part)


def _row(change: Change) -> tuple[str, ...]:
    of = names.unit_of(change.metric)
    ratio = f"{formatting.digits(change.ratio.value)} {formatting.bounds(change.ratio)}"
    return (
        _place(change.cell),
        names.metric_title(change.metric),
        formatting.quantity(change.first, of),
        formatting.quantity(change.second, of),
        ratio.strip(),
        str(change.n),
        change.effect or change.outcome,
    )


def table(found: RunComparison) -> TextTable:
    """Returns a row for each change, by metrics with the largest change first, and whether it is better."""
    return TextTable(_COLUMNS, [_row(change) for change in found.changed], (2, 3, 5))


def headline(found: RunComparison) -> str:
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
    counts = Counter(change.effect for change in found.changed)
    effects = [f"{counts[effect]} {effect}" for effect in EFFECTS if counts[effect]]
    return f"{text}; {', '.join(effects)}" if effects else text


def differences(found: RunComparison) -> Iterator[str]:
    """Yields a line with the keys in which the studies differ, if there are any."""
    if found.settings:
        shown = [f"{key} {_shown(a)} → {_shown(b)}" for key, a, b in found.settings[:_MOST_SETTINGS]]
        more = len(found.settings) - len(shown)
        yield f"The studies differ: {', '.join(shown)}{f', and {more} more' if more else ''}"


def remarks(found: RunComparison) -> Iterator[str]:
    """Yields a line for each cell with lost metrics or other failures, and for what was not compared."""
    for text, pairs in (
        ("No longer measured", found.lost),
        ("Not compared (one trial outside virtual time, or with another seed)", found.too_few),
        ("Not compared (unknown in the first run: unanswered requests or incomplete flows)", found.unknown),
    ):
        metrics: dict[str, list[str]] = {}
        for cell, metric in pairs:
            metrics.setdefault(_place(cell), []).append(names.metric_phrase(metric))
        for place, listed in metrics.items():
            yield f"{text}: {place}: {', '.join(listed)}"
    for one in found.failures:
        (before, of_before), (after, of_after) = one.first, one.second
        yield (
            f"Failed trials: {_place(one.cell)}: {before} of {of_before} in the first run, "
            f"{after} of {of_after} in the second"
        )
    for name, only in (("first", found.only_first), ("second", found.only_second)):
        if only:
            yield f"Only in the {name} run: {'; '.join(map(_place, only))}"
    if not found.is_paired:
        yield "The runs have different seeds, so their trials are compared as independent samples"


def _shown(value: object) -> str:
    return formatting.DASH if value is None else label(value)


def conclusion(found: RunComparison) -> str:
    """Returns the headline and the remarks as lines."""
    return "\n".join([headline(found), *remarks(found)])


def markdown(found: RunComparison) -> str:
    """Returns a summary with the table of changes."""
    from longfat.presentation.run.summary import markdown_table

    lines = [
        "## Comparison of two runs",
        "",
        *(f"{one}\n" for one in differences(found)),
        headline(found),
        "",
        *(f"- {one}" for one in remarks(found)),
        "",
    ]
    if found.changed:
        lines += markdown_table(_COLUMNS, [_row(change) for change in found.changed])
    return "\n".join(lines).rstrip() + "\n"
