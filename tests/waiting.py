"""Waiting for what must happen: by looking for it, never by a pause that a busy machine outlasts."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

PATIENCE_S = 60.0
"""Until then it has happened, also on a machine that has much other work: only a failure takes so long."""

ATTEMPTS = 8
"""Largest number of measurements that other work may disturb."""


def wait_until(what: Callable[[], object]) -> None:
    """Waits for it; a test fails where it does not come."""
    end = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < end
        time.sleep(0.01)


def undisturbed(measure: Callable[[], T], is_right: Callable[[T], bool]) -> T:
    """Measures until a measurement is right; gives the last one, for assertions about it.

    A busy machine delays packets between real kernels at times, which falsifies a measurement.
    """
    for _ in range(ATTEMPTS - 1):
        measured = measure()
        if is_right(measured):
            return measured
    return measure()


def runs(*words: str) -> bool:
    """Whether a process has these among its arguments (Linux)."""
    wanted = {word.encode() for word in words}
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if wanted <= set(file.read_bytes().split(b"\0")):
                return True
        except OSError:  # it has ended
            continue
    return False
