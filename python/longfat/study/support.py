"""Specifications that a world cannot run on any machine, or that are no trial, by native rules."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import chain, repeat

from longfat import _native
from longfat.study.cell import Cell
from longfat.study.combinations import Points
from longfat.study.problems import Problem
from longfat.study.section_texts import SectionTexts, columns_of
from longfat.study.specification import Study
from longfat.study.sweep import cells
from longfat.study.vocabulary import canonical


def world_problems(study: Study) -> list[Problem]:
    """Returns a problem for each world that cannot run the study, with the first reason."""
    every = cells(study)
    found: dict[str, int] = {}
    for world, points, places in every.blocks():
        at = first_refused(points, study.seed, world=world)
        if at is not None:
            number = next(of_cells[of_points.index(at)] for of_points, of_cells in places if at in of_points)
            found[world] = min(number, found.get(world, number))
    return [
        Problem("worlds", f'"{world}" cannot run this study: {_beyond(every[number], study.seed)}')
        for world, number in found.items()
    ]


def first_refused(
    points: Points, seed: int, *, world: str | None = None, wanted: Sequence[bool] | None = None
) -> int | None:
    """Returns the first point that a world does not support, or, without a world, that is no trial.

    `wanted` selects points. Sections are read once, and thousands of points are checked in one call.
    """
    start = 0
    selected = iter(repeat(True) if wanted is None else chain(wanted, repeat(False)))
    for chunk in SectionTexts(points).chunks():
        count = len(next(iter(chunk.values()))[0])
        mask = None if wanted is None else [next(selected) for _ in range(count)]
        at = None
        if mask is None or any(mask):
            at = _native.first_refused(columns_of(chunk, mask), seed, world)
        if at is not None:
            chosen = range(count) if mask is None else [n for n, one in enumerate(mask) if one]
            return start + chosen[at]
        start += count
    return None


def _beyond(cell: Cell, seed: int) -> str:
    """Returns the first part of a cell that its world does not support."""
    one = json.loads(_native.unsupported(cell.world, canonical({**cell.spec, "seed": seed})))[0]
    return f"{one['message']} ({one['key']} of {cell.protocol})"
