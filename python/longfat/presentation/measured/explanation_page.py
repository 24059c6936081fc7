"""The report of an explained capture: a self-contained HTML file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from longfat.presentation.html.document import document, figure
from longfat.presentation.html.markup import Content, Markup, bullets, folded, paragraph, section, table, tag
from longfat.presentation.measured import explanation_charts, explanation_text

if TYPE_CHECKING:
    from longfat.api.explanations import Explanation
    from longfat.presentation.text_table import TextTable

DRAWN = ("series", "intervals")
"""Lists of a direction that the chart shows."""
_HOW = (
    "The colours show the main cause of each moment. Point at a panel for its figures and frame numbers. "
    "Drag to move along the time axis, turn the wheel with Ctrl or Shift to zoom, double-click to reset."
)


def page(found: Explanation) -> str:
    """Returns the explanation of a connection as HTML. Raises ValueError without one."""
    one = found.one
    if one is None:
        raise ValueError("the capture has no TCP connection")
    path = explanation_text.path(one).removeprefix("Path: ").split("; ")
    connections = _table(found.connections()) if len(found.document["connections"]) > 1 else None
    figures = tag("pre", tag("code", json.dumps(_figures(found), indent=2)))
    body = [
        # Addresses of IPv6 are wider than a phone.
        tag("h1", _unbroken(found.title), style="overflow-wrap: anywhere"),
        paragraph(_unbroken(found.verdict), "lead"),
        section("Causes", _table(explanation_text.causes(one, most=None))),
        section("Over time", figure(explanation_charts.over_time(one), "over-time", caption=_HOW)),
        section("Replay", _replayed(found)),
        section("Path", bullets(_unbroken(f"{text[0].upper()}{text[1:]}") for text in path)),
        section("Connections", connections),
        section("Notes", bullets(explanation_text.notes(found.document, one))),
        section("All figures", folded("JSON, without series and intervals", figures)),
    ]
    return document(found.title, body)


def _unbroken(text: str) -> str:
    """A text whose lines do not break between a number and its unit."""
    return re.sub(r"(?<=\d) (?=(?:%|[µmn]?s|[kMG]?B|[kMG]?bit/s)(?!\w))", "\N{NO-BREAK SPACE}", text)


def _replayed(found: Explanation) -> Content:
    """The sender, its simulation, and the durations with changes."""
    if found.replay is None:
        return None
    changes = explanation_text.changes(found.replay)
    lines = [line for line in explanation_text.replayed(found.replay) if line not in changes.lines()]
    return [*map(paragraph, lines), _table(changes) if changes.rows else None]


def _table(shown: TextTable) -> Markup:
    """A table whose text is aligned at the left, as in a terminal."""

    def cells(name: str, row: Sequence[str]) -> list[Markup]:
        return [
            tag(name, text, class_=None if number in shown.right else "name")
            for number, text in enumerate(row)
        ]

    return table([cells("th", shown.head)], [tag("tr", cells("td", row)) for row in shown.rows])


def _figures(found: Explanation) -> Mapping[str, Any]:
    """The figures of the largest connections and of the explained one, without lists over time."""
    document = found.to_json()
    shown = [
        connection
        for number, connection in enumerate(document["connections"])
        if number < explanation_text.MOST_CONNECTIONS
        or (found.one is not None and connection["stream"] == found.one.connection["stream"])
    ]
    return document | {"connections": [_without_lists(connection) for connection in shown]}


def _without_lists(connection: Mapping[str, Any]) -> dict[str, Any]:
    directions = [
        {key: value for key, value in direction.items() if key not in DRAWN}
        for direction in connection["directions"]
    ]
    return {**connection, "directions": directions}
