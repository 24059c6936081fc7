"""Signals that stop a command."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType


def interrupt_on_sigterm() -> None:
    """Makes SIGTERM act like Ctrl-C: the command keeps and reports what it has."""
    signal.signal(signal.SIGTERM, _interrupt)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
