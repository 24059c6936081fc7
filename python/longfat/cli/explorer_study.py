"""One cell of a study as a study file for the page of `longfat explore`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from longfat.cli.arguments.cells import conditions
from longfat.presentation import formatting
from longfat.study.points import find_cells
from longfat.study.reading import write_toml

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longfat.study import Study


def served(study: Study, protocols: Sequence[str], texts: Sequence[str]) -> dict[str, str]:
    """Returns name, text and note of the study that the page opens: the first cell with all `KEY=VALUE`.

    It has the protocols whose cells differ in nothing else, all or the given ones. Expressions have their
    values.

    Raises:
        ParameterError: for an unknown protocol, key or value.
    """
    names = list(dict.fromkeys(protocols)) or [entry.name for entry in study.protocols]
    at = conditions(texts)
    found = [find_cells(study, name, at) for name in names]
    first = found[0][0]
    common = _common(first.spec)
    shown = {own[0].protocol: own[0].spec["protocol"] for own in found if _common(own[0].spec) == common}
    notes = []
    if len(found[0]) > 1:
        notes.append(f"The page shows one cell of {len(found[0])}: {formatting.place(first.params)}.")
    if others := [name for name in names if name not in shown]:
        notes.append(f"Other settings differ in the cells of {', '.join(others)}.")
    tables = [{"name": name, **protocol} for name, protocol in shown.items()]
    text = write_toml({"title": study.title, "seed": study.seed, **common, "protocols": tables})
    return {"name": study.name, "text": text, "note": " ".join(notes)}


def _common(spec: dict[str, Any]) -> dict[str, Any]:
    """Returns what compared protocols share."""
    return {key: value for key, value in spec.items() if key not in ("protocol", "links")}
