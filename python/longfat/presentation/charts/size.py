"""Sizes of charts and of their text, and ranges of axes, as written by the user."""

from __future__ import annotations

import re
from dataclasses import dataclass

from longfat.study import units
from longfat.system.parameters import ParameterError

PX_PER_INCH = 96.0
"""Pixels per inch of SVG and CSS."""
COLUMNS = {"column": 3.5, "two-column": 7.16}
"""Widths of one and of both columns of a two-column paper in inches (IEEE's templates)."""
UNITS = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4, "pt": 1 / 72, "px": 1 / PX_PER_INCH}
"""Lengths in inches."""

_SMALLEST, _LARGEST = 1.0, 60.0
_FONT_SMALLEST, _FONT_LARGEST = 4.0, 72.0
_NUMBER = r"(\d+(?:\.\d*)?|\.\d+)"
_SIZE = re.compile(rf"{_NUMBER}(?:x{_NUMBER})?({'|'.join(UNITS)})")
_FONT = re.compile(rf"{_NUMBER}(pt|px)")

_DIMENSIONS = {"s": ("duration",), "bit/s": ("rate",), "B": ("size",), "packets": ("packets", "number")}
"""The dimensions of quantities that have the unit of a metric; plain numbers and proportions otherwise."""
_EXAMPLES = {"s": "10ms..14ms", "bit/s": "2Mbit/s..4Mbit/s", "B": "10kB..20kB", "packets": "0..50pkt"}


@dataclass(frozen=True)
class Size:
    """The size of a whole chart in inches; by default the height follows from the width."""

    width: float
    height: float | None = None


def read_size(text: str) -> Size:
    """Returns a size written as a paper's column, as a width, or as width and height.

    Raises ParameterError.

    >>> read_size("column"), read_size("9x6cm").width > read_size("3.5x2in").width
    (Size(width=3.5, height=None), True)
    """
    if text in COLUMNS:
        return Size(COLUMNS[text])
    found = _SIZE.fullmatch(text.replace(" ", ""))
    if found is None:
        columns = ", ".join(f"{name} ({width:g}in)" for name, width in COLUMNS.items())
        units = ", ".join(UNITS)
        raise ParameterError(
            "size",
            f'"{text}" is not a size; allowed: {columns}, a width such as 3.5in, or width and height such as '
            f"3.5x2.2in (units: {units})",
        )
    width, height = (None if side is None else float(side) * UNITS[found[3]] for side in found.groups()[:2])
    for length in (width, height):
        if length is not None and not _SMALLEST <= length <= _LARGEST:
            raise ParameterError(
                "size", f'"{text}" is out of range: {_SMALLEST:g}in to {_LARGEST:g}in for each side'
            )
    return Size(width or 0.0, height)


def read_range(name: str, text: str, unit: str) -> tuple[float, float]:
    """Returns the limits of an axis in the base unit of its metric ("" for a plain number).

    Raises ParameterError for the parameter `name`.

    >>> read_range("y_range", "10ms..14ms", "s"), read_range("y_range", "0..50pkt", "packets")
    ((0.01, 0.014), (0.0, 50.0))
    """
    example = _EXAMPLES.get(unit, "0..1")
    parts = str(text).split("..")
    if len(parts) != 2:
        raise ParameterError(name, f'"{text}" is not a range; write LOW..HIGH, e.g. {example}')
    try:
        low, high = (units.parse(part.strip()) for part in parts)
    except ValueError as error:
        raise ParameterError(name, f"{error}; write LOW..HIGH, e.g. {example}") from None
    wanted = _DIMENSIONS.get(unit, ("number", "proportion", "packets"))
    if any(one.value != 0 and one.dimension not in wanted for one in (low, high)):
        raise ParameterError(name, f'"{text}" does not have the unit of the metric; write e.g. {example}')
    if low.value >= high.value:
        raise ParameterError(name, f'"{text}": the first limit must be below the second')
    return float(low.value), float(high.value)


def read_font_size(text: str) -> float:
    """Returns the size of text in px. Raises ParameterError.

    >>> read_font_size("9pt"), read_font_size("12px")
    (12.0, 12.0)
    """
    found = _FONT.fullmatch(str(text).replace(" ", ""))
    if found is None:
        raise ParameterError("font_size", f'"{text}" is not a font size; write it in pt or px, e.g. 8pt')
    points = float(found[1]) * UNITS[found[2]] / UNITS["pt"]
    if not _FONT_SMALLEST <= points <= _FONT_LARGEST:
        raise ParameterError(
            "font_size", f'"{text}" is out of range: {_FONT_SMALLEST:g}pt to {_FONT_LARGEST:g}pt'
        )
    return points * UNITS["pt"] / UNITS["px"]
