"""One cell of a study: the specification that its trials share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from longfat.study.conditions import Condition
from longfat.study.keys import lookup
from longfat.study.units import number
from longfat.study.vocabulary import canonical


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
    def identity(self) -> tuple[str, str, str]:
        """World, protocol and point of the sweep, by which a study has one cell."""
        return self.world, self.protocol, canonical(self.params)

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

    def meets(self, key: str, condition: Condition) -> bool:
        """Returns whether the value of a dotted key meets a condition: its label, expression or quantity.

        >>> spec = {"path": {"queue": "50000B"}}
        >>> cell = Cell("sim", "gbn", {"path.queue": "1BDP"}, spec)
        >>> [cell.meets("path.queue", Condition.parse(text)) for text in ("1BDP", ">=40kB", "2BDP")]
        [True, True, False]
        """
        written, _ = self.computed.get(self._own(key), ("", 0))
        known = [value for value in (self.value(key), self._set(key), written) if value not in (None, "")]
        return any(condition.matches(value) for value in known)

    def _own(self, key: str) -> str:
        """Returns a dotted key as the specification has it; empty for a key of another protocol."""
        parts = key.split(".")
        if parts[0] != "protocols":
            return key
        return ".".join(["protocol", *parts[2:]]) if len(parts) > 2 and parts[1] == self.protocol else ""

    def _set(self, key: str) -> Any:
        """Returns the value of a dotted key in the specification."""
        return lookup(self.spec, self._own(key).split("."))
