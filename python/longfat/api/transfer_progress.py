"""Progress of file transfers."""

from __future__ import annotations

import json
import time

from longfat.system.progress import Display, Rate, clock

_SPEED_OVER_S = 3.0


class Transfers:
    """Shows the progress of transfers, each known by a key. Sizes are in bytes."""

    def __init__(self, display: Display) -> None:
        self._display = display
        self._running: dict[str, tuple[str, int | None, Rate]] = {}

    def start(self, key: str, name: str, total: int | None, done: int) -> None:
        """Starts a transfer of `total` bytes (None: unknown), `done` of which are already there."""
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
        if total is None:
            self._display.show(key, f"{name}: {size(done)}, {size(speed)}/s")
            return
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


class Sending:
    """Shows the progress of `_native.send_files`."""

    _KEY = "all"

    def __init__(self, display: Display) -> None:
        self._transfers = Transfers(display)
        self._is_started = False
        self._is_waiting = False
        self.done = 0
        """Bytes that arrived."""
        self.total: int | None = None
        """Bytes of all files; None if unknown."""

    def show(self, text: str) -> None:
        """Shows a report of `_native.send_files`."""
        now = json.loads(text)
        label = printable(now["name"])
        if now["files"] > 1:
            label += f" ({now['file'] + 1} of {now['files']})"
        if now["waiting"] and not self._is_waiting:
            self._transfers.note("The receiver is gone: waiting for its return (Ctrl-C stops)")
        self._is_waiting = now["waiting"]
        if not self._is_started:
            self._is_started = True
            self._transfers.start(self._KEY, label, now["total"], now["done"])
        self._transfers.advance(self._KEY, now["done"], label)
        self.done, self.total = now["done"], now["total"]

    @property
    def arrived(self) -> str:
        """What arrived so far, for messages about a failure; empty if nothing did."""
        if not self.done:
            return ""
        if self.total is None:
            return f"; {size(self.done)} arrived and were discarded: standard input cannot be resumed"
        return f"; {size(self.done)} of {size(self.total)} arrived; send again to resume"

    def close(self) -> None:
        """Removes all lines."""
        self._transfers.close()


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
