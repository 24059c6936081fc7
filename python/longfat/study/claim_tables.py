"""Short forms of claims: tables that share keys, and the default metric and protocol."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

EACH = "each"
"""The key of a group: claims with the keys of their table, and those of their own."""


def with_groups_expanded(listed: list[Any]) -> list[Any]:
    """Returns claims as single tables: each of a group has the group's other keys, unless it sets them.

    >>> with_groups_expanded([{"of": "bbr", "by": "5%", "each": [{"id": "a"}, {"id": "b", "by": "9%"}]}])
    [{'of': 'bbr', 'by': '5%', 'id': 'a'}, {'of': 'bbr', 'by': '9%', 'id': 'b'}]
    """
    return [claim for entry in listed for claim in _claims(entry)]


def _claims(entry: Any) -> Iterator[Any]:
    own = members(entry)
    if not own:
        yield entry
        return
    shared = {key: value for key, value in entry.items() if key != EACH}
    for one in own:
        yield from _claims({**shared, **one})


def members(entry: Any) -> list[dict[str, Any]]:
    """Returns the tables in a group; none of other entries, and if `each` is no list of tables."""
    listed = entry.get(EACH) if isinstance(entry, dict) else None
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        return []
    return list(listed)


def with_defaults(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the tables of a study whose claims have a metric and a protocol, if these have a default.

    >>> study = {"show": ["share"], "protocols": [{"name": "bbr"}], "claims": [{"id": "a"}]}
    >>> with_defaults(study)["claims"]
    [{'metric': 'share', 'of': 'bbr', 'id': 'a'}]
    """
    claims, shown, protocols = (tables.get(key) for key in ("claims", "show", "protocols"))
    defaults = {}
    if isinstance(shown, list) and shown and isinstance(shown[0], str):
        defaults["metric"] = shown[0]
    if isinstance(protocols, list) and len(protocols) == 1 and isinstance(protocols[0], dict):
        defaults["of"] = protocols[0].get("name", "")
    if not defaults or not isinstance(claims, list):
        return dict(tables)
    completed = [defaults | claim if isinstance(claim, dict) else claim for claim in claims]
    return {**tables, "claims": completed}
