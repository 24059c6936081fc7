"""The value of an expression: exact arithmetic with dimensions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from longfat.study.expressions.dimension import NUMBER, Dimension, ExpressionError, Value, of_text
from longfat.study.expressions.parsing import Name, Node, Quantity, mapped

RELATIVE = ("BDP", "RTT")
"""Units that depend on the path."""
ROUNDING: dict[str, Callable[[Fraction], int]] = {
    "ceil": math.ceil,
    "floor": math.floor,
    "round": round,
}
ROOT = "sqrt"
_ROOT_DIGITS = 12
"""The decimals of a square root that is no fraction."""
_OPERATORS: dict[str, Callable[[Sequence[Fraction]], Fraction]] = {
    "+": lambda numbers: numbers[0] + numbers[1],
    "-": lambda numbers: numbers[0] - numbers[1],
    "*": lambda numbers: numbers[0] * numbers[1],
    "min": min,
    "max": max,
}
_VERBS = {"+": "plus", "-": "minus", "min": "and", "max": "and"}


def evaluate(node: Node, value_of: Callable[[str], Value]) -> Value:
    """Returns the value of a tree; `value_of` gives those of names, and of units that are not fixed (`2BDP`).

    Raises:
        ExpressionError: for different dimensions, a division by zero, or a name without a value.
    """

    def leaf(one: Quantity | Name) -> Value:
        if isinstance(one, Name):
            return value_of(one.text)
        return quantity(one.text, value_of)

    return mapped(node, leaf, apply)


def quantity(text: str, value_of: Callable[[str], Value]) -> Value:
    """Returns the value of a number with a unit, which `value_of` gives if it is one of the path."""
    relative = next((unit for unit in RELATIVE if text.endswith(unit)), "")
    try:
        found = of_text(text.removesuffix(relative))
    except ValueError as error:
        raise ExpressionError(str(error)) from None
    return apply("*", [found, value_of(relative)]) if relative else found


def dimension(function: str, arguments: Sequence[Dimension]) -> Dimension:
    """Returns the dimension of the value of an operator or a function; raises ExpressionError without one."""
    first = arguments[0]
    if function in (*ROUNDING, ROOT) and first != NUMBER:
        raise ExpressionError(f"{function}() takes a number, not a {first}: divide by a unit")
    if function in ("*", "/"):
        return first.times(arguments[1], 1 if function == "*" else -1)
    for other in arguments[1:]:
        if other != first:
            raise ExpressionError(f"{first} {_VERBS[function]} {other} has no meaning")
    return first


def apply(function: str, arguments: Sequence[Value]) -> Value:
    """Returns the value of an operator or a function.

    >>> str(apply("*", [of_text("10Mbit/s"), of_text("40ms")]))
    '50000B'
    >>> apply("+", [of_text("1kB"), of_text("1s")])
    Traceback (most recent call last):
    ...
    longfat.study.expressions.dimension.ExpressionError: size plus duration has no meaning
    """
    found = dimension(function, [one.dimension for one in arguments])
    numbers = [one.number for one in arguments]
    shares = [one.is_share for one in arguments]
    if function in ROUNDING:
        return Value(Fraction(ROUNDING[function](numbers[0])))
    if function == ROOT:
        return Value(_root(numbers[0]))
    if function == "/":
        if numbers[1] == 0:
            raise ExpressionError("division by zero")
        is_share = found == NUMBER and shares[0] and not shares[1]
        return Value(numbers[0] / numbers[1], found, is_share=is_share)
    return Value(_OPERATORS[function](numbers), found, is_share=found == NUMBER and any(shares))


def _root(number: Fraction) -> Fraction:
    """Returns the square root of a number, exact if it is a fraction, without rounding by the machine.

    >>> _root(Fraction(9, 4)), float(_root(Fraction(2)))
    (Fraction(3, 2), 1.414213562373)
    """
    if number < 0:
        raise ExpressionError(f"{ROOT}() takes no negative number")
    above, below = math.isqrt(number.numerator), math.isqrt(number.denominator)
    if above**2 == number.numerator and below**2 == number.denominator:
        return Fraction(above, below)
    scale = 10**_ROOT_DIGITS
    return Fraction(math.isqrt(number.numerator * scale**2 // number.denominator), scale)
