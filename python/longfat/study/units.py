"""Quantities of study files, for comparisons in Python: ranges, margins, conditions.

Rust checks the values of keys; this module converts valid texts to numbers. Values are exact fractions in the
base unit (s, bit/s, B, packets, 1), so that the last point of a range is exact.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from fractions import Fraction

from longfat.study.vocabulary import vocabulary


@dataclass(frozen=True)
class Unit:
    """A unit: its dimension, its size in the dimension's base unit, and whether messages leave it out."""

    dimension: str
    scale: Fraction
    alias: bool = False


@functools.cache
def known() -> dict[str, Unit]:
    """Returns all units by their names, as the native part declares them, and "" for plain numbers."""
    found = {
        entry["unit"]: Unit(dimension, _exact(entry["scale"]), entry["alias"])
        for dimension, entries in vocabulary()["units"].items()
        for entry in entries
    }
    return found | {"": Unit("number", Fraction(1))}


def _exact(scale: float) -> Fraction:
    """Returns a scale as the fraction that it stands for, such as 1/60 or 10**-9.

    >>> _exact(1e-9), _exact(1 / 60)
    (Fraction(1, 1000000000), Fraction(1, 60))
    """
    return Fraction(scale).limit_denominator(10**9)


_QUANTITY = re.compile(r"\s*(-?[0-9]+(?:\.[0-9]+)?)\s*([A-Za-z/%µμ]*)\s*")


@dataclass(frozen=True)
class Quantity:
    """A number and its unit: `magnitude` in `unit`, `value` in the base unit of its `dimension`."""

    magnitude: Fraction
    unit: str

    @property
    def dimension(self) -> str:
        """`duration`, `rate`, `size`, `proportion`, `frequency`, `packets` or `number` (no unit)."""
        return known()[self.unit].dimension

    @functools.cached_property
    def value(self) -> Fraction:
        """The value in s, bit/s, B, 1 (a proportion), 1/s, packets, or without a unit."""
        return self.magnitude * known()[self.unit].scale

    def __str__(self) -> str:
        return f"{decimal(self.magnitude)}{self.unit}"


def parse(text: object, example: str = "20ms") -> Quantity:
    """Reads "20ms", "2%", "100Mbit/s" or a plain number; raises ValueError for other values.

    >>> float(parse("20ms").value), parse("20ms").dimension
    (0.02, 'duration')
    >>> float(parse(8).value)
    8.0
    """
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        raise ValueError(f"{text!r} is not a quantity")
    return _parsed(str(text), example)


@functools.lru_cache(maxsize=4096)
def _parsed(text: str, example: str) -> Quantity:
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise ValueError(f'"{text}" is not a quantity; write a number with its unit, e.g. "{example}"')
    magnitude, unit = match.groups()
    if unit not in known():
        allowed = ", ".join(_listed())
        raise ValueError(f'"{text}" has the unknown unit "{unit}"{_meant(unit)}; allowed: {allowed}')
    return Quantity(Fraction(magnitude), unit)


def _listed() -> list[str]:
    """Returns the names of the units that messages list."""
    return [name for name, unit in known().items() if name and not unit.alias]


def _meant(unit: str) -> str:
    """Returns a hint about an unknown unit: the units that start with it.

    >>> _meant("k"), _meant("parsec")
    (' (did you mean kbit/s, kB or KiB?)', '')
    """
    begun = [name for name in _listed() if name.lower().startswith(unit.lower())]
    return (
        f" (did you mean {' or '.join(filter(None, [', '.join(begun[:-1]), begun[-1]]))}?)" if begun else ""
    )


def resembles(text: str) -> bool:
    """Returns whether a text has the form of a quantity, with a known unit or another one."""
    return _QUANTITY.fullmatch(text) is not None


def number(text: object) -> float | None:
    """Returns the value in its base unit; None if the text is not a quantity (e.g. a preset's name)."""
    try:
        return float(parse(text).value)
    except ValueError:
        return None


def proportion(text: object) -> float:
    """Returns a percentage as a fraction; raises ValueError for other values.

    >>> proportion("5%")
    0.05
    """
    quantity = parse(text, "5%")
    if quantity.dimension != "proportion":
        raise ValueError(f'{_shown(text)} is not a percentage: write it like "5%"')
    return float(quantity.value)


def expand(first: object, last: object, step: object) -> list[str | int]:
    """Returns the points of a range, ends included if steps reach them; raises ValueError if invalid.

    >>> expand("20ms", "100ms", "40ms")
    ['20ms', '60ms', '100ms']
    >>> expand(4, 12, 4)
    [4, 8, 12]
    """
    start, stop, by = parse(first), parse(last), parse(step)
    if len({start.dimension, stop.dimension, by.dimension}) > 1:
        raise ValueError(
            f"{start}, {stop} and {by} have different dimensions; from, to and step must have the same"
        )
    if by.value <= 0:
        raise ValueError(f"step {by} must be above 0")
    if stop.value < start.value:
        raise ValueError(f"to {stop} is below from {start}")
    steps = int((stop.value - start.value) / by.value)
    if steps >= MAX_POINTS:
        raise ValueError(f"{steps + 1} points are too many: at most {MAX_POINTS}")
    scale = known()[start.unit].scale
    values = [Quantity((start.value + i * by.value) / scale, start.unit) for i in range(steps + 1)]
    if start.unit:
        return [str(value) for value in values]
    if any(value.magnitude.denominator != 1 for value in values):
        raise ValueError("a range without a unit must have whole numbers")
    return [int(value.magnitude) for value in values]


MAX_POINTS = 10_000
"""The largest number of points of a range."""


def decimal(value: Fraction) -> str:
    """Returns a fraction as exact decimal digits without exponent.

    >>> decimal(Fraction(5, 2)), decimal(Fraction(1, 3))
    ('2.5', '0.333333333333')
    """
    if value.denominator == 1:
        return str(value.numerator)
    return f"{float(value):.12f}".rstrip("0").rstrip(".")


def _shown(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)
