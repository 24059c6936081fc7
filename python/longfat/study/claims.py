"""Claims: statements that a run checks against its measurement."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from longfat.study import units
from longfat.study.cell import Cell
from longfat.study.claim_tables import EACH
from longfat.study.conditions import SPAN, Condition
from longfat.study.expressions.settings import is_expression, value_in
from longfat.study.vocabulary import metrics, resolve_metric, whole_metric

Relation = Literal[
    "higher",
    "lower",
    "not-lower",
    "not-higher",
    "within",
    "rises-with",
    "falls-with",
    "flat-after",
    "flat-with",
    "lead-rises-with",
    "lead-falls-with",
    "at-least",
    "at-most",
    "near",
    "best",
    "highest",
    "lowest",
    "agrees-with",
]
TRENDS = ("rises-with", "falls-with", "flat-after", "flat-with", "lead-rises-with", "lead-falls-with")
"""Relations along a swept key."""
THEORY = "theory"
"""The value of `against` for the closed form of a cell. `theory:NAME` selects one of several forms."""
PAIRS = ("higher", "lower", "not-lower", "not-higher", "within", "lead-rises-with", "lead-falls-with")
"""Relations between two protocols."""
LEVELS = ("at-least", "at-most", "near")
"""Relations to the claim's own `value`."""
BESTS = ("best", "highest", "lowest")
"""Relations to all rivals of a group."""
AGREES = "agrees-with"
"""The relation of a protocol to itself in another world, which `against` names."""

_RAISED = {"better": True, "faster": True, "quicker": True, "worse": False, "slower": False}
_MEANT = {
    **dict.fromkeys(("greater", "larger", "bigger", "more", "above"), "higher"),
    **dict.fromkeys(("less", "smaller", "fewer", "below"), "lower"),
    **dict.fromkeys(("equal", "equals", "same"), "within"),
    **dict.fromkeys(("about", "around", "approximately"), "near"),
    **dict.fromkeys(("grows-with", "increases-with", "increases"), "rises-with"),
    **dict.fromkeys(("shrinks-with", "decreases-with", "decreases"), "falls-with"),
    **dict.fromkeys(("min", "minimum"), "at-least"),
    **dict.fromkeys(("max", "maximum"), "at-most"),
}


def meant(relation: object, metric: object) -> str | None:
    """Returns the relation that a synonym means; "faster" depends on whether more of the metric is better.

    >>> meant("faster", "goodput"), meant("faster", "completion"), meant("purple", "goodput")
    ('higher', 'lower', None)
    """
    name = str(relation)
    if name not in _RAISED:
        return _MEANT.get(name)
    return "higher" if (more_is_better(str(metric)) is not False) == _RAISED[name] else "lower"


def more_is_better(metric: str) -> bool | None:
    """Returns whether higher values of a metric are better; None for one that a study computes.

    >>> more_is_better("goodput"), more_is_better("completion"), more_is_better("unfairness")
    (True, False, None)
    """
    try:
        return bool(metrics()[whole_metric(resolve_metric(metric))]["better"] == "higher")
    except (KeyError, ValueError):
        return None


MIN_TRIALS = 3
"""The fewest trials of a cell that decide a claim."""

Where = dict[str, str | int]


def _with_groups(schema: dict[str, Any]) -> None:
    """Adds the key of a group to the schema of a claim."""
    schema["properties"][EACH] = {
        "type": "array",
        "minItems": 1,
        "items": {"type": "object"},
        "description": "Claims that share the keys of this table: tables with the other keys.",
    }


