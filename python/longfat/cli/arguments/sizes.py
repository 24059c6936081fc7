"""Lists of sizes on the command line: 8,100..1400:100."""

from __future__ import annotations

MOST = 1000


def read(option: str, text: str) -> tuple[int, ...]:
    """Sizes in bytes, in order, each once; ValueError says what is wrong.

    >>> read("--sizes", "8,100..400:100")
    (8, 100, 200, 300, 400)
    """
    found: set[int] = set()
    for part in text.split(","):
        span, _, step = part.strip().partition(":")
        first, dots, last = span.partition("..")
        numbers = [first, last if dots else first, step or "1"]
        if not all(number.isdecimal() for number in numbers) or (dots and not step) or (step and not dots):
            raise ValueError(f'{option}: "{part}": write sizes like 8,100..1400:100 (from, to, step)')
        start, stop, by = map(int, numbers)
        if by == 0 or stop < start or (stop - start) // by >= MOST:
            raise ValueError(f'{option}: "{part}" is no range of 1 to {MOST} sizes')
        found |= set(range(start, stop + 1, by))
    return tuple(sorted(found))
