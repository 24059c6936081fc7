"""The side of a preset that a command's user is on."""

from __future__ import annotations

from typing import Any

NEAR = "near"
"""The end of a path from which forward leads."""


def as_subscriber(path: dict[str, Any]) -> dict[str, Any]:
    """The path with its near end as the subscriber of each preset whose table does not state the side.

    >>> as_subscriber({"preset": "dsl"}), as_subscriber({"preset": "dsl", "subscriber": "far"})
    ({'preset': 'dsl', 'subscriber': 'near'}, {'preset': 'dsl', 'subscriber': 'far'})
    >>> as_subscriber({"rate": "1Mbit/s"})
    {'rate': '1Mbit/s'}
    """
    if "hops" in path:
        return {**path, "hops": [as_subscriber(hop) for hop in path["hops"]]}
    return {**path, "subscriber": path.get("subscriber", NEAR)} if "preset" in path else path
