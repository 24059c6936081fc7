"""Waiting for what must happen: by looking for it, never by a pause that a busy machine outlasts."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

PATIENCE_S = 60.0
"""Until then it has happened, also on a machine that has much other work: only a failure takes so long."""


def wait_until(what: Callable[[], object]) -> None:
    """Waits for it; a test fails where it does not come."""
    end = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < end
        time.sleep(0.01)


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
