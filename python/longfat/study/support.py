"""What a world can run: the simulator everything, real processes less."""

from __future__ import annotations

from longfat.study.cell import Cell
from longfat.study.problems import Problem
from longfat.study.specification import Study
from longfat.study.sweep import cells

ONLY_SIMULATED = {"tcp": "TCP", "udp": "constant-rate UDP"}
"""Kinds of protocols that no process on wall time speaks, by the names that people know."""


def world_problems(study: Study) -> list[Problem]:
    """What a study asks of a world that cannot run it, one line a world."""
    reasons = [reason for cell in cells(study) if cell.world == "relay" and (reason := _beyond_relay(cell))]
    if not reasons:
        return []
    message = (
        '"relay" runs ARQ protocols that send a file over a [path]; '
        f"this study has {reasons[0]}: leave relay out"
    )
    return [Problem("worlds", message)]


def _beyond_relay(cell: Cell) -> str | None:
    """What of a cell three real processes cannot do; None where they can."""
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
