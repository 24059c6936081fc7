"""Protocols that differ by ECN: without it in a queue that marks, or made for marks in one that drops."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from longfat.results.run import CellResult

BY_MARKS = ("dctcp", "prague")
"""Controllers that differ from Reno by their reaction to marks."""


@dataclass(frozen=True)
class Unmarked:
    """A protocol whose packets the queue dropped; it marked those of the protocols in `beside`."""

    protocol: str
    beside: tuple[str, ...]


def without_ecn(cells: Sequence[CellResult]) -> Iterator[Unmarked]:
    """Yields each protocol with drops and no mark where others have marks, unless its `ecn` is set."""
    found: dict[str, dict[str, None]] = {}
    for group in _points(cells):
        marked = {one.cell.display_name: None for one in group if _count(one, "marks") > 0}
        for one in group:
            if marked and "ecn" not in _protocol(one) and _only_drops(one):
                found.setdefault(one.cell.display_name, {}).update(marked)
    for protocol, beside in found.items():
        yield Unmarked(protocol, tuple(beside))


def without_marks(cells: Sequence[CellResult]) -> Iterator[str]:
    """Yields each protocol with a controller of `BY_MARKS` that has drops and, in all cells, no mark."""
    named: dict[str, list[CellResult]] = {}
    for one in cells:
        if _controller(one) in BY_MARKS:
            named.setdefault(one.cell.display_name, []).append(one)
    for protocol, own in named.items():
        if any(_only_drops(one) for one in own) and not any(_count(one, "marks") > 0 for one in own):
            yield protocol


def _points(cells: Sequence[CellResult]) -> Iterator[list[CellResult]]:
    """Yields the cells of each world and point of the sweep."""
    groups: dict[tuple[str, str], list[CellResult]] = {}
    for one in cells:
        groups.setdefault((one.cell.world, repr(sorted(one.cell.params.items()))), []).append(one)
    yield from groups.values()


def _only_drops(one: CellResult) -> bool:
    return _count(one, "drops") > 0 and _count(one, "marks") == 0


def _count(one: CellResult, metric: str) -> float:
    """Returns the sum of a metric over the trials; NaN if it is unknown."""
    values = one.samples.get(metric) or [math.nan]
    return math.fsum(values)


def _protocol(one: CellResult) -> dict[str, Any]:
    protocol: dict[str, Any] = one.cell.spec.get("protocol") or {}
    return protocol


def _controller(one: CellResult) -> str:
    congestion = _protocol(one).get("congestion")
    return str(congestion.get("kind") if isinstance(congestion, dict) else congestion)
