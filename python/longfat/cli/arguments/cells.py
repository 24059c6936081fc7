"""The study and the cell that a command is about."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longfat.results import Cell
    from longfat.study import Study


def load(study: str, settings: Sequence[str] | None, seed: int | None = None) -> Study:
    """Returns a study with the changes of `--set` and `--seed`; notes sweeps that a whole path replaced."""
    from longfat.study import Overrides, load_study, read_setting

    loaded = load_study(study, Overrides(tuple(map(read_setting, settings or ())), (), None, seed))
    if loaded.dropped_sweeps:
        typer.echo(f"The new path replaces the sweep of {', '.join(loaded.dropped_sweeps)}", err=True)
    return loaded


def find_cell(study: Study, protocol: str | None, conditions: Sequence[str]) -> Cell:
    """Returns the first cell of a protocol that meets all `KEY=VALUE`. Raises ValueError with the options."""
    from longfat.presentation import formatting
    from longfat.study import cells
    from longfat.study.vocabulary import allowed

    names = [entry.name for entry in study.protocols]
    if protocol is None and len(names) > 1:
        raise ValueError(f"--protocol is required for this study; allowed: {', '.join(names)}")
    if protocol is not None and protocol not in names:
        raise ValueError(f'--protocol: "{protocol}" is not in this study; {allowed(protocol, names)}')
    found = [one for one in cells(study) if one.protocol == (protocol or names[0])]
    found = [one for one in found if one.world == found[0].world]
    for condition in (part for text in conditions for part in text.split(",") if part.strip()):
        key, equals, value = (part.strip() for part in condition.partition("="))
        if not equals or not value:
            raise ValueError(f'--cell: "{condition}": write KEY=VALUE, e.g. --cell path.loss=2%')
        if key not in study.sweep:
            raise ValueError(f'--cell: "{key}" is not swept; {allowed(key, study.sweep)} (--set for others)')
        meeting = [one for one in found if _meets(one, key, value)]
        if not meeting:
            values = dict.fromkeys(formatting.label(one.value(key)) for one in found)
            raise ValueError(f"--cell: {key} = {value} is not swept; allowed: {', '.join(values)}")
        found = meeting
    if len(found) > 1 and found[0].params:
        typer.echo(f"The first of {len(found)} cells: {formatting.place(found[0].params)}", err=True)
    return found[0]


def _meets(cell: Cell, key: str, value: str) -> bool:
    from longfat.presentation import formatting
    from longfat.study import Condition

    return Condition.parse(value).matches(cell.value(key)) or formatting.label(cell.value(key)) == value