class Claim(BaseModel):
    """A statement that holds, fails or is undecided."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, json_schema_extra=_with_groups)

    id: Annotated[str, Field(min_length=1)] = Field(description="Short name, unique in the study.")
    text: str = Field(description="The statement, as reports show it.")
    metric: str = Field(default="", description="Metric, e.g. goodput; default: the first of show.")
    of: str = Field(
        default="",
        description="Name of the protocol that the claim is about; default: the only protocol of the study.",
    )
    against: str | None = Field(
        default=None,
        description='Protocol to compare with, "theory", or one closed form such as "theory:pftk"; '
        "agrees-with: a world.",
    )
    against_where: Where = Field(
        default_factory=dict,
        description="Another point of the sweep to compare with: values of swept keys, e.g. "
        '{"path.queue" = "droptail"}. Without against the protocol is the same.',
    )
    relation: Relation = Field(description="Relation between the two sides.")
    among: str | list[str] | None = Field(
        default=None,
        description="best, highest, lowest: the rivals. A swept key for its other values, or a list of "
        "protocols; default: all other protocols.",
    )
    by: str | None = Field(default=None, description='Margin in percent, e.g. "5%".')
    along: str | None = Field(default=None, description="Swept key of a trend.")
    after: str | int | None = Field(
        default=None, description="flat-after: value of `along` after which the metric does not rise."
    )
    value: str | int | float | None = Field(
        default=None,
        description='at-least, at-most, near: the limit or value with its unit, e.g. "10Mbit/s", 0.95 or an '
        'expression such as "path.rate / 2"; near: also a range, e.g. "20ms..30ms"; '
        "agrees-with: a difference that is always accepted.",
    )
    where: Where = Field(
        default_factory=dict,
        description='Conditions on cells, e.g. {"path.loss" = ">=4%"}: =, >=, <=, >, <, "2%..8%".',
    )
    cells: int | str | None = Field(
        default=None,
        description='Number or share of cells in which it must hold, e.g. 9 or "90%"; default: all.',
    )
    world: str | None = Field(
        default=None, description="World in which the claim is checked; default: each world."
    )

    def to_study(self) -> dict[str, Any]:
        """Returns the claim as a table of a study."""
        return self.model_dump(exclude_unset=True)

    @model_validator(mode="before")
    @classmethod
    def _groups_are_lists(cls, table: Any) -> Any:
        if isinstance(table, dict) and EACH in table:
            raise ValueError(f"{EACH}: must be a list of tables with the keys of single claims, at least one")
        return table

    @field_validator("by")
    @classmethod
    def _margin_is_a_percentage(cls, by: str | None) -> str | None:
        if by is not None and units.proportion(by) < 0:
            raise ValueError(f'"{by}" is negative: the relation gives the direction, e.g. "lower" by "5%"')
        return by

    @field_validator("cells")
    @classmethod
    def _cells_are_a_count_or_a_share(cls, cells: int | str | None) -> int | str | None:
        if isinstance(cells, str) and not 0 < units.proportion(cells) <= 1:
            raise ValueError(f'"{cells}": must be above 0% and at most 100%')
        if isinstance(cells, int) and cells < 1:
            raise ValueError(f"{cells} is too small: at least 1")
        return cells

    @field_validator("value")
    @classmethod
    def _value_is_a_quantity(cls, value: str | float | None) -> str | int | float | None:
        ends = _ends(value)
        if len(ends) > 1 and (len(ends) > 2 or not all(ends)):
            raise ValueError(f'"{value}" is no range; write e.g. "20ms..30ms"')
        for end in ends:
            if not is_expression(end):
                units.parse(end)
        return value

    @field_validator("where")
    @classmethod
    def _conditions_can_be_read(cls, where: Where) -> Where:
        for key, condition in where.items():
            try:
                Condition.parse(condition)
            except ValueError as error:
                raise ValueError(f"{key}: {error}") from None
        return where

    @model_validator(mode="after")
    def _has_what_its_relation_needs(self) -> Self:
        needs = {
            "along": self.relation in TRENDS,
            "against": self.relation in (*PAIRS, AGREES) and not self.against_where,
            "after": self.relation == "flat-after",
            "value": self.relation in (*LEVELS, AGREES),
        }
        for key, needed in needs.items():
            given = getattr(self, key) is not None
            if self.relation == AGREES and key == "value":
                continue
            if key == "against" and self.against_where and self.relation in PAIRS:
                continue
            if needed and not given:
                raise ValueError(f'relation "{self.relation}" requires the key "{key}"')
            if given and not needed:
                raise ValueError(f'relation "{self.relation}" does not use the key "{key}"; remove it')
        self._check_range()
        if self.relation in ("within", "near") and self.by is None and len(self.ends) < 2:
            raise ValueError(f'relation "{self.relation}" requires the key "by", e.g. by = "5%"')
        if self.against_where and (self.relation not in PAIRS or self.against_theory):
            raise ValueError(f'relation "{self.relation}" does not use the key "against_where"; remove it')
        if self.among is not None and self.relation not in BESTS:
            raise ValueError(f'relation "{self.relation}" does not use the key "among"; remove it')
        if self.cells is not None and self.relation in TRENDS:
            raise ValueError(f'relation "{self.relation}" is judged as a whole: remove the key "cells"')
        if self.relation == AGREES and self.by is None and self.value is None:
            raise ValueError(
                'relation "agrees-with" requires the key "by", e.g. by = "10%", or the key "value"'
            )
        return self

    def _check_range(self) -> None:
        """Raises ValueError for a range of another relation than near, and for one with a margin."""
        if len(self.ends) < 2:
            return
        if self.relation != "near":
            raise ValueError(f'"{self.value}" is a range, which only the relation "near" takes as a value')
        if self.by is not None:
            raise ValueError('a range has no tolerance: remove the key "by"')

    def compared_with(self, protocol: str, at: Where) -> Claim:
        """Returns the claim about one rival of a group: a protocol, or another point of the sweep.

        Without `by` the rival is worse; with it, it is better by at most the margin.
        """
        upward = self.relation == "highest" or (
            self.relation == "best" and more_is_better(self.metric) is True
        )
        relation = ("higher", "not-lower") if upward else ("lower", "not-higher")
        rival = {"against": None if protocol == self.of else protocol, "against_where": at}
        return self.model_copy(update={"relation": relation[self.by is not None], "among": None, **rival})

    @property
    def against_theory(self) -> bool:
        """Whether the claim compares with a closed form."""
        if self.relation == AGREES:
            return False
        return self.against is not None and self.against.partition(":")[0] == THEORY

    @property
    def form(self) -> str:
        """The closed form that `against` names; empty for the default one."""
        return (self.against or "").partition(":")[2] if self.against_theory else ""

    @property
    def other(self) -> str:
        """The protocol to compare with: that of the claim itself at another point."""
        return self.of if self.against is None else self.against

    @property
    def sides(self) -> tuple[str, str]:
        """The names of both sides."""
        if not self.against_where:
            return self.of, str(self.against)
        point = ", ".join(f"{key} {value}" for key, value in self.against_where.items())
        return self.of, f"{self.other} at {point}"

    def enough(self, total: int) -> int:
        """The number of comparisons, of `total`, in which the claim must hold."""
        if self.cells is None:
            return total
        if isinstance(self.cells, int):
            return min(self.cells, total)
        return math.ceil(units.parse(self.cells).value * total)

    @property
    def margin(self) -> float:
        """`by` as a fraction (0.05 for "5%"); 0 without `by`."""
        return 0.0 if self.by is None else units.proportion(self.by)

    @property
    def ends(self) -> list[str | int | float]:
        """The quantities or expressions in `value`: both ends of a range, else one; none without a value."""
        return _ends(self.value)

    def limits(self, cell: Cell) -> tuple[float, ...]:
        """Returns `ends` in a cell, in their base unit (bit/s, s, packets, 1)."""
        return tuple(units.number(value_of(end, cell)) or 0.0 for end in self.ends)

    @property
    def conditions(self) -> dict[str, Condition]:
        """The parsed `where`."""
        return {key: Condition.parse(text) for key, text in self.where.items()}


def _ends(value: str | float | None) -> list[str | int | float]:
    if value is None:
        return []
    return [end.strip() for end in value.split(SPAN)] if isinstance(value, str) else [value]


def value_of(end: str | float, cell: Cell) -> str | int | float:
    """Returns a quantity, or the value of an expression in a cell; raises ExpressionError without one."""
    return value_in(cell.spec, str(end), cell.protocol) if is_expression(end) else end
