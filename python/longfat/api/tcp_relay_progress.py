"""Progress of a TCP relay: its addresses and path at the start, then the traffic and failures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from longfat.api import addresses
from longfat.api.relay_progress import SIDES, describe, progress_line
from longfat.system.progress import Display


class Proxy(NamedTuple):
    """A protocol by which clients name their target: its name in the native part and its usual one."""

    mode: str
    title: str


PROXIES = {"socks": Proxy("socks5", "SOCKS5"), "http_connect": Proxy("http-connect", "HTTP CONNECT")}
"""Protocols by which clients name their target, by parameter."""


class TcpRelayProgress:
    """Shows the reports of a TCP relay as they arrive."""

    def __init__(self, display: Display) -> None:
        self._display = display
        self._failures: set[tuple[str, str]] = set()

    def start(self, listening: Sequence[tuple[str, str, str]], path: Mapping[str, Mapping[str, Any]]) -> None:
        """Prints the addresses for clients with their targets and transport protocols, and the path."""
        titles = {proxy.mode: f"targets of clients ({proxy.title})" for proxy in PROXIES.values()}
        for address, target, transport in listening:
            shown = titles.get(target, target)
            self._display.note(f"Listening on {address} for {shown} ({transport}; Ctrl-C stops)")
        if any(addresses.is_open(address) for address, _, _ in listening):
            self._display.note("Every host that reaches this address may connect through it.")
        for line in describe(path):
            self._display.note(line)

    def note(self, text: str) -> None:
        """Prints a line."""
        self._display.note(text)

    def fail(self, target: str, reason: str) -> None:
        """Prints why a target cannot be reached: each reason once."""
        if (target, reason) not in self._failures:
            self._failures.add((target, reason))
            self._display.note(f"longfat: {target}: {reason}; clients are reset, other connections continue")

    def show(self, report: Mapping[str, Any], rates: Mapping[str, float]) -> None:
        """Shows counters, and rates in bit/s."""
        if any(report[side]["entered"] for side in SIDES):
            count = report["open"]
            connections = f"{count:,} {'connection' if count == 1 else 'connections'}"
            self._display.show("", f"{connections}   {progress_line(report, rates)}")

    def close(self) -> None:
        """Removes the line about the traffic."""
        self._display.close()
