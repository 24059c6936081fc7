"""Documents of captures, small enough to read."""

from __future__ import annotations

from typing import Any

from longfat.analysis.captures import explained
from longfat.analysis.captures.explained import Direction

Document = dict[str, Any]


def point(time: float, **figures: Any) -> Document:
    """Returns a slice with its middle in s: 10 kB in flight, 50 ms, 8 Mbit/s without losses."""
    known = {"flight": 10_000, "window": 64_000, "rtt_s": 0.05, "rate_bps": 8e6, "repeated": 0}
    return {"time_s": time, **known, **figures}


def interval(start: float, end: float, cause: str, first: int = 0, last: int = 0, **figures: Any) -> Document:
    """Returns an interval: 100 packets, a flight that grows from 5 kB to 10 kB over 50 ms."""
    known = {
        "packets": 100,
        "repeated": 0,
        "spurious": 0,
        "timeouts": 0,
        "first_flight": 5_000,
        "flight": 10_000,
        "window": 64_000,
        "rtt_s": 0.05,
        "queue_s": None,
        "rate_bps": 8e6,
    }
    place = {"start_s": start, "end_s": end, "cause": cause, "frames": [first, last]}
    return {**place, "evidence": known | figures}


def direction(series: list[Document], intervals: list[Document], **figures: Any) -> Document:
    """Returns the data of an end: an idle RTT of 50 ms, a bottleneck of 10 Mbit/s."""
    times: dict[str, float] = {}
    for one in intervals:
        times[one["cause"]] = times.get(one["cause"], 0.0) + one["end_s"] - one["start_s"]
    path = {
        "position": "sender",
        "base_rtt_s": 0.05,
        "least_loss_queue_s": 0.005,
        "rtt_p50_s": 0.06,
        "rate_bps": 10e6,
        "rate_from": "queue",
        "peak_bps": 10e6,
        "standing_queue_s": None,
        "repeated_share": 0.02,
        "mss": 1448,
        "window": 64_000,
        "flight": 10_000,
        "changes": [],
    }
    known = {
        "bytes": 1_000_000,
        "duration_s": 1.0,
        "start_s": 0.05,
        "data_packets": 700,
        "repeated_packets": 14,
        "random_loss_packets": 14,
        "overflow_packets": 0,
        "burst_packets": 0,
        "timeouts": 0,
        "unseen_bytes": 0,
        "wireshark": {"zero_windows": 0},
        "packets": 700,
        "causes": [
            {"cause": cause, "time_s": time} for cause, time in sorted(times.items(), key=lambda one: -one[1])
        ],
        "intervals": intervals,
        "series": series,
    }
    return {**known, "path": path | figures.pop("path", {}), **figures}


def connection(stream: int, sender: Document) -> Document:
    return {
        "stream": stream,
        "multipath": None,
        "client": f"10.0.0.1:{40_000 + stream}",
        "server": "10.0.0.2:443",
        "has_handshake": True,
        "repeated_syns": 0,
        "directions": [sender, direction([], [], bytes=0, duration_s=0.0)],
    }


def capture(*connections: Document) -> Document:
    others = {"udp": 0, "other": 0, "unreadable": 0, "other_interfaces": 0}
    return {
        "frames": 1400,
        "others": others,
        "omitted": {"connections": 0, "bytes": 0, "packets": 0},
        "ended_early": None,
        "quic": [],
        "connections": list(connections),
    }


def shown(series: list[Document], intervals: list[Document], **figures: Any) -> Direction:
    """Returns the direction of a capture with one connection."""
    return explained.directions(connection(0, direction(series, intervals, **figures)))[0]


def lossy(**figures: Any) -> Document:
    """Returns a direction of 1 s: handshake, slow start, then loss with two retransmissions."""
    series = [
        point(0.075, rate_bps=1e6),
        point(0.125, flight=20_000, rate_bps=2e6),
        point(0.175, flight=40_000, rtt_s=0.055),
        point(0.225, repeated=2),
        *(point(0.275 + 0.05 * step) for step in range(15)),
    ]
    intervals = [
        interval(0.0, 0.05, "handshake"),
        interval(0.05, 0.2, "slow-start", 4, 90),
        interval(0.2, 1.0, "random-loss", 91, 1400),
    ]
    return direction(series, intervals, **figures)
