"""Dimensions of quantities, as powers of bit, second and packet, and values that carry them."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from fractions import Fraction

from longfat.study import units

BITS_PER_BYTE = 8
LARGEST = Fraction(10) ** 30
"""The largest magnitude of a value; larger ones have no meaning in a network."""


class ExpressionError(ValueError):
    """An expression without a value."""


@dataclass(frozen=True)
class Dimension:
    """Powers of bit, second and packet.

    >>> str(RATE), str(Dimension(bits=1, seconds=1)), str(Dimension())
    ('rate', 'bit*s', 'number')
    """

    bits: int = 0
    seconds: int = 0
    packets: int = 0

    def times(self, other: Dimension, sign: int = 1) -> Dimension:
        """Returns the dimension of a product, or of a quotient with `sign` -1."""
        return Dimension(
            self.bits + sign * other.bits,
            self.seconds + sign * other.seconds,
            self.packets + sign * other.packets,
        )

    def __str__(self) -> str:
        named = {dimension: name for name, dimension in DIMENSIONS.items()}
        if self in named:
            return named[self]
        powers = {"bit": self.bits, "s": self.seconds, "packet": self.packets}
        return "*".join(unit if power == 1 else f"{unit}^{power}" for unit, power in powers.items() if power)


NUMBER = Dimension()
SIZE = Dimension(bits=1)
RATE = Dimension(bits=1, seconds=-1)
DURATION = Dimension(seconds=1)
FREQUENCY = Dimension(seconds=-1)
PACKETS = Dimension(packets=1)
DIMENSIONS = {
    "number": NUMBER,
    "size": SIZE,
    "rate": RATE,
    "duration": DURATION,
    "frequency": FREQUENCY,
    "packets": PACKETS,
}
"""The dimensions that keys and metrics have, by their names in messages."""


_TEXTS = {
    NUMBER: (Fraction(1), 12, ""),
    SIZE: (Fraction(1, BITS_PER_BYTE), 0, "B"),
    DURATION: (Fraction(1000), 6, "ms"),
    RATE: (Fraction(1, 10**6), 6, "Mbit/s"),
    FREQUENCY: (Fraction(1), 9, "/s"),
    PACKETS: (Fraction(1), 0, "pkt"),
}
"""How values are written, by dimension: the unit's inverse size, the decimals, and the unit."""
_SHARE = (Fraction(100), 9, "%")


@dataclass(frozen=True)
class Value:
    """A number in bit, s and packets. `is_share` is whether it is written in percent."""

    number: Fraction
    dimension: Dimension = NUMBER
    is_share: bool = False

    def __post_init__(self) -> None:
        if abs(self.number) > LARGEST:
            raise ExpressionError("the value is too large")

    def __str__(self) -> str:
        """The value as a study writes it.

        >>> str(of_text("2.5MB")), str(of_text("0.02s")), str(of_text("80%"))
        ('2500000B', '20ms', '80%')
        """
        if self.dimension not in _TEXTS:
            raise ExpressionError(f"the result has the dimension {self.dimension}, which no key takes")
        scale, digits, unit = _SHARE if self.is_share else _TEXTS[self.dimension]
        return f"{units.decimal(Fraction(round(self.number * scale * 10**digits), 10**digits))}{unit}"

    def setting(self) -> str | int | float:
        """Returns the value as the value of a key: text with a unit, or a number."""
        text = str(self)
        if self.dimension != NUMBER or self.is_share:
            return text
        return int(self.number) if self.number.denominator == 1 else float(self.number)


@functools.lru_cache(maxsize=4096)
def of_text(text: str) -> Value:
    """Returns a quantity such as "20ms" or "1500B" as a value; raises ValueError for other texts."""
    found = units.parse(text)
    scale = BITS_PER_BYTE if found.dimension == "size" else 1
    return Value(
        found.value * scale, DIMENSIONS.get(found.dimension, NUMBER), is_share=found.dimension == "proportion"
    )
