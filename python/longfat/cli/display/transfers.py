"""Progress of file transfers."""

from __future__ import annotations

import time

from longfat.progress import Display, Rate, clock

_SPEED_OVER_S = 3.0


class Transfers:
    """Shows the progress of transfers, each known by a key. Sizes are in bytes."""

    def __init__(self, display: Display) -> None:
        self._display = display
        self._running: dict[str, tuple[str, int, Rate]] = {}

    def start(self, key: str, name: str, total: int, done: int) -> None:
        """Starts a transfer of `total` bytes, `done` of which are already there."""
        rate = Rate(_SPEED_OVER_S)
        rate.update(done, time.monotonic())
        self._running[key] = (name, total, rate)

    def advance(self, key: str, done: int, name: str | None = None) -> None:
        """Shows that `done` bytes are there; `name` is that of the current file, if it changes."""
        if key not in self._running:
            return
        before, total, rate = self._running[key]
        name = name or before
        self._running[key] = (name, total, rate)
        # A receiver that was killed may have lost bytes that it had acknowledged.
        speed = max(0.0, rate.update(done, time.monotonic()))
        left = f"{clock((total - done) / speed)} left" if speed else "stalled"
        text = f"{name}: {size(done)} of {size(total)}, {size(speed)}/s, {left}"
        self._display.show(key, text, done / total if total else 1.0)

    def end(self, key: str) -> None:
        """Removes a transfer, complete or not."""
        if self._running.pop(key, None):
            self._display.remove(key)

    def note(self, text: str) -> None:
        """Prints a line that stays."""
        self._display.note(text)

    def close(self) -> None:
        """Removes all lines."""
        self._display.close()


def size(count: float) -> str:
    """Returns a number of bytes as text.

    >>> size(12), size(1857353), size(0)
    ('12 B', '1.86 MB', '0 B')
    """
    from longfat.presentation.formatting import quantity

    return quantity(count, "B") if count >= 1000 else f"{round(count)} B"


def printable(name: str) -> str:
    r"""Returns a file's name with its control characters replaced: they could change the display.

    >>> printable("notes.txt"), printable("a\x1b[2Jb") == "a\N{REPLACEMENT CHARACTER}[2Jb"
    ('notes.txt', True)
    """
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name)
