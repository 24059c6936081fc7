"""What a reader of a run must know of the machine that measured it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from longfat.analysis import grid
from longfat.presentation import formatting

if TYPE_CHECKING:
    from longfat.results import CellResult

HOST_DROPS = "host_drops"


def host_drops(cells: Sequence[CellResult]) -> Iterator[str]:
    """A line for each world in which hosts' own kernels dropped packets: no link lost them.

    >>> from longfat.results import Cell, CellResult
    >>> cell = Cell("netns", "reno", {"path.delay": "5ms"}, {})
    >>> [line] = host_drops([CellResult(cell, 3, {}, {}, {"host_drops": [0.0, 12.0, 3.0]})])
    >>> line.partition(", ")[0]
    "caution (netns): hosts' kernels dropped packets in 2 of 3 trials"
    >>> line.partition(", ")[2]
    'which no link lost; most: 12 in reno (path.delay = 5ms)'
    >>> list(host_drops([CellResult(cell, 1, {}, {}, {"host_drops": [0.0]})]))
    []
    """
    for world in grid.worlds(cells):
        seen = [
            (drops, cell)
            for cell in cells
            if cell.cell.world == world and HOST_DROPS in cell.samples
            for drops in cell.samples[HOST_DROPS]
        ]
        hit = [one for one in seen if one[0] > 0]
        if not hit:
            continue
        most, worst = max(hit, key=lambda one: one[0])
        point = formatting.place(worst.cell.params)
        where = f"{worst.cell.protocol}{f' ({point})' if point else ''}"
        yield (
            f"caution ({world}): hosts' kernels dropped packets in {len(hit)} of {len(seen)} trials, "
            f"which no link lost; most: {most:,.0f} in {where}"
        )
