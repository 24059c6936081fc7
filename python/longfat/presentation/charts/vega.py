"""Vega-Lite specifications as Python values: channels and layers.

Charts are written directly, without Altair: Altair validates each part many times, which takes longer than
drawing, and a report has ten charts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

Spec = dict[str, Any]
Row = dict[str, Any]
Format = Literal["svg", "png", "pdf", "html"]
"""The formats of charts as files."""

_TYPES = {"N": "nominal", "Q": "quantitative"}


def channel(column: str, **properties: Any) -> Spec:
    """Returns the encoding of a column: "y:Q" is quantitative, "series:N" nominal.

    >>> channel("y:Q", title="Goodput")
    {'field': 'y', 'type': 'quantitative', 'title': 'Goodput'}
    """
    field, _, kind = column.partition(":")
    return {"field": field, "type": _TYPES[kind], **properties}


def tooltip(titles: Mapping[str, str]) -> list[Spec]:
    """Returns the columns that a mark shows under the pointer, with their titles."""
    return [channel(column, title=title) for column, title in titles.items()]


def layer(
    mark: str,
    encoding: Spec,
    *,
    rows: Sequence[Row] | None = None,
    where: Sequence[str | Spec] = (),
    **style: Any,
) -> Spec:
    """Returns a layer with its own rows, or with those of its chart that pass all filters in `where`.

    >>> layer("rule", {"y": {"datum": 1}}, where=["datum.y > 0"], size=2)["transform"]
    [{'filter': 'datum.y > 0'}]
    """
    data = {} if rows is None else {"data": {"values": rows}}
    filters = {"transform": [{"filter": one} for one in where]} if where else {}
    return {**data, **filters, "mark": {"type": mark, **style}, "encoding": encoding}
