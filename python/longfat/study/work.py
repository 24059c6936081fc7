"""Estimates the work of a trial from its specification.

The estimate counts packets on links and ignores slow start and recovery. It is accurate to a factor of two or
three, which is enough for planning.
"""

from __future__ import annotations

import functools
import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from longfat import _native
from longfat.study import units
from longfat.study.vocabulary import canonical

ACKNOWLEDGED = 1.5
"""Packets per data packet on a link: receivers acknowledge every second one."""
FLOW = 20.0
"""The time to open and close a flow, in packets."""
MULTIPATH = 2.0
"""The factor for packets that a scheduler assigns to a path."""
WAITED_S = 0.001
"""The time of a request in the hosts of an emulated network, in s."""

_BITS = 8
_PROBED_FLOWS_S = "2s"


@dataclass(frozen=True)
class Work:
    """One trial: packets over all links, and the duration of its measured flows in s."""

    packets: float
    seconds: float


def work(spec: Mapping[str, Any]) -> Work:
    """Returns the estimate for a trial; zero for an invalid specification."""
    return _work(canonical({**spec, "seed": 1, "trial": 0}))


@functools.lru_cache(maxsize=4096)
def _work(text: str) -> Work:
    try:
        laid = json.loads(_native.layout(text))
    except ValueError:
        return Work(0.0, 0.0)
    spec = json.loads(text)
    workloads = {None: spec["workload"]} | {one["name"]: one["workload"] for one in spec.get("traffic", [])}
    lasting = _seconds(spec["workload"], "duration")
    crossing = Counter(link for flow in laid["flows"] for link in flow["links"])
    members = Counter(flow["traffic"] for flow in laid["flows"])
    packets = seconds = 0.0
    for flow in laid["flows"]:
        kind = flow["traffic"]
        of_flow = _Flow(flow, laid["links"], crossing, spec["protocol"] if kind is None else {})
        sent, lasted = of_flow.transfer(workloads[kind], lasting, members[kind])
        scheduled = kind is None and spec["protocol"].get("kind") == "mptcp"
        packets += sent * max(len(flow["links"]), 1) * ACKNOWLEDGED * (MULTIPATH if scheduled else 1)
        seconds = max(seconds, lasted if kind is None else 0.0)
    return Work(packets, seconds)


