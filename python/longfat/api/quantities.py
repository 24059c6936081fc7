"""Quantities with units as values of parameters."""

from __future__ import annotations

import math

from longfat.system.parameters import ParameterError

Duration = str
"""A duration with its unit ("100ms"). The names of these types are the placeholders on the command line."""
Rate = str
"""A rate with its unit ("10Mbit/s")."""
Size = str
"""A size with its unit ("2MB")."""

_EXAMPLES = {"rate": '"10Mbit/s" or T1', "duration": '"5ms"', "size": '"1428B"', "proportion": '"2%"'}


def quantity(text: str, dimension: str) -> float:
    """Returns a text with its unit as a number in base units (s, bit/s, B).

    Raises ValueError for another dimension and for negative values.
    """
    from longfat.study import units

    found = units.parse(text)
    if found.dimension != dimension:
        raise ValueError(f'"{text}" is not a {dimension}: write e.g. {_EXAMPLES[dimension]}')
    if found.value < 0:
        raise ValueError(f'"{text}" is below 0')
    return float(found.value)


def of_parameter(parameter: str, text: str, dimension: str) -> float:
    """Returns the value of a parameter, as `quantity` does. Raises ParameterError."""
    try:
        return quantity(text, dimension)
    except ValueError as error:
        raise ParameterError(parameter, str(error)) from None


def duration(parameter: str, text: str, least: float = 0.0, most: float = math.inf) -> float:
    """Returns the value of a parameter in s, from `least` to `most`. Raises ParameterError."""
    from longfat.presentation.formatting import quantity as shown

    value = of_parameter(parameter, text, "duration")
    if not least <= value <= most:
        raise ParameterError(parameter, f"{text} is out of range: {shown(least, 's')} to {shown(most, 's')}")
    return value


def whole_bytes(parameter: str, text: str) -> int:
    """Returns a size as a whole number of bytes above 0. Raises ParameterError."""
    found = of_parameter(parameter, str(text), "size")
    if found != int(found) or found < 1:
        raise ParameterError(parameter, f'"{text}" is not a whole number of bytes above 0')
    return int(found)
