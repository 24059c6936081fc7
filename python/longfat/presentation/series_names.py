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


def series_name(study: Study, cell: Cell) -> str:
    """The full name of a cell's protocol, with the values of the keys that are swept for it alone."""
    short = grid.series_name(study, cell)
    return title(cell.protocol, cell.spec.get("protocol", {})) + short.removeprefix(cell.protocol)


def series(study: Study, cells: Iterable[Cell]) -> list[str]:
    """The full names of all series, in the order of the cells."""
    return list(dict.fromkeys(series_name(study, cell) for cell in cells))


def titles(cells: Iterable[Cell]) -> dict[str, str]:
    """The full names of the protocols by their names in the study."""
    return {cell.protocol: title(cell.protocol, cell.spec.get("protocol", {})) for cell in cells}