class _Flow:
    """One flow: its rate and RTT on links that all flows share evenly."""

    def __init__(
        self,
        flow: Mapping[str, Any],
        links: list[Mapping[str, Any]],
        crossing: Counter[int],
        protocol: Mapping[str, Any],
    ) -> None:
        there, back = (([links[number] for number in flow[way]]) for way in ("links", "reverse_links"))
        self.payload = float(flow["payload_bytes"])
        self.delay = math.fsum(link["delay_s"] or 0.0 for link in (*there, *back))
        shares = [
            link["rate_bps"] / crossing[number]
            for number, link in zip(flow["links"], there, strict=True)
            if link["rate_bps"]
        ]
        self.rate = min(shares, default=math.inf)
        if protocol.get("kind") == "mptcp":
            # The layout has only its first path; it can fill all paths.
            self.rate = max(self.rate, math.fsum(link["rate_bps"] or 0.0 for link in links) / 2)
        self.round_trip = self.delay + self.payload * _BITS / self.rate
        tcp = flow["tcp"] or {}
        lost = math.fsum(units.number(link["loss"]) or 0.0 for link in there if isinstance(link["loss"], str))
        if lost and self.round_trip > 0 and not str(tcp.get("controller", "bbr")).startswith("bbr"):
            # Mathis et al., CCR 27, 1997, times two for controllers that are faster than Reno.
            self.rate = min(self.rate, 2 * self.payload * _BITS / (self.round_trip * math.sqrt(lost)))
        window = tcp.get("window_bytes") or self._window(protocol)
        if window and self.round_trip > 0:
            self.rate = min(self.rate, window * _BITS / self.round_trip)
        timeout = units.number(protocol.get("rto"))
        if timeout:
            # ARQ with a set timeout waits for it after each loss of a packet or its ACK.
            both = math.fsum(
                units.number(link["loss"]) or 0.0 for link in (*there, *back) if isinstance(link["loss"], str)
            )
            each = self.payload * _BITS / self.rate + timeout * both / max(1 - both, 0.1)
            self.rate = self.payload * _BITS / each

    def _window(self, protocol: Mapping[str, Any]) -> float | None:
        if protocol.get("kind") == "stop-and-wait":
            return self.payload
        window = units.number(protocol.get("window"))
        return window * self.payload if window else None

    def transfer(self, workload: Mapping[str, Any], lasting: float, members: int) -> tuple[float, float]:
        """Returns the data packets of one of `members` equal flows, and their time in s."""
        kind = workload.get("kind")
        duration = _seconds(workload, "duration") or lasting
        if kind == "request-response":
            count = int(workload.get("requests", 1))
            size = _size(workload.get("size")) or 0.0
            request = size or _size(workload.get("request_size")) or 100.0
            response = size or _size(workload.get("response_size")) or 10e3
            count *= int(workload.get("streams", 1))
            each_way = count * (math.ceil(request / self.payload) + math.ceil(response / self.payload))
            each = (
                self.delay + (request + response) * _BITS / self.rate + _seconds(workload, "think") + WAITED_S
            )
            return each_way, count * each * (1 + bool(workload.get("reconnect")))
        if kind == "web-page":
            groups = workload.get("objects", [])
            sizes = [(_size(group.get("size")) or 0.0, int(group.get("count", 1))) for group in groups]
            packets = sum(count * (1 + math.ceil(size / self.payload)) for size, count in sizes)
            sent = math.fsum(count * size for size, count in sizes) * _BITS / self.rate
            pauses = math.fsum(_seconds(group, "pause") for group in groups)
            return packets + FLOW, sent + pauses + (2 + len(groups)) * self.round_trip
        if kind == "frames":
            frames = duration * (units.number(workload.get("frame_rate")) or 30.0)
            return frames * math.ceil((_size(workload.get("size")) or 1.0) / self.payload) + FLOW, duration
        if kind == "all-reduce":
            rounds, size = int(workload.get("rounds", 1)), _size(workload.get("size")) or 0.0
            hosts, steps = members, 2 * (members - 1)
            if workload.get("algorithm") == "halving-doubling":
                hosts = next(2**bits for bits in range(1, members + 1) if bits * 2**bits >= members)
                steps = 2 * (hosts.bit_length() - 1)
            # All hosts together send 2 (n - 1) vectors.
            of_host, of_flow = (2 * (hosts - 1) * size / count for count in (hosts, members))
            each = steps * self.delay + of_host * _BITS / self.rate + _seconds(workload, "think")
            return rounds * of_flow / self.payload + FLOW, rounds * each
        if kind == "file":
            size = _size(workload.get("size")) or 0.0
            begin = _seconds(workload, "start") + _seconds(workload, "start_jitter")
            return size / self.payload + FLOW, begin + size * _BITS / self.rate + 4 * self.round_trip
        limit = units.number(workload.get("rate")) or math.inf
        if kind == "arrivals":
            arriving = (units.number(workload.get("arrivals")) or 0.0) / members
            size = _mean_size(canonical({k: workload[k] for k in _SIZES if k in workload}))
            a_second = min(arriving * size / self.payload, self.rate / _BITS / self.payload)
            return duration * (a_second + FLOW * arriving), duration
        return min(limit, self.rate) / _BITS / self.payload * duration + FLOW, duration


_SIZES = ("size", "sizes", "largest", "shape", "sizes_file")


@functools.lru_cache(maxsize=64)
def _mean_size(text: str) -> float:
    """Returns the mean flow size of an arrivals workload in bytes, from some hundred drawn flows."""
    workload = json.loads(text) | {"kind": "arrivals", "arrivals": "500/s", "duration": _PROBED_FLOWS_S}
    path = {"rate": "100Gbit/s", "delay": "0ms"}
    spec = {"path": path, "protocol": {"kind": "tcp"}, "workload": workload, "seed": 1, "trial": 0}
    # Imported here because most studies need no polars, which is slow to import.
    from longfat.system.flow_table import flow_table

    sizes = flow_table(json.loads(_native.simulate(canonical(spec)))["flows"])["size_bytes"].to_list()
    return math.fsum(sizes) / max(len(sizes), 1)


def _seconds(workload: Mapping[str, Any], key: str) -> float:
    return (units.number(workload[key]) if key in workload else None) or 0.0


def _size(value: Any) -> float | None:
    return None if value is None else units.number(value)
