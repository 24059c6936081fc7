"""The load of a diagnosis: echo requests to the host, and remarks about them."""

from __future__ import annotations

import math
from collections.abc import Callable
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from longfat.analysis.ping_summary import rows
from longfat.api import path_figures
from longfat.api.defaults import ECHO_PORT
from longfat.api.round_trips import ping
from longfat.measurement import load as under_load
from longfat.system.progress import watching

if TYPE_CHECKING:
    from longfat.analysis.diagnosis import QueueLimit
    from longfat.api.links import MeasuredPath
    from longfat.measurement.load import Loaded

_HEADERS = {4: 28, 6: 48}
"""Bytes of the headers of an echo request by version of IP, by ICMP and by UDP."""
_LEAST_INTERVAL_S = 0.0002
_LEAST_QUEUE = 3000.0
"""Smallest limit of a queue in the model, in bytes."""


def load(
    host: str,
    path: dict[str, Any],
    measured: MeasuredPath,
    limits: tuple[int, float],
    port: int | None,
    progress: bool | None,
) -> Loaded:
    """Loads a measured path within `limits`, its bytes and seconds."""
    _, _, rate = path_figures.bottleneck(path, host)
    trip = path_figures.echo_round_trip(path, host)
    limit, seconds = limits
    display = watching(progress)
    try:
        return under_load.measure(
            _sender(measured.document["address"], port, trip),
            rate=rate,
            round_trip=trip,
            loss=measured.document["loss_round_trip"] or 0.0,
            seconds=seconds,
            limit=limit,
            show=lambda text: display.show("load", f"Load: {text}"),
        )
    finally:
        display.close()


def _sender(address: str, port: int | None, trip: float) -> Callable[[int, float, int], list[float | None]]:
    protocol: Any = "icmp" if port is None else "udp"
    payload = under_load.PACKET - _HEADERS[ip_address(address).version]

    def send(window: int, rate: float, count: int) -> list[float | None]:
        gap = 1 / rate
        pace: dict[str, Any] = (
            {"interval": f"{gap * 1e3:.6f}ms"}
            if gap >= _LEAST_INTERVAL_S
            else {"flood": True, "rate": math.ceil(rate)}
        )
        found = ping(
            address,
            sizes=payload,
            count=count,
            protocol=protocol,
            port=port or ECHO_PORT,
            window=window,
            timeout=f"{max(2.0, 10 * trip):.3f}s",
            progress=False,
            **pace,
        )
        if found.interrupted:
            raise KeyboardInterrupt
        clock = "kernel_s" if found.summary.clock == "kernel" else "application_s"
        return [
            float(row[clock] or row["application_s"]) if row["state"] == "answered" else None
            for row in rows(found.report)
        ]

    return send


def notes(loaded: Loaded) -> list[str]:
    """Returns remarks about the load."""
    if loaded.idle is None:
        if loaded.ended_by == "interrupt":
            return ["Load: interrupted before it started"]
        return ["Load: the host does not answer echo requests; run longfat echo there and set its port"]
    sent = f"{loaded.sent_bytes / 1e6:.1f} MB"
    if loaded.overflows:
        assert loaded.loss is not None
        return [f"Load: {sent} until the queue overflowed, with {loaded.loss:.1%} unanswered"]
    reasons = {
        "bytes": "the limit of bytes was reached",
        "time": "the limit of time was reached",
        "window": "the largest window was reached",
        "interrupt": "Ctrl-C or SIGTERM stopped it",
        "no answers": "answers stopped",
    }
    return [f"Load: {sent}; the queue did not overflow before {reasons[loaded.ended_by]}"]


def with_measured_queue(path: dict[str, Any], name: str, loaded: Loaded) -> tuple[dict[str, Any], QueueLimit]:
    """Returns the path with the queue that the load filled, and how its limit is known.

    The longest wait is the limit of a queue that overflowed, and a lower limit of another one.
    """
    longest = loaded.longest_queueing
    if not longest:
        return path, "assumed"
    _, _, rate = path_figures.bottleneck(path, name)
    seen = max(longest * rate / 8, _LEAST_QUEUE)
    if loaded.overflows:
        return path_figures.with_queue(path, name, seen), "measured"
    if seen < path_figures.queue_bytes(path, name):
        return path, "assumed"
    return path_figures.with_queue(path, name, seen), "lower limit"
