"""The filters of a claim: `where = {"path.loss" = ">=4%"}`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
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
_MULTIPLE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*BDP\s*")
"""A multiple of the bandwidth-delay product, as in an expression."""
_AMOUNTS = {"BDP", "size"}
"""Dimensions of one queue: a cell has the multiple and the bytes."""
_CONDITION = re.compile(r"\s*(>=|<=|>|<|=)?\s*(.*?)\s*")


@dataclass(frozen=True)
class Condition:
    """One filter: comparisons that must all be true. Quantities are compared by value.

    >>> Condition.parse(">=4%").matches("6%"), Condition.parse("2%..8%").matches("10%")
    (True, False)
    >>> Condition.parse("20ms").matches("0.02s"), Condition.parse("lte").matches("dsl")
    (True, False)
    >>> Condition.parse(">=1BDP").matches("2BDP"), Condition.parse(">=1BDP").matches("0.5BDP")
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
                _measured(operand)
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
            wanted = dimension(operand)
            known = [(value, found) for value in values if (found := dimension(value)) is not None]
            other = [value for value, found in known if found != wanted and not {found, wanted} <= _AMOUNTS]
            if wanted is not None and other and (sign != "=" or len(other) == len(values)):
                return operand, other[0]
        return None


def _measured(value: object) -> tuple[str, Fraction]:
    """Returns the dimension of a quantity and its value in the base unit; a multiple of the BDP has its own.

    Raises ValueError for other values.
    """
    if match := _MULTIPLE.fullmatch(str(value)):
        return "BDP", Fraction(match[1])
    found = units.parse(value)
    return found.dimension, found.value


def dimension(value: object) -> str | None:
    """Returns the dimension of a value; None if it is no quantity."""
    try:
        return _measured(value)[0]
    except ValueError:
        return None


def _compare(sign: str, value: object, operand: str | int) -> bool:
    try:
        (kind, left), (other, right) = _measured(value), _measured(operand)
    except ValueError:
        return sign == "=" and (str(value) == str(operand) or _same_class(value, operand))
    return kind == other and _COMPARE[sign](left, right)


def _same_class(value: object, operand: object) -> bool:
    """Returns whether both name the same class; a condition gives it without the folder."""
    return is_class(value) and is_class(operand) and short(str(value)) == short(str(operand))
