"""Lists of sizes: 8,100..1400:100."""

from __future__ import annotations

MOST = 1000


def read(option: str, text: str) -> tuple[int, ...]:
    """Returns the sizes of a list in bytes, sorted and without duplicates.

    Raises ValueError with the option.

    >>> read("--sizes", "8,100..400:100")
    (8, 100, 200, 300, 400)
    """
    found: set[int] = set()
    for part in text.split(","):
        span, _, step = part.strip().partition(":")
        first, dots, last = span.partition("..")
        numbers = [first, last if dots else first, step or "1"]
        if not all(number.isdecimal() for number in numbers) or bool(dots) != bool(step):
            raise ValueError(f'{option}: "{part}": write sizes like 8,100..1400:100 (from, to, step)')
        start, stop, by = map(int, numbers)
        if by == 0 or stop < start or (stop - start) // by >= MOST:
            raise ValueError(f'{option}: "{part}" is not a range of 1 to {MOST} sizes')
        found |= set(range(start, stop + 1, by))
    return tuple(sorted(found))
