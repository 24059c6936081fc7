"""Which cells of an adaptive run need more trials, and how many the run may still take."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from longfat.analysis.looks import next_look
from longfat.results.run import Cell, CellResult
from longfat.study import Study, units
from longfat.study.specification import DECIDED
from longfat.system.parameters import ParameterError

WIDE = 0.8
"""With a budget, cells whose interval is at least this part of the widest one get the next trials."""


@dataclass(frozen=True)
class Budget:
    """What a run may take: `seconds` from its start, and trials in its folder, earlier runs included."""

    seconds: float = math.inf
    trials: float = math.inf
    started: float = field(default_factory=time.monotonic)

    @classmethod
    def of(cls, budget: str | None, trials: int | None) -> Budget:
        """Returns the budget of a duration with its unit and a number of trials, which starts now.

        Raises ParameterError for another text.
        """
        return cls(
            math.inf if budget is None else _seconds(budget),
            math.inf if trials is None else trials,
        )

    @property
    def is_limited(self) -> bool:
        """Whether there is any limit."""
        return math.isfinite(self.seconds) or math.isfinite(self.trials)

    @property
    def is_over(self) -> bool:
        """Whether the time is spent."""
        return time.monotonic() - self.started >= self.seconds


def _seconds(text: str) -> float:
    try:
        limit = units.parse(text)
    except ValueError as error:
        raise ParameterError("budget", str(error)) from None
    if limit.dimension != "duration" or limit.value <= 0:
        raise ParameterError("budget", f'"{text}" is not a duration above zero, e.g. "10min"')
    return float(limit.value)


def first_counts(study: Study, planned: Sequence[Cell], budget: Budget) -> list[int]:
    """Returns the trials of each cell at the first look: equal shares of a budget too small for all."""
    wanted = [study.trials_in(cell.world) for cell in planned]
    if sum(wanted) <= budget.trials:
        return wanted
    share, rest = divmod(int(budget.trials), len(planned))
    return [min(count, share + (number < rest)) for number, count in enumerate(wanted)]


def next_counts(
    study: Study,
    planned: Sequence[Cell],
    counts: Sequence[int],
    width: Callable[[Cell], float],
    budget: Budget,
) -> list[int]:
    """Returns the trials of each cell at the next look.

    `width` returns how far the interval of a cell is from the precision: 0 if the cell needs no more trials.
    With a budget only the widest intervals get more, so that it is spent where they are widest.
    """
    widths = [width(cell) for cell in planned]
    most = [study.most_trials_in(cell.world) for cell in planned]
    able = [number for number in range(len(planned)) if widths[number] > 0 and counts[number] < most[number]]
    able.sort(key=lambda number: -widths[number])
    found, left = list(counts), budget.trials - sum(counts)
    if budget.is_over or left <= 0:
        return found
    for number in able:
        if budget.is_limited and widths[number] < WIDE * widths[able[0]]:
            break
        world = planned[number].world
        target = min(most[number], next_look(counts[number], study.trials_in(world)))
        more = int(min(target - counts[number], left))
        found[number] += more
        left -= more
    return found


def exhausted(
    study: Study, planned: Sequence[Cell], counts: Sequence[int], width: Callable[[Cell], float]
) -> list[Cell]:
    """Returns the cells that have all trials of `max_repeats` and need more."""
    return [
        cell
        for cell, count in zip(planned, counts, strict=True)
        if count >= study.most_trials_in(cell.world) and width(cell) > 0
    ]


def widths(study: Study, results: Sequence[CellResult]) -> Callable[[Cell], float]:
    """Returns a function with the width of a cell's interval, 0 for a cell that needs no more trials."""
    from longfat.analysis.precision import imprecise

    if study.precision == DECIDED:
        found = _undecided(study, results)
    else:
        found = {result.cell.identity: ratio for result, ratio in imprecise(study, results)}
    return lambda cell: found.get(cell.identity, 0.0)


def _undecided(study: Study, results: Sequence[CellResult]) -> dict[tuple[str, str, str], float]:
    from longfat.analysis.claims import judge
    from longfat.analysis.precision import relative_width

    of_cell = {result.cell.identity: result for result in results}
    found: dict[tuple[str, str, str], float] = {}
    for judgement in judge(study, results):
        metric = study.column(judgement.claim.metric)
        for compared in judgement.pending:
            # Compared trial by trial, so all of them need the same trials.
            width = max(relative_width(of_cell[cell.identity], metric) for cell in compared)
            found |= {cell.identity: max(found.get(cell.identity, 0.0), width) for cell in compared}
    return found
