"""Waiting for events by polling, because fixed pauses are too short on a busy machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

PATIENCE_S = 60.0
"""Time limit in seconds; long enough for a busy machine."""

ATTEMPTS = 8
"""Maximum number of measurements, of which other load may disturb all but one."""
PAUSE_S = 1
"""Wait after the first attempt; later waits are longer, until what kept the machine busy may have ended."""


def eventually(what: Callable[[], object]) -> bool:
    """Waits until a condition is true, or the time limit has passed; returns whether it is true."""
    end = time.monotonic() + PATIENCE_S
    while not what():
        if time.monotonic() >= end:
            return False
        time.sleep(0.01)
    return True


def wait_until(what: Callable[[], object]) -> None:
    """Waits until a condition is true; the test fails at the time limit."""
    assert eventually(what)


def undisturbed(measure: Callable[[], T], is_right: Callable[[T], bool]) -> T:
    """Repeats a measurement until it is right; returns the last one for assertions.

    A busy machine can delay packets between real kernels, which distorts measurements.
    """
    for attempt in range(1, ATTEMPTS):
        measured = measure()
        if is_right(measured):
            return measured
        time.sleep(PAUSE_S * attempt)
    return measure()


def runs(*words: str) -> bool:
    """Whether a process with these arguments runs (Linux)."""
    wanted = {word.encode() for word in words}
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if wanted <= set(file.read_bytes().split(b"\0")):
                return True
        except OSError:  # it has ended
            continue
    return False
