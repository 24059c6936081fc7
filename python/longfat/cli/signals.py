"""Being told to end."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType


def end_like_ctrl_c() -> None:
    """Makes SIGTERM mean what Ctrl-C does: what is done is kept and told."""
    signal.signal(signal.SIGTERM, _stop)


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
