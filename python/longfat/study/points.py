"""Selects one cell of a study by protocol and point of the sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from longfat.study.conditions import Condition
from longfat.study.labels import label
from longfat.study.sweep import cells, selectable
from longfat.study.vocabulary import allowed
from longfat.system.parameters import ParameterError

if TYPE_CHECKING:
    from longfat.study.cell import Cell
    from longfat.study.specification import Study


def find_cells(study: Study, protocol: str | None, at: Mapping[str, Any]) -> list[Cell]:
    """Returns the cells of a protocol in the study's first world where swept keys have the given values.

    A value is one of the sweep ("2%"), or a condition ("<= 2%"). Without a protocol, the study must have only
    one.

    Raises:
        ParameterError: for an unknown protocol, key or value.
    """
    names = [entry.name for entry in study.protocols]
    if protocol is None and len(names) > 1:
        raise ParameterError("", f"{{protocol}} is required for this study; allowed: {', '.join(names)}")
    if protocol is not None and protocol not in names:
        raise ParameterError("protocol", f'"{protocol}" is not in this study; {allowed(protocol, names)}')
    found = [one for one in cells(study) if one.protocol == (protocol or names[0])]
    found = [one for one in found if one.world == found[0].world]
    return cells_at(found, at, study, " ({settings} for others)")


def cells_at(found: Sequence[Cell], at: Mapping[str, Any], study: Study, hint: str = "") -> list[Cell]:
    """Returns those of some cells of a study where swept keys have the given values.

    `hint` ends the message about a key that is not swept.

    Raises:
        ParameterError: for an unknown key or value.
    """
    found = list(found)
    swept = selectable(study.sweep)
    for key, value in at.items():
        if key not in swept:
            known = allowed(key, swept) if swept else "this study has no sweep"
            raise ParameterError("cell", f'"{key}" is not swept; {known}{hint}')
        meeting = [one for one in found if _meets(one, key, value)]
        if not meeting:
            values = dict.fromkeys(label(one.value(key)) for one in found)
            raise ParameterError("cell", f"{key} = {value} is not swept; allowed: {', '.join(values)}")
        found = meeting
    return found


def _meets(cell: Cell, key: str, value: Any) -> bool:
    own = cell.value(key)
    if own == value or label(own) == label(value):
        return True
    return isinstance(value, str) and cell.meets(key, Condition.parse(value))
