"""Charts of an exact size: the plots take what axes, titles and legend leave."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import vl_convert

from longfat.presentation.charts.bundle import VEGA_LITE
from longfat.presentation.charts.files import size_of
from longfat.presentation.charts.vega import Spec

_ROUNDS = 8
_TOLERANCE = 1.5
"""A difference in px that the scaling of the file hides."""
_SMALLEST = 20.0
"""Smallest side of the plots in px."""


def fitted(
    make: Callable[[int, int | None], Spec], width: float, height: float | None
) -> tuple[Spec, float, float]:
    """Returns a chart and its real width and height in px.

    `make` draws a chart with plots of a width and a height together; without a height it follows from the
    width. The real size differs from the requested one if text leaves too little room.
    """
    across = _Side(width, width)
    down = None if height is None else _Side(height, height)
    while True:
        spec = make(round(across.plots), None if down is None else round(down.plots))
        real = size_in_px(spec)
        moved = [across.move(real[0]), down is not None and down.move(real[1])]
        if not any(moved):
            return spec, *real


def size_in_px(spec: Spec) -> tuple[float, float]:
    """Returns the width and the height of a whole chart in px."""
    return size_of(vl_convert.vegalite_to_svg(spec, vl_version=VEGA_LITE))


@dataclass
class _Side:
    """The length of the plots on one side, found by the secant method, since axes take what labels need."""

    wanted: float
    plots: float
    slope: float = 1.0
    last: tuple[float, float] | None = None
    rounds: int = 0

    def move(self, real: float) -> bool:
        """Changes the length after the chart's real length is known; returns whether it changed."""
        off = self.wanted - real
        self.rounds += 1
        if abs(off) <= _TOLERANCE or self.rounds > _ROUNDS:
            return False
        if self.last is not None and self.last[0] != self.plots:
            self.slope = (real - self.last[1]) / (self.plots - self.last[0])
        self.last = (self.plots, real)
        following = max(_SMALLEST, self.plots + off / max(self.slope, 0.3))
        changed = round(following) != round(self.plots)
        self.plots = following
        return changed
