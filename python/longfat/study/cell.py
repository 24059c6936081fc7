"""One cell of a study: the specification that its trials share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from longfat.study.keys import lookup
from longfat.study.units import number


@dataclass(frozen=True)
class Cell:
    """One world, one protocol, one point of the sweep.

    `params` are the swept keys as written in the study (`{"path.loss": "2%"}`); a swept
    `protocols.NAME.KEY` is a param of that protocol only. `spec` is the whole trial specification (`path`
    or `topology`, `protocol`, `workload`, optionally `traffic` and `links`) without seed and trial number.
    `computed` has the expressions of the study and their values in `spec`, by dotted key. `label` is the
    protocol's name in tables and charts, empty unless the study gives one, and no part of the specification.
    """

    world: str
    protocol: str
    params: dict[str, Any]
    spec: dict[str, Any]
    computed: Mapping[str, tuple[str, str | int | float]] = field(default_factory=dict)
    label: str = ""

    @property
    def display_name(self) -> str:
        """The protocol's label, or else its name."""
        return self.label or self.protocol

    def value(self, key: str) -> Any:
        """Returns the value of a dotted key in this cell, swept or not; None if the study does not set it.

        `protocol.KEY` means this cell's protocol; `protocols.NAME.KEY` is None in cells of another one.

        >>> spec = {"path": {"delay": "5ms"}, "protocol": {"window": 4}}
        >>> cell = Cell("sim", "gbn", {"path.loss": "2%"}, spec)
        >>> cell.value("path.loss"), cell.value("path.delay"), cell.value("protocol.window")
        ('2%', '5ms', 4)
        """
        return self.params[key] if key in self.params else self._set(key)

    def number(self, key: str) -> float | None:
        """Returns the value of a dotted key in its base unit, also of a labelled value; None without one.

        >>> spec = {"path": {"loss": "2%"}}
        >>> Cell("sim", "gbn", {"path.loss": "much"}, spec).number("path.loss")
        0.02
        """
        shown = number(self.value(key))
        return number(self._set(key)) if shown is None else shown

    def _set(self, key: str) -> Any:
        """Returns the value of a dotted key in the specification."""
        parts = key.split(".")
        if parts[0] == "protocols":
            if len(parts) < 3 or parts[1] != self.protocol:
                return None
            parts = ["protocol", *parts[2:]]
        return lookup(self.spec, parts)
