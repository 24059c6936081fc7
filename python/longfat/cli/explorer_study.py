"""One cell of a study as a study file for the page of `longfat explore`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from longfat.cli.arguments.cells import conditions
from longfat.extensions.names import is_class, short
from longfat.presentation import formatting
from longfat.study.points import find_cells
from longfat.study.reading import write_toml

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longfat.study import Study


def served(study: Study, protocols: Sequence[str], texts: Sequence[str]) -> dict[str, Any]:
    """Returns name, text and note of the study that the page opens: the first cell with all `KEY=VALUE`.

    It has the protocols whose cells differ in nothing else, all or the given ones. Expressions have their
    values. The `controllers` are those in Python, as protocols of the page: name, label and study keys.

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
    controllers = _controllers(
        [*tables, *({"name": one["name"], **one["protocol"]} for one in common.get("traffic", ()))]
    )
    return {"name": study.name, "text": text, "note": " ".join(notes), "controllers": controllers}


def class_of(congestion: Any) -> str | None:
    """Returns the name of the class of a controller in Python; None for another controller.

    >>> class_of({"kind": "aimd.py:Aimd", "keep": 0.8}), class_of("cubic")
    ('aimd.py:Aimd', None)
    """
    name = congestion.get("kind") if isinstance(congestion, dict) else congestion
    return name if is_class(name) else None


def _controllers(tables: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for table in tables:
        congestion = table.get("congestion")
        name = class_of(congestion)
        if name is None or table["kind"] != "tcp":
            continue
        key = {"kind": "tcp", "congestion": congestion}
        shown = f"own-{table['name']}"
        if all(one["key"] != key for one in found.values()):
            found[shown] = {"name": shown, "label": f"{table['name']} ({short(name)})", "key": key}
    return list(found.values())


def _common(spec: dict[str, Any]) -> dict[str, Any]:
    """Returns what compared protocols share."""
    return {key: value for key, value in spec.items() if key not in ("protocol", "links")}
