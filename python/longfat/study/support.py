"""Studies that a world cannot run. The simulator runs everything, the relay only files over ARQ."""

from __future__ import annotations

from longfat.study.cell import Cell
from longfat.study.problems import Problem
from longfat.study.specification import Study
from longfat.study.sweep import cells

ONLY_SIMULATED = {"tcp": "TCP", "udp": "constant-rate UDP"}
"""Kinds of protocols that the relay does not support, with their names."""


def world_problems(study: Study) -> list[Problem]:
    """Returns a problem for each world that cannot run the study."""
    reasons = [reason for cell in cells(study) if cell.world == "relay" and (reason := _beyond_relay(cell))]
    if not reasons:
        return []
    message = (
        '"relay" supports files over a [path] with ARQ protocols only; '
        f"this study has {reasons[0]}; remove relay"
    )
    return [Problem("worlds", message)]


def _beyond_relay(cell: Cell) -> str | None:
    """Returns the part of a cell that the relay does not support; None if it supports all."""
    if "topology" in cell.spec:
        return "a [topology]"
    if "hops" in cell.spec["path"]:
        return "a [path] of several hops"
    if cell.spec.get("traffic"):
        return "[[traffic]]"
    kind = str(cell.spec["protocol"].get("kind"))
    if kind in ONLY_SIMULATED:
        return f'{ONLY_SIMULATED[kind]} ("{cell.protocol}")'
    workload = str(cell.spec["workload"].get("kind"))
    return f'a workload of kind "{workload}"' if workload != "file" else None
