"""Full names of protocols in charts and reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from longfat.analysis import grid
from longfat.presentation import names

if TYPE_CHECKING:
    from longfat.results.run import Cell
    from longfat.study import Study


def title(name: str, settings: Mapping[str, Any]) -> str:
    """The full name of a study's protocol. A short name of the study follows in parentheses.

    A name in words stays as it is.

    >>> title("reno", {"kind": "tcp", "congestion": "reno"}), title("gbn", {"kind": "go-back-n", "window": 4})
    ('TCP Reno', 'Go-Back-N (gbn)')
    >>> title("go-back-n", {"kind": "go-back-n"}), title("My variant", {"kind": "tcp", "congestion": "cubic"})
    ('Go-Back-N', 'My variant')
    """
    kind, control = str(settings.get("kind", "")), names.controller_of(settings)
    in_words = any(letter.isspace() or letter.isupper() for letter in name)
    if not kind or in_words or ":" in control:
        return name
    full = names.protocol_of({key: settings[key] for key in ("kind", "congestion") if key in settings})
    return full if name in (control, kind) else f"{full} ({name})"


def protocol_name(study: Study, cell: Cell) -> str:
    """The label of a cell's protocol, or else its full name."""
    if cell.label:
        return cell.label
    full = title(cell.protocol, cell.spec.get("protocol", {}))
    # A label may be the full name of another protocol.
    return f"{full} ({cell.protocol})" if full in study.labels.values() else full


def series_name(study: Study, cell: Cell) -> str:
    """The label or full name of a cell's protocol, with the values of the keys swept for it alone."""
    short = grid.series_name(study, cell)
    return protocol_name(study, cell) + short.removeprefix(cell.display_name)


def series(study: Study, cells: Iterable[Cell]) -> list[str]:
    """The names of all series as in charts, in the order of the cells."""
    return list(dict.fromkeys(series_name(study, cell) for cell in cells))


def titles(study: Study, cells: Iterable[Cell]) -> dict[str, str]:
    """The labels or full names of the protocols by their names in the study."""
    return {cell.protocol: protocol_name(study, cell) for cell in cells}
