"""Progress on standard error: lines that change at a terminal, a plain line every few seconds elsewhere."""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from longfat.system.interactive import is_interactive, is_notebook

if TYPE_CHECKING:
    from rich.console import Console

LINE_EVERY_S = 5.0
"""Interval between plain lines about the same activity."""
_REFRESH_EVERY_S = 0.1
_BAR_WIDTH = 20


class Display(Protocol):
    """Shows one line for each running activity, and notes."""

    def show(self, key: str, text: str, part: float | None = None) -> None:
        """Updates the line of the activity `key`; `part` is its completed part (0 to 1), where known."""

    def remove(self, key: str) -> None:
        """Removes the line of an activity."""

    def note(self, text: str) -> None:
        """Prints a line that stays."""

    def close(self) -> None:
        """Removes all lines."""


class Silent:
    """A display that shows nothing."""

    def show(self, key: str, text: str, part: float | None = None) -> None:
        """Does nothing."""

    def remove(self, key: str) -> None:
        """Does nothing."""

    def note(self, text: str) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Does nothing."""


class Lines(Silent):
    """Plain lines, for logs: at most one every `LINE_EVERY_S` for each activity."""

    def __init__(self) -> None:
        self._printed: dict[str, tuple[float, str]] = {}

    def show(self, key: str, text: str, part: float | None = None) -> None:  # noqa: ARG002 - the text suffices
        """Prints the text if it changed and the last line of this activity is old enough."""
        now = time.monotonic()
        then, before = self._printed.setdefault(key, (now, ""))
        if now - then >= LINE_EVERY_S and text != before:
            self.note(text)
            self._printed[key] = (now, text)

    def remove(self, key: str) -> None:
        """Forgets the activity."""
        self._printed.pop(key, None)

    def note(self, text: str) -> None:
        """Prints a line on standard error."""
        print(text, file=sys.stderr, flush=True)


class Live:
    """Lines that change in place at a terminal, with a bar where the completed part is known."""

    def __init__(self, console: Console) -> None:
        from rich.live import Live as RichLive

        self._console = console
        self._live = RichLive(console=console, auto_refresh=False, transient=True)
        self._rows: dict[str, tuple[str, float | None]] = {}
        self._refreshed = 0.0

    def show(self, key: str, text: str, part: float | None = None) -> None:
        """Updates a line, at most every 0.1 s."""
        self._rows[key] = (text, part)
        if time.monotonic() - self._refreshed >= _REFRESH_EVERY_S:
            self._refresh()

    def _refresh(self) -> None:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        rows = Table.grid(padding=(0, 1))
        for text, part in self._rows.values():
            bar = "" if part is None else ProgressBar(1.0, part, width=_BAR_WIDTH)
            rows.add_row(bar, Text(text, no_wrap=True, overflow="ellipsis"))
        self._live.start()
        self._live.update(rows, refresh=True)
        self._refreshed = time.monotonic()

    def remove(self, key: str) -> None:
        """Removes a line, and the display with the last one."""
        self._rows.pop(key, None)
        if self._rows:
            self._refresh()
        else:
            self._live.stop()

    def note(self, text: str) -> None:
        """Prints a line above the changing ones."""
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def close(self) -> None:
        """Removes all lines."""
        self._rows.clear()
        self._live.stop()


class Notebook(Silent):
    """A bar for each activity in the output of a notebook's cell, which disappears at the end."""

    def __init__(self) -> None:
        self._shown = importlib.import_module("IPython.display").display
        self._handle: Any = None
        self._rows: dict[str, tuple[str, float | None]] = {}
        self._refreshed = 0.0

    def show(self, key: str, text: str, part: float | None = None) -> None:
        """Updates a line, at most every 0.1 s."""
        self._rows[key] = (text, part)
        if time.monotonic() - self._refreshed >= _REFRESH_EVERY_S:
            self._refresh()

    def _refresh(self) -> None:
        from html import escape

        bars = (
            ("" if part is None else f'<progress max="1" value="{part:.4f}"></progress> ') + escape(text)
            for text, part in self._rows.values()
        )
        bundle = {"text/html": "<br>".join(bars), "text/plain": ""}
        if self._handle is None:
            self._handle = self._shown(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)
        self._refreshed = time.monotonic()

    def remove(self, key: str) -> None:
        """Removes a line."""
        self._rows.pop(key, None)
        if self._handle is not None:
            self._refresh()

    def close(self) -> None:
        """Removes all lines."""
        self._rows.clear()
        if self._handle is not None:
            self._refresh()


def display(*, log: bool = True) -> Display:
    """Returns the display of this process: a notebook's, or that of standard error.

    Without `log`, standard error shows progress only if it is a terminal.
    """
    if is_notebook():
        return Notebook()
    if sys.stderr.isatty():
        from rich.console import Console

        return Live(Console(stderr=True))
    return Lines() if log else Silent()


class Rate:
    """The rate of a growing count, over the last `span` seconds.

    >>> rate = Rate(span=1.0)
    >>> [rate.update(count, now) for now, count in enumerate([0, 10, 40])]
    [0.0, 10.0, 30.0]
    """

    def __init__(self, span: float) -> None:
        self._span = span
        self._samples: deque[tuple[float, float]] = deque()

    def update(self, count: float, now: float) -> float:
        """Returns the rate per second at `now` (s on any clock)."""
        self._samples.append((now, count))
        while len(self._samples) > 2 and now - self._samples[1][0] >= self._span:
            self._samples.popleft()
        then, before = self._samples[0]
        return (count - before) / (now - then) if now > then else 0.0


def clock(seconds: float) -> str:
    """Returns a duration as text.

    >>> clock(0.25), clock(75), clock(7260)
    ('0.2 s', '1 min 15 s', '2 h 1 min')
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 1:
        return f"{rest} s"
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def shower(display: Display, line: Callable[[Mapping[str, Any]], str]) -> Callable[[str], None]:
    """Returns a function that shows the native part's progress reports, each as the text of `line`."""
    return lambda report: display.show("", line(json.loads(report)))


def watching(requested: bool | None, *, log: bool = False) -> Display:
    """Returns the display of a measurement; by default silent, except at a prompt or in a notebook.

    With `log`, it prints plain lines outside of terminals.
    """
    return display(log=log) if (is_interactive() if requested is None else requested) else Silent()
