"""Quantities with units as values of options."""

from __future__ import annotations

import math

from longfat.study import units

_EXAMPLES = {"rate": '"10Mbit/s" or T1', "duration": '"5ms"', "size": '"1428B"', "proportion": '"2%"'}


def quantity(text: str, dimension: str) -> float:
    """Returns a text with its unit as a number in base units (s, bit/s, B).

    Raises ValueError for another dimension and for negative values.
    """
    found = units.parse(text)
    if found.dimension != dimension:
        raise ValueError(f'"{text}" is not a {dimension}: write e.g. {_EXAMPLES[dimension]}')
    if found.value < 0:
        raise ValueError(f'"{text}" is below 0')
    return float(found.value)


def of_option(option: str, text: str, dimension: str) -> float:
    """Returns the value of an option, as `quantity` does. Raises ValueError with the option."""
    try:
        return quantity(text, dimension)
    except ValueError as error:
        raise ValueError(f"{option}: {error}") from None


def duration(option: str, text: str, least: float = 0.0, most: float = math.inf) -> float:
    """Returns the value of an option in s, from `least` to `most`. Raises ValueError with the option."""
    from longfat.presentation.formatting import quantity as shown

    value = of_option(option, text, "duration")
    if not least <= value <= most:
        raise ValueError(f"{option}: {text} is out of range: {shown(least, 's')} to {shown(most, 's')}")
    return value
