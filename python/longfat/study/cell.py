"""One cell of a study: the specification that its trials share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from longfat.keys import lookup


@dataclass(frozen=True)
class Cell:
    """One world, one protocol, one point of the sweep.

    `params` are the swept keys as written in the study (`{"path.loss": "2%"}`); a swept
    `protocols.NAME.KEY` is a param of that protocol only. `spec` is the whole trial specification (`path`
    or `topology`, `protocol`, `workload`, optionally `traffic`) without seed and trial number.
    """

    world: str
    protocol: str
    params: dict[str, Any]
    spec: dict[str, Any]

    def value(self, key: str) -> Any:
        """Returns the value of a dotted key in this cell, swept or not; None if the study does not set it.

        `protocol.KEY` means this cell's protocol; `protocols.NAME.KEY` is None in cells of another one.

        >>> spec = {"path": {"delay": "5ms"}, "protocol": {"window": 4}}
        >>> cell = Cell("sim", "gbn", {"path.loss": "2%"}, spec)
        >>> cell.value("path.loss"), cell.value("path.delay"), cell.value("protocol.window")
        ('2%', '5ms', 4)
        """
        if key in self.params:
            return self.params[key]
        parts = key.split(".")
        if parts[0] == "protocols":
            if len(parts) < 3 or parts[1] != self.protocol:
                return None
            parts = ["protocol", *parts[2:]]
        return lookup(self.spec, parts)
