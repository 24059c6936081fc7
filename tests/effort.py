"""Counts of random cases and kills, which `LONGFAT_EFFORT` scales. `crates/testing` is the Rust version."""

from __future__ import annotations

import math
import os

import pytest

EFFORT = "LONGFAT_EFFORT"
"""The share of the full count: 1/8 by default, as in `make test`; 1 in `make test-all`; more in long runs."""


def effort() -> float:
    """The value of `LONGFAT_EFFORT`."""
    text = os.environ.get(EFFORT, "0.125")
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found < math.inf:
        raise pytest.UsageError(f'{EFFORT}: "{text}" is not a positive number')
    return found


def cases(full: int) -> int:
    """Returns the share of a full count, at least 1."""
    return max(1, round(full * effort()))


def count(variable: str, full: int) -> int:
    """Returns the number in a variable, such as `LONGFAT_KILLS`, or the share of a full count."""
    return int(os.environ.get(variable) or cases(full))
