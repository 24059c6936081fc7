"""Buffers of TCP (profile `linux`) for a given window or flight: the inverse of the transport's rules."""

from __future__ import annotations

import math

_RECEIVED, _SENT = 856, 832
"""Bytes of memory of a segment in addition to its payload: `receive_overhead` and `send_overhead`."""
_WHOLE = 256
"""A window is a number of 256ths of the memory (`TCP_RMEM_TO_WIN_SCALE`)."""


def for_window(window: float, mss: int) -> str:
    """Returns the receive buffer that advertises windows up to `window` bytes.

    An ACK leaves before the application reads the segment that caused it, so the buffer holds one more.

    >>> for_window(38_552, 1448)
    '64000B'
    """
    share = max(1, _WHOLE * mss // (mss + _RECEIVED))
    return f"{math.ceil((window + mss) * _WHOLE / share)}B"


def for_flight(flight: int, mss: int) -> str:
    """Returns the send buffer that holds a flight of `flight` bytes.

    >>> for_flight(44 * 1448, 1448)
    '100320B'
    """
    return f"{math.ceil(flight / mss) * (mss + _SENT)}B"
