"""What the charts of a traced trial share: time axis, colours and width."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from longfat.presentation.charts.vega import Spec

WIDTH = 760
POINTS = 1200
"""Maximum number of points of a line: more than the width of a chart in px."""


@dataclass(frozen=True)
class Scope:
    """The time range of a chart, in s."""

    begin: float
    end: float
    x: Spec = field(default_factory=dict)
    """The time axis. Only that of the lowest chart has a title."""
    colours: Mapping[str, str] = field(default_factory=dict)
    """The colours of flows, the same in all charts."""
    pointed: bool = False
    """Whether lines have points that show values under the pointer."""

    @property
    def apart(self) -> float:
        """The smallest visible time difference."""
        return (self.end - self.begin) / POINTS
