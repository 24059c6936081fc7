"""The cell of a study that a command is about, by what the user says of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longfat.results import Cell
    from longfat.study import Study


def find_cell(study: Study, protocol: str | None, conditions: Sequence[str]) -> Cell:
    """The first cell of a protocol that fits all `KEY=VALUE`; ValueError says what there is instead."""
    from longfat.presentation import formatting
    from longfat.study import Condition, cells
    from longfat.study.vocabulary import allowed

    names = [entry.name for entry in study.protocols]
    if protocol is None and len(names) > 1:
        raise ValueError(f"--protocol is needed: the study has {', '.join(names)}")
    if protocol is not None and protocol not in names:
        hint = allowed(protocol, names)
        raise ValueError(f'--protocol: "{protocol}" is not a protocol of this study; {hint}')
    found = [one for one in cells(study) if one.protocol == (protocol or names[0])]
    found = [one for one in found if one.world == found[0].world]
    for condition in _split(conditions):
        key, equals, value = (part.strip() for part in condition.partition("="))
        if not equals or not value:
            raise ValueError(f'--cell: "{condition}": write KEY=VALUE, e.g. --cell path.loss=2%')
        if key not in study.sweep:
            raise ValueError(
                f'--cell: "{key}" is not swept; {allowed(key, study.sweep)} (--set changes others)'
            )
        kept = [one for one in found if _fits(one, key, value, Condition)]
        if not kept:
            values = dict.fromkeys(formatting.label(one.value(key)) for one in found)
            raise ValueError(
                f"--cell: {key} = {value} is no point of the sweep; allowed: {', '.join(values)}"
            )
        found = kept
    if len(found) > 1 and found[0].params:
        typer.echo(f"The first of {len(found)} cells: {formatting.place(found[0].params)}", err=True)
    return found[0]


def _fits(cell: Cell, key: str, value: str, condition: Any) -> bool:
    from longfat.presentation import formatting

    return bool(condition.parse(value).matches(cell.value(key))) or formatting.label(cell.value(key)) == value


def _split(conditions: Sequence[str]) -> list[str]:
    return [part for condition in conditions for part in condition.split(",") if part.strip()]
