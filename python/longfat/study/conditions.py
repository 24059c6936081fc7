"""The filters of a claim: `where = {"path.loss" = ">=4%"}`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from longfat.extensions.names import is_class, short
from longfat.study import units

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
SPAN = ".."
"""Separates the ends of a range."""
_CONDITION = re.compile(r"\s*(>=|<=|>|<|=)?\s*(.*?)\s*")


@dataclass(frozen=True)
class Condition:
    """One filter: comparisons that must all be true. Quantities are compared by value.

    >>> Condition.parse(">=4%").matches("6%"), Condition.parse("2%..8%").matches("10%")
    (True, False)
    >>> Condition.parse("20ms").matches("0.02s"), Condition.parse("lte").matches("dsl")
    (True, False)
    """

    comparisons: tuple[tuple[str, str | int], ...]

    @classmethod
    def parse(cls, text: str | int) -> Condition:
        """Reads `VALUE`, `=VALUE`, `>=VALUE`, `<=VALUE`, `>VALUE`, `<VALUE` or `LOW..HIGH` (ends included).

        Raises:
            ValueError: for a missing operand, and for an order of values that are not quantities.
        """
        if isinstance(text, int):
            return cls((("=", text),))
        low, dots, high = text.partition(SPAN)
        comparisons: tuple[tuple[str, str], ...]
        if dots:
            comparisons = ((">=", low.strip()), ("<=", high.strip()))
        else:
            match = _CONDITION.fullmatch(text)
            sign, operand = (match[1] or "=", match[2]) if match else ("=", "")
            comparisons = ((sign, operand),)
        for sign, operand in comparisons:
            if not operand:
                raise ValueError(
                    f'"{text}" has no value to compare with; write e.g. ">=4%", "2%..8%" or "20ms"'
                )
            if sign != "=":
                units.parse(operand)
        return cls(comparisons)

    def matches(self, value: object) -> bool:
        """Returns whether a cell's value matches. Values of different dimensions never match."""
        return all(_compare(sign, value, operand) for sign, operand in self.comparisons)

    def incomparable(self, values: Sequence[object]) -> tuple[str | int, object] | None:
        """Returns an operand and a swept value that are quantities of different dimensions.

        An order needs the same dimension in all values, equality in one.

        >>> Condition.parse(">=4ms").incomparable(["1%", "2%"])
        ('4ms', '1%')
        >>> Condition.parse("20pkt").incomparable(["20pkt", "30kB"]) is None
        True
        """
        for sign, operand in self.comparisons:
            dimension = _dimension(operand)
            known = [(value, found) for value in values if (found := _dimension(value)) is not None]
            other = [value for value, found in known if found != dimension]
            if dimension is not None and other and (sign != "=" or len(other) == len(values)):
                return operand, other[0]
        return None


def _dimension(value: object) -> str | None:
    try:
        return units.parse(value).dimension
    except ValueError:
        return None


def _compare(sign: str, value: object, operand: str | int) -> bool:
    try:
        left, right = units.parse(value), units.parse(operand)
    except ValueError:
        return sign == "=" and (str(value) == str(operand) or _same_class(value, operand))
    return left.dimension == right.dimension and _COMPARE[sign](left.value, right.value)


def _same_class(value: object, operand: object) -> bool:
    """Returns whether both name the same class; a condition gives it without the folder."""
    return is_class(value) and is_class(operand) and short(str(value)) == short(str(operand))
