"""Studies that a world cannot run on any machine, by the rule of the native part that executors share."""

from __future__ import annotations

import json

from longfat import _native
from longfat.study.cell import Cell
from longfat.study.combinations import SpecTexts
from longfat.study.problems import Problem
from longfat.study.specification import Study
from longfat.study.sweep import cells


def world_problems(study: Study) -> list[Problem]:
    """Returns a problem for each world that cannot run the study, with the first reason."""
    found: dict[str, str] = {}
    texts = SpecTexts()
    for cell in cells(study):
        if cell.world in found:
            continue
        text = texts.of({**cell.spec, "seed": study.seed})
        if reason := _beyond(cell, text):
            found[cell.world] = reason
    return [
        Problem("worlds", f'"{world}" cannot run this study: {reason}') for world, reason in found.items()
    ]


def _beyond(cell: Cell, text: str) -> str | None:
    """Returns the first part of a cell that its world does not support; None if it supports all."""
    try:
        listed = _native.unsupported(cell.world, text)
    except ValueError:
        # Contradictions between sections, which the check of each trial reports with its cell.
        return None
    if listed == "[]":
        return None
    one = json.loads(listed)[0]
    return f"{one['message']} ({one['key']} of {cell.protocol})"
