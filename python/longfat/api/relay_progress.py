"""Progress of a relay: its address and path at the start, then the traffic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from longfat.api import addresses
from longfat.system.progress import Display

SIDES = ("forward", "reverse")
_DROPS = ("lost", "queue_dropped", "mtu_dropped", "outage_dropped", "nat_dropped")


class RelayProgress:
    """Shows the reports of a relay as they arrive."""

    def __init__(self, display: Display, target: str) -> None:
        self._display = display
        self._target = target
        self._is_refused = False

    def start(self, address: str, path: Mapping[str, Mapping[str, Any]]) -> None:
        """Prints the address for clients and the path in both directions."""
        self._display.note(f"Listening on {address} for {self._target} (Ctrl-C stops)")
        if addresses.is_open(address):
            self._display.note("Every host that reaches this address may send through it.")
        for line in describe(path):
            self._display.note(line)

    def show(self, report: Mapping[str, Any], rates: Mapping[str, float]) -> None:
        """Shows counters, and rates in bit/s."""
        if report["refused_by_server"] and not self._is_refused:
            self._is_refused = True
            self._display.note(f"longfat: nothing listens at {self._target}: datagrams are lost there")
        if any(report[side]["entered"] for side in SIDES):
            self._display.show("", progress_line(report, rates))

    def close(self) -> None:
        """Removes the line about the traffic."""
        self._display.close()


def progress_line(report: Mapping[str, Any], rates: Mapping[str, float]) -> str:
    """Returns packets, rate (in bit/s) and drops of both directions as one line."""
    from longfat.presentation.formatting import quantity

    return "   ".join(
        f"{side}: {report[side]['delivered']:,} packets, {quantity(rate, 'bit/s')}, "
        f"{sum(report[side][drop] for drop in _DROPS):,} dropped"
        for side, rate in rates.items()
    )


def describe(path: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Returns the path as one line for each direction, or one line for equal directions.

    >>> list(describe({"forward": {"rate": "10Mbit/s", "loss": "2%"}, "reverse": {"loss": "2%"}}))
    ['Forward: rate 10Mbit/s, loss 2%', 'Reverse: loss 2%']
    >>> list(describe({"forward": {}, "reverse": {}}))
    ['Both directions: no delay, no loss']
    """
    forward, reverse = (_link(path[side]) for side in ("forward", "reverse"))
    if forward == reverse:
        yield f"Both directions: {forward}"
    else:
        yield f"Forward: {forward}"
        yield f"Reverse: {reverse}"


def _link(keys: Mapping[str, Any]) -> str:
    from longfat.presentation.formatting import label

    listed = ", ".join(f"{key} {label(value)}" for key, value in keys.items())
    return listed or "no delay, no loss"
