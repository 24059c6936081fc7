"""Results that display themselves: a short text, HTML with a table and a chart, and data frames."""

from __future__ import annotations

import abc
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from longfat.presentation.html.markup import Content, Markup, bullets, render, tag
from longfat.presentation.text_table import TextTable as TextTable  # noqa: PLC0414 - offered here too

if TYPE_CHECKING:
    import polars

MOST_LINES = 12
"""Rows of a table in a text; the others are counted."""


class Displayed(abc.ABC):
    """A result with a title, lines of text, a table, a chart and a data frame."""

    @property
    @abc.abstractmethod
    def title(self) -> str:
        """The result in one line."""

    @abc.abstractmethod
    def table(self) -> TextTable:
        """Returns the main numbers as text."""

    @abc.abstractmethod
    def to_polars(self) -> polars.DataFrame:
        """Returns the data as a frame, in SI units."""

    def remarks(self) -> Sequence[str]:
        """Returns lines below the table."""
        return ()

    def drawing(self) -> dict[str, Any] | None:
        """Returns the main chart as Vega-Lite; None if there is nothing to draw."""
        return None

    def chart(self) -> Any:
        """Returns the main chart as an Altair chart.

        Raises:
            ValueError: if there is nothing to draw.
        """
        return altair_chart(self.drawing())

    def to_pandas(self) -> Any:
        """Returns `to_polars` as a pandas data frame. Requires `longfat[frames]` (pandas, pyarrow)."""
        return self.to_polars().to_pandas()

    def to_arrow(self) -> Any:
        """Returns `to_polars` as an Arrow table that shares its memory. Requires `longfat[frames]` (pyarrow).

        Libraries that read Arrow's C stream (pyarrow, DuckDB, pandas, Altair) take the result itself.
        """
        return self.to_polars().to_arrow()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_polars().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return "\n".join([self.title, *self.table().lines(MOST_LINES), *self.remarks()])

    def _repr_html_(self) -> str:
        return render(
            [
                tag("b", self.title),
                self.table()._repr_html_(),
                bullets(self.remarks()),
                _svg(self.drawing()),
            ]
        )


def altair_chart(spec: dict[str, Any] | None) -> Any:
    """Returns a Vega-Lite specification as an Altair chart. Raises ValueError for None.

    In notebooks Altair's default renderer loads scripts from the network. It is replaced by the one for SVG;
    another choice of the user stays.
    """
    if spec is None:
        raise ValueError("there is nothing to draw")
    import altair as alt

    if alt.renderers.active == "default":
        alt.renderers.enable("svg")
    with alt.data_transformers.disable_max_rows():
        chart = alt.Chart.from_dict(spec)
    # Altair turns other assignments into properties of the chart.
    object.__setattr__(chart, "__class__", _offline(cast("Any", type(chart))))
    return chart


@functools.cache
def _offline(kind: type[Any]) -> type[Any]:
    """Returns a kind of chart whose HTML files contain their scripts, so that they need no network."""

    def save(self: Any, fp: Any, format: str | None = None, **settings: Any) -> None:  # noqa: A002 - altair's
        is_html = (format or str(fp).rpartition(".")[2]) == "html"
        kind.save(self, fp, format, **{**({"inline": True} if is_html else {}), **settings})

    return type(kind.__name__, (kind,), {"save": save, "__doc__": kind.__doc__})


def _svg(spec: dict[str, Any] | None) -> Content:
    if spec is None:
        return None
    from longfat.presentation.charts.files import render as render_chart

    return Markup(render_chart(spec, "svg").decode())
