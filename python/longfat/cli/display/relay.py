"""What a relay's links do, for people: a live line, and a table at the end."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from longfat.presentation.formatting import DASH, label, quantity
from longfat.runner.progress import LINE_EVERY_S

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_RATE_OVER_S = 1.0
_DROPS = ("lost", "queue_dropped", "mtu_dropped")


class Display(Protocol):
    """Told what a relay does."""

    def note(self, text: str) -> None:
        """A line to read."""

    def show(self, now: float, report: Mapping[str, Any]) -> None:
        """What the links did up to `now`, in seconds on any clock."""

    def close(self) -> None:
        """All is over."""


class Lines:
    """Plain lines, for logs: one every few seconds while datagrams come."""

    def __init__(self) -> None:
        self._meter = Meter(LINE_EVERY_S)
        self._said = ""

    def note(self, text: str) -> None:
        """A line on standard error."""
        print(text, file=sys.stderr, flush=True)

    def show(self, now: float, report: Mapping[str, Any]) -> None:
        """Says what happened, if anything did and nothing was said for a while."""
        if self._meter.update(now, report):
            text = self._meter.text(report)
            counts = str([report[side]["entered"] for side in ("forward", "reverse")])
            if counts not in (self._said, "[0, 0]"):
                self.note(text)
            self._said = counts

    def close(self) -> None:
        """Nothing."""


class Live:
    """A line that changes, at a terminal."""

    def __init__(self, console: Console) -> None:
        from rich.live import Live as RichLive

        self._console = console
        self._meter = Meter(_RATE_OVER_S)
        self._live = RichLive(console=console, auto_refresh=False, transient=True)

    def note(self, text: str) -> None:
        """A line above it."""
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def show(self, now: float, report: Mapping[str, Any]) -> None:
        """Changes the line, about once a second."""
        from rich.text import Text

        if self._meter.update(now, report):
            self._live.start()
            self._live.update(Text(self._meter.text(report)), refresh=True)

    def close(self) -> None:
        """Takes the line away."""
        self._live.stop()


def display() -> Display:
    """The display for this process's standard error."""
    if not sys.stderr.isatty():
        return Lines()
    from rich.console import Console

    return Live(Console(stderr=True))


class Meter:
    """The rate of each link over the last `span` seconds."""

    def __init__(self, span: float) -> None:
        self._span = span
        self._then: float | None = None
        self._bytes = {"forward": 0, "reverse": 0}
        self._rates = {"forward": 0.0, "reverse": 0.0}

    def update(self, now: float, report: Mapping[str, Any]) -> bool:
        """Takes in a report; says whether a span has passed and the rates are new."""
        if self._then is None:
            self._then = now
        passed = now - self._then
        if passed < self._span:
            return False
        for side, before in self._bytes.items():
            count = report[side]["delivered_bytes"]
            self._rates[side] = (count - before) * 8 / passed
            self._bytes[side] = count
        self._then = now
        return True

    def text(self, report: Mapping[str, Any]) -> str:
        """Packets, rate and drops of both directions, in a line."""
        return "   ".join(
            f"{side}: {report[side]['delivered']:,} packets, {quantity(self._rates[side], 'bit/s')}, "
            f"{sum(report[side][drop] for drop in _DROPS):,} dropped"
            for side in self._rates
        )


def in_words(path: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """The path, a line a direction, or one line where both are alike.

    >>> list(in_words({"forward": {"rate": "10Mbit/s", "loss": "2%"}, "reverse": {"loss": "2%"}}))
    ['Forward: rate 10Mbit/s, loss 2%', 'Reverse: loss 2%']
    >>> list(in_words({"forward": {}, "reverse": {}}))
    ['Both directions: nothing is delayed or lost']
    """
    forward, reverse = (_link(path[side]) for side in ("forward", "reverse"))
    if forward == reverse:
        yield f"Both directions: {forward}"
    else:
        yield f"Forward: {forward}"
        yield f"Reverse: {reverse}"


def _link(keys: Mapping[str, Any]) -> str:
    listed = ", ".join(f"{key} {label(value)}" for key, value in keys.items())
    return listed or "nothing is delayed or lost"


def table(report: Mapping[str, Any]) -> Table:
    """What each link really did."""
    from rich.table import Table

    shown = Table("", box=None, pad_edge=False, header_style="dim")
    for side in ("forward", "reverse"):
        shown.add_column(side, justify="right")
    links = [report["forward"], report["reverse"]]
    for title, key in (("packets entered", "entered"), ("delivered", "delivered"), ("lost", "lost")):
        shown.add_row(title, *(f"{link[key]:,}" for link in links))
    shown.add_row("lost, share", *(_share(link) for link in links))
    for title, key in (
        ("dropped by queue", "queue_dropped"),
        ("larger than the MTU", "mtu_dropped"),
        ("duplicated", "duplicated"),
        ("corrupted", "corrupted"),
        ("reordered", "reordered"),
        ("longest queue, packets", "max_queue_packets"),
    ):
        shown.add_row(title, *(f"{link[key]:,}" for link in links))
    rates = [link["rate_bps"] for link in links]
    shown.add_row("rate", *(DASH if rate is None else quantity(rate, "bit/s") for rate in rates))
    return shown


def _share(link: Mapping[str, Any]) -> str:
    return f"{link['lost'] / link['entered'] * 100:.2f} %" if link["entered"] else DASH


def late(report: Mapping[str, Any]) -> str:
    """How late datagrams left, and what the relay or the server's machine dropped, in a line.

    >>> seen = {"late_p50_s": 1.2e-5, "late_p99_s": 9.1e-5, "clients": 1}
    >>> late({**seen, "dropped_by_relay": 0, "refused_by_server": 0})
    'Departures late by 12.0 µs (median), 91.0 µs (99th percentile); 1 client'
    """
    clients = report["clients"]
    text = (
        f"Departures late by {quantity(report['late_p50_s'], 's')} (median), "
        f"{quantity(report['late_p99_s'], 's')} (99th percentile); "
        f"{clients} {'client' if clients == 1 else 'clients'}"
    )
    for key, what in (
        ("dropped_by_relay", "dropped by the relay itself"),
        ("refused_by_server", "refused by the server's machine, where nothing listened"),
    ):
        if count := report[key]:
            text += f"; {count:,} {'datagram' if count == 1 else 'datagrams'} {what}"
    return text
