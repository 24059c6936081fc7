"""The study and the cell that a command is about."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from longfat.system.parameters import ParameterError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longfat.results.run import Cell
    from longfat.study import Study


def load(study: str, settings: Sequence[str] | None, seed: int | None = None) -> Study:
    """Returns a study with the changes of `--set` and `--seed`; notes sweeps that a whole path replaced."""
    from longfat.study import Overrides, load_study, read_setting

    loaded = load_study(study, Overrides(tuple(map(read_setting, settings or ())), (), None, seed))
    if loaded.dropped_sweeps:
        typer.echo(f"The new path replaces the sweep of {', '.join(loaded.dropped_sweeps)}", err=True)
    return loaded


def find_cell(study: Study, protocol: str | None, texts: Sequence[str]) -> Cell:
    """Returns the first cell of a protocol that meets all `KEY=VALUE`, and notes that it is the first."""
    from longfat.presentation import formatting
    from longfat.study.points import find_cells

    found = find_cells(study, protocol, conditions(texts))
    if len(found) > 1 and found[0].params:
        typer.echo(f"The first of {len(found)} cells: {formatting.place(found[0].params)}", err=True)
    return found[0]


def conditions(texts: Sequence[str]) -> dict[str, str]:
    """Returns the values by key of texts such as `KEY=VALUE,KEY=VALUE`. Raises ParameterError."""
    at = {}
    for condition in (part for text in texts for part in text.split(",") if part.strip()):
        key, equals, value = (part.strip() for part in condition.partition("="))
        if not equals or not value:
            raise ParameterError("cell", f'"{condition}": write KEY=VALUE, e.g. --cell path.loss=2%')
        at[key] = value
    return at
