"""DCTCP as BPF (RFC 8257): its feedback, its window, and connections without ECN."""

from __future__ import annotations

import json
import sys
from itertools import pairwise
from typing import Any

import pytest
from tests.waiting import undisturbed

from longfat import _native
from longfat.kernel.controllers import Controller, ensure
from longfat.testing.emulation import emulate

pytestmark = pytest.mark.usefixtures("_bpf", "emulated")

RATE_BPS = 20e6
THRESHOLD = 20

SERVER = """import socket, sys
with socket.create_server(("", 80)) as s:
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, sys.argv[1].encode())
    s.accept()[0].recv(1)
"""
CLIENT = """import os, socket, sys
with socket.socket() as s:
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, sys.argv[1].encode())
    s.connect((os.environ["LONGFAT_PEER"], 80))
    print(s.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\\0").decode(), end="")
"""


def specification(duration: str, warm_up: str) -> str:
    """One flow over 20 Mbit/s, 5 ms and a queue that marks above 20 packets, 1.2 times the BDP."""
    queue = {"kind": "step", "limit": "200pkt", "threshold": f"{THRESHOLD}pkt"}
    spec = {
        "path": {"rate": f"{RATE_BPS}bit/s", "delay": "5ms", "queue": queue},
        "protocol": {"kind": "tcp", "congestion": "dctcp"},
        "workload": {"kind": "bulk", "duration": duration, "warm_up": warm_up},
        "seed": 1,
    }
    return json.dumps(spec)


def measure(controller: Controller) -> dict[str, float]:
    record = json.loads(_native.emulate(specification("4s", "2s"), {"dctcp": controller.kernel_name}))
    assert record["error"] is None
    metrics: dict[str, float] = record["metrics"]
    return metrics


def test_each_ack_covers_segments_with_the_same_mark() -> None:
    """RFC 8257, section 3.2: a delayed ACK leaves when the mark changes."""
    with ensure("dctcp", source="bpf") as controller:
        names = {"dctcp": controller.kernel_name}
        record = json.loads(_native.emulate_traced(specification("1500ms", "0s"), names))
    received = [one for one in record["events"] if one["host"] == "receiver" and one["what"] == "receive"]
    marks = {one["sequence"]: one.get("marked", False) for one in received if one["frame"] == "data"}
    ends = sorted({one["acknowledgement"] for one in acks(record)})
    covered = [[marks[at] for at in sorted(marks) if start <= at < end] for start, end in pairwise(ends)]
    assert True in marks.values()
    assert any(len(one) > 1 for one in covered), "ACKs are delayed"
    assert all(len(set(one)) <= 1 for one in covered)


def acks(record: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the ACKs that the receiver sent."""
    return [
        one
        for one in record["events"]
        if one["host"] == "receiver" and one["what"] == "send" and one["frame"] in ("ack", "syn-ack")
    ]


@pytest.mark.slow
def test_dctcp_keeps_the_queue_near_the_threshold() -> None:
    """Only marks raise alpha from 0, and only alpha reduces the window, as no packet is lost."""
    with ensure("dctcp", {"alpha_on_init": 0}, source="bpf") as controller:
        metrics = undisturbed(
            lambda: measure(controller),
            lambda metrics: (
                metrics["goodput_bps"] > 0.9 * RATE_BPS
                and metrics["queue_mean_packets"] == pytest.approx(THRESHOLD, rel=0.3)
            ),
        )
    assert metrics["marks"] > 0
    assert metrics["drops"] == metrics["retransmissions"] == 0
    assert metrics["goodput_bps"] > 0.9 * RATE_BPS
    assert metrics["queue_mean_packets"] == pytest.approx(THRESHOLD, rel=0.3)


@pytest.mark.slow
def test_parameters_of_dctcp_take_effect() -> None:
    """With g = 1/1024, Linux's integers round alpha below 1 to at most a unit, so marks leave the window."""
    with ensure("dctcp", {"shift_g": 10}, source="bpf") as controller:
        queue = undisturbed(
            lambda: measure(controller)["queue_mean_packets"], lambda queue: queue > 1.5 * THRESHOLD
        )
    assert queue > 1.5 * THRESHOLD


@pytest.mark.parametrize("has_ecn", [False, True])
def test_connections_without_ecn_use_reno(has_ecn: bool) -> None:
    """Linux refuses ECN to ECN-capable SYNs, unless its listener uses DCTCP, too."""
    with ensure("dctcp", source="bpf") as controller:
        name = controller.kernel_name
        done = emulate(
            {"rate": "20Mbit/s", "delay": "5ms"},
            [sys.executable, "-c", CLIENT, name],
            [sys.executable, "-c", SERVER, name if has_ecn else "reno"],
            wait_port=80,
            # Sockets with DCTCP ignore it.
            sysctl={"net.ipv4.tcp_ecn": 0 if has_ecn else 2},
        )
    assert done.stdout == (name if has_ecn else "reno")
