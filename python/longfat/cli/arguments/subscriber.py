"""The subscriber's end of a path's presets."""

from __future__ import annotations

from typing import Any

NEAR = "near"
"""The end of a path where the forward direction starts."""


def as_subscriber(path: dict[str, Any]) -> dict[str, Any]:
    """Returns a path whose near end is the subscriber of each preset, unless its table sets the side.

    >>> as_subscriber({"preset": "dsl"}), as_subscriber({"preset": "dsl", "subscriber": "far"})
    ({'preset': 'dsl', 'subscriber': 'near'}, {'preset': 'dsl', 'subscriber': 'far'})
    >>> as_subscriber({"rate": "1Mbit/s"})
    {'rate': '1Mbit/s'}
    """
    if "hops" in path:
        return {**path, "hops": [as_subscriber(hop) for hop in path["hops"]]}
    return {**path, "subscriber": path.get("subscriber", NEAR)} if "preset" in path else path
