"""Signals that stop a command."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType


def interrupt_on_sigterm() -> None:
    """Makes SIGTERM act like Ctrl-C: the command keeps and reports what it has."""
    signal.signal(signal.SIGTERM, _interrupt)


@contextlib.contextmanager
def stopped_at_once() -> Iterator[None]:
    """Makes Ctrl-C end the process at once, for native code that keeps nothing and does not poll signals."""
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:  # background processes ignore Ctrl-C
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
