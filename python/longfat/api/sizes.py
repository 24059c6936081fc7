"""Lists of sizes: 8,100..1400:100."""

from __future__ import annotations

from collections.abc import Iterable

from longfat.system.parameters import ParameterError

MOST = 1000


def read(parameter: str, given: str | int | Iterable[int]) -> tuple[int, ...]:
    """Returns the sizes of a list in bytes, sorted and without duplicates.

    Raises ParameterError.

    >>> read("sizes", "8,100..400:100"), read("sizes", range(100, 301, 100)), read("sizes", 56)
    ((8, 100, 200, 300, 400), (100, 200, 300), (56,))
    """
    if isinstance(given, str):
        return _of_text(parameter, given)
    sizes = sorted({given} if isinstance(given, int) else set(given))
    if not sizes or len(sizes) > MOST or sizes[0] < 0:
        raise ParameterError(parameter, f"1 to {MOST} sizes of at least 0 bytes are allowed")
    return tuple(sizes)


def _of_text(parameter: str, text: str) -> tuple[int, ...]:
    found: set[int] = set()
    for part in text.split(","):
        span, _, step = part.strip().partition(":")
        first, dots, last = span.partition("..")
        numbers = [first, last if dots else first, step or "1"]
        if not all(number.isdecimal() for number in numbers) or bool(dots) != bool(step):
            raise ParameterError(parameter, f'"{part}": write sizes like 8,100..1400:100 (from, to, step)')
        start, stop, by = map(int, numbers)
        if by == 0 or stop < start or (stop - start) // by >= MOST:
            raise ParameterError(parameter, f'"{part}" is not a range of 1 to {MOST} sizes')
        found |= set(range(start, stop + 1, by))
    return tuple(sorted(found))
