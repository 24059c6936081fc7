"""What users choose of a run's chart, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from longfat.presentation.charts import theme
from longfat.presentation.charts.size import PX_PER_INCH, Size, read_font_size, read_range, read_size
from longfat.study.vocabulary import allowed
from longfat.system.parameters import ParameterError

Log = Literal["x", "y", "xy", "none"]
"""Logarithmic axes."""
Cdf = Literal["trials", "flows", "rounds"]
"""What a cumulative distribution counts."""

PAPER_FONT_SIZE = "8pt"
"""Size of the text of a chart with a size: that of figures in most papers."""


@dataclass(frozen=True)
class Options:
    """The options of `Run.chart`, which documents them; raises ParameterError for a wrong one."""

    title: str | None = None
    x_label: str | None = None
    y_label: str | None = None
    size: str | None = None
    font: str | None = None
    font_size: str | None = None
    log: Log | None = None
    y_range: str | None = None
    cdf: Cdf | None = None
    facet: str | None = None
    by_host: bool = False
    cell: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, known in (("log", get_args(Log)), ("cdf", get_args(Cdf))):
            chosen = getattr(self, name)
            if chosen is not None and chosen not in known:
                raise ParameterError(name, f'"{chosen}" is not known; {allowed(str(chosen), known)}')
        if self.font is not None and not self.font.strip():
            raise ParameterError("font", "is empty")
        if self.y_range is not None and self.cdf is not None:
            raise ParameterError("y_range", "excludes {cdf}: its y axis is a share")
        if self.by_host:
            given = [name for name in ("log", "cdf", "facet", "y_range") if getattr(self, name) is not None]
            if given:
                raise ParameterError("by_host", f"excludes {{{given[0]}}}: it draws bars for each host")

    @property
    def area(self) -> Size | None:
        """The size of the chart, if there is one."""
        return None if self.size is None else read_size(self.size)

    @property
    def scale(self) -> float:
        """The size of the text as a factor of the shared style's."""
        chosen = self.font_size or (PAPER_FONT_SIZE if self.size is not None else None)
        return 1.0 if chosen is None else read_font_size(chosen) / theme.LABEL

    @property
    def px(self) -> int | None:
        """The width of a chart with a size in px of its specification."""
        return None if self.area is None else round(self.area.width * PX_PER_INCH / self.scale)

    def is_log(self, axis: Literal["x", "y"], *, usual: bool) -> bool:
        """Whether an axis is logarithmic; `usual` is the choice by its values."""
        return usual if self.log is None else axis in self.log and self.log != "none"

    def y_limits(self, unit: str, scale: float) -> tuple[float, float] | None:
        """The limits of the y axis in units of `scale`; None without `y_range`. `unit` is the base unit."""
        if self.y_range is None:
            return None
        low, high = read_range("y_range", self.y_range, unit)
        return low / scale, high / scale

    def label(self, axis: Literal["x", "y"], usual: str) -> str:
        """The label of an axis."""
        chosen = self.x_label if axis == "x" else self.y_label
        return usual if chosen is None else chosen


USUAL = Options()
"""The options of charts in reports and notebooks."""
