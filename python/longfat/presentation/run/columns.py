"""A metric as a column of a table, in one unit for all cells, shared by terminal, report and charts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from longfat.analysis.metric_range import range_of
from longfat.analysis.resolution import bin_width
from longfat.presentation import formatting, names
from longfat.presentation.run import notes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from longfat.results.run import CellResult


@dataclass(frozen=True)
class Column:
    """A metric with the scale and the unit of its values."""

    metric: str
    scale: float
    unit: str

    @classmethod
    def of(cls, metric: str, cells: Iterable[CellResult], values: Iterable[float] = ()) -> Column:
        """The column whose unit fits the means of all cells and further values."""
        means = [cell.metrics[metric].mean for cell in cells if metric in cell.metrics]
        return cls(metric, *formatting.scale_for([*means, *values], names.unit_of(metric)))

    @property
    def title(self) -> str:
        """The metric with its unit as a heading."""
        return names.with_unit(names.metric_title(self.metric), self.unit)

    @property
    def narrow_title(self) -> str:
        """The metric and its unit as the lines of a narrow column's heading."""
        title = names.column_title(self.metric)
        return f"{title}\n{self.unit}" if self.unit else title

    def number(self, value: float) -> str:
        """A value in the column's unit, without the unit's name."""
        return formatting.digits(value / self.scale)

    def measured(self, cell: CellResult) -> str:
        """The mean with its interval, or alone if all trials agree exactly; a dash if the cell lacks it."""
        interval = cell.metrics.get(self.metric)
        if interval is None:
            return formatting.DASH
        if cell.deterministic:
            return self.number(interval.mean)
        within, width = range_of(self.metric, cell.samples), bin_width(self.metric, interval.mean)
        return formatting.plus_minus(interval, self.scale, within, width)

    def is_cut(self, cell: CellResult) -> bool:
        """Whether `measured` shows the bounds of the interval, since mean ± half-width leaves the range."""
        return "[" in self.measured(cell)

    def theory(self, cell: CellResult) -> str:
        """The theoretical value or bound; empty without either."""
        return notes.theory(cell, self.metric, self.scale)
