"""Random transfers that one cause limits."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import longfat as lf
from captures import programs, punctual
from longfat.analysis.captures import explained

PARTS = Path(__file__).with_name("parts.py")
REQUESTS = "requests"
"""Not a cause: requests have several, and predictions."""
LOSS_BASED = ("reno", "cubic")
IN_SIMULATOR = ("reno", "cubic", "bbr", "bbr1", "vegas")


@dataclass
class Case:
    """A transfer that one cause limits.

    `rtt` and `rate` are those of the path in s and Mbit/s. A case with a `program` runs it between Linux
    kernels. `step` is the time of a change of the path and the RTT of full packets after it, in s.
    `policed` is the rate of a policer in Mbit/s.
    """

    rtt: float
    rate: float
    protocol: dict[str, Any] = field(default_factory=dict)
    path: dict[str, Any] | None = None
    workload: dict[str, Any] = field(default_factory=dict)
    topology: dict[str, Any] | None = None
    side: str | None = None
    program: programs.Program | None = None
    step: tuple[float, float] | None = None
    policed: float | None = None

    def capture(self, file: Path, world: str, side: str, seed: int) -> None:
        """Writes the packets to a pcapng file."""
        if self.program is not None:
            programs.capture(self.program, self.path or {}, file)
            return
        arguments: dict[str, Any] = {
            "protocol": self.protocol,
            "path": self.path,
            "topology": self.topology,
            "workload": self.workload,
            "seed": seed,
            "side": self.side or side,
        }
        if world == "netns":
            punctual.capture(file, **arguments)
        else:
            lf.trace(**arguments, pcapng=file, snap=96, samples=False)


def path(rate: float, rtt: float, queue: int) -> dict[str, Any]:
    return {"rate": f"{rate}Mbit/s", "delay": f"{rtt * 500:.3f}ms", "queue": f"{queue}pkt"}


def packets(rate: float, rtt: float) -> float:
    """Returns the full packets that a path holds."""
    return rate * 1e6 * rtt / 8 / 1500


def bulk(seconds: float) -> dict[str, Any]:
    return {"kind": "bulk", "duration": f"{seconds:.1f}s"}


def tcp(congestion: Any, **settings: Any) -> dict[str, Any]:
    return {"kind": "tcp", "congestion": congestion, **settings}


def bandwidth(draw: random.Random, controllers: tuple[str, ...]) -> Case:
    rate, rtt = draw.choice([2, 5, 10, 20, 50, 100]), draw.uniform(0.01, 0.12)
    rtt *= max(1.0, 16 / packets(rate, rtt))
    queue = max(8, int(packets(rate, rtt) * draw.uniform(0.5, 1)))
    protocol = tcp(draw.choice(controllers))
    return Case(rtt, rate, protocol, path(rate, rtt, queue), bulk(max(10, 150 * rtt)))


def _long(draw: random.Random) -> tuple[int, float]:
    return draw.choice([20, 50, 100]), draw.uniform(0.03, 0.12)


def receive_window(draw: random.Random, controllers: tuple[str, ...]) -> Case:
    rate, rtt = _long(draw)
    memory = int(packets(rate, rtt) * 1500 * draw.uniform(0.2, 0.6))
    protocol = tcp(draw.choice(controllers), receive_buffer=f"{memory}B")
    queue = max(50, int(2 * packets(rate, rtt)))
    return Case(rtt, rate, protocol, path(rate, rtt, queue), bulk(max(5, 60 * rtt)))


def loss(draw: random.Random, _: tuple[str, ...]) -> Case:
    rate, rtt = _long(draw)
    made = path(rate, rtt, max(100, int(packets(rate, rtt))))
    made["loss"] = f"{draw.uniform(0.5, 3):.2f}%"
    return Case(rtt, rate, tcp(draw.choice(LOSS_BASED)), made, bulk(15))


def latency(draw: random.Random, controllers: tuple[str, ...]) -> Case:
    rate, rtt = _long(draw)
    workload = {"kind": "file", "size": f"{draw.randint(20, 300)}kB"}
    queue = max(50, int(2 * packets(rate, rtt)))
    return Case(rtt, rate, tcp(draw.choice(controllers)), path(rate, rtt, queue), workload)


def application(draw: random.Random, controllers: tuple[str, ...]) -> Case:
    rate, rtt = draw.choice([2, 5, 10, 20, 50, 100]), draw.uniform(0.01, 0.12)
    protocol = tcp(draw.choice(controllers))
    queue = max(50, int(2 * packets(rate, rtt)))
    if draw.random() < 0.5:
        workload = {**bulk(max(5, 60 * rtt)), "rate": f"{rate * draw.uniform(0.1, 0.5):.3f}Mbit/s"}
    else:
        workload = {
            "kind": "on-off",
            "rate": f"{rate * draw.uniform(0.3, 0.6):.3f}Mbit/s",
            "on": f"{draw.uniform(0.2, 1):.2f}s",
            "off": f"{draw.uniform(0.5, 2):.2f}s",
            "duration": "20s",
        }
    return Case(rtt, rate, protocol, path(rate, rtt, queue), workload)


def bufferbloat(draw: random.Random, _: tuple[str, ...]) -> Case:
    rate, rtt = draw.choice([2, 5, 10, 20]), draw.uniform(0.01, 0.12)
    queue = max(100, int(packets(rate, rtt) * draw.uniform(4, 8)))
    return Case(rtt, rate, tcp(draw.choice(LOSS_BASED)), path(rate, rtt, queue), bulk(max(20, 400 * rtt)))


def policer(draw: random.Random, controllers: tuple[str, ...]) -> Case:
    rate, rtt = _long(draw)
    # At most 60 packets per RTT, so that losses are frequent enough to show their pattern.
    limit = rate * min(draw.uniform(0.1, 0.4), 60 / packets(rate, rtt))
    burst = int(limit * 1e6 / 8 * draw.uniform(0.02, 0.1)) + 6000
    made = path(rate, rtt, 1000)
    made["queue"] = {"kind": f"{PARTS}:Policer", "rate_mbps": limit, "burst": burst, "limit": "1000pkt"}
    made["reverse"] = {"queue": "1000pkt"}
    return Case(rtt, rate, tcp(draw.choice(controllers)), made, bulk(30), policed=limit)


def bursts(draw: random.Random, _: tuple[str, ...]) -> Case:
    """Requests of less than the path holds, sent at once into a queue that is much shorter."""
    rate, rtt = _long(draw)
    rtt *= max(1.0, 160 / packets(rate, rtt))
    held = packets(rate, rtt)
    workload = {
        "kind": "request-response",
        "request_size": f"{int(held * draw.uniform(0.5, 0.8) * 1448)}B",
        "response_size": "100B",
        "requests": max(30, int(15 / rtt / 4)),
    }
    queue = max(20, int(held * draw.uniform(0.08, 0.2)))
    return Case(rtt, rate, tcp(draw.choice(LOSS_BASED)), path(rate, rtt, queue), workload)


def requests(draw: random.Random, controllers: tuple[str, ...]) -> Case:
    """Requests with pauses of the client: uploads, or downloads that are captured at the server."""
    rate, rtt = draw.choice([5, 10, 20, 50, 100]), draw.uniform(0.01, 0.1)
    large, small = f"{draw.randint(20, 300)}kB", f"{draw.randint(50, 500)}B"
    is_upload = draw.random() < 0.5
    workload = {
        "kind": "request-response",
        "request_size": large if is_upload else small,
        "response_size": small if is_upload else large,
        "requests": draw.randint(10, 30),
        "think": f"{draw.uniform(5, 200):.0f}ms",
    }
    queue = max(50, int(packets(rate, rtt)))
    side = "sender" if is_upload else "receiver"
    return Case(rtt, rate, tcp(draw.choice(controllers)), path(rate, rtt, queue), workload, side=side)


def pacing(draw: random.Random, _: tuple[str, ...]) -> Case:
    rate, rtt = draw.choice([5, 10, 20, 50, 100]), draw.uniform(0.02, 0.12)
    paced = {"kind": f"{PARTS}:Constant", "rate_mbps": rate * draw.uniform(0.1, 0.7)}
    protocol = tcp(paced, receive_buffer="30MB", send_buffer="30MB")
    return Case(rtt, rate, protocol, path(rate, rtt, max(50, int(2 * packets(rate, rtt)))), bulk(10))


def path_change(draw: random.Random, controllers: tuple[str, ...]) -> Case:
    """A link fails or recovers, and the routers take another one."""
    rate, rtt = draw.choice([5, 10, 20, 50]), draw.uniform(0.02, 0.08)
    other, at = rtt * draw.uniform(1.4, 3), draw.uniform(4, 8)
    is_up = draw.random() < 0.5
    detection = draw.uniform(0.02, 0.3)
    link = {"rate": f"{rate}Mbit/s", "queue": f"{max(20, int(packets(rate, rtt)))}pkt"}
    fast = {"delay": "0ms", "rate": "1Gbit/s"}
    topology = {
        "kind": "free",
        "hosts": ["a", "b"],
        "routers": ["x", "y", "z"],
        "detection": f"{detection:.3f}s",
        "links": [
            {"from": "a", "to": "x", **fast},
            {"from": "x", "to": "y", "delay": f"{rtt * 500:.3f}ms", **link},
            {"from": "x", "to": "z", "delay": f"{other * 500:.3f}ms", **link},
            {"from": "z", "to": "y", **fast},
            {"from": "y", "to": "b", **fast},
        ],
    }
    topology["links"][1]["down"] = [f"{at:.3f}s..60s" if is_up else f"0s..{at:.3f}s"]
    before, after = (rtt, other) if is_up else (other, rtt)
    # Until the failure, or until the routers notice the recovery.
    step = (at if is_up else at + detection, after + 1.5e-3 * 8 / rate)
    return Case(before, rate, tcp(draw.choice(controllers)), None, bulk(at + 6), topology, step=step)


def receiver_stall(draw: random.Random, _: tuple[str, ...]) -> Case:
    rate, rtt = draw.choice([20, 50, 100]), draw.uniform(0.01, 0.08)
    made = path(rate, rtt, 200)
    return Case(rtt, rate, tcp(""), made, program=programs.stalling(draw, rate))


def delayed_acks(draw: random.Random, _: tuple[str, ...]) -> Case:
    rate, rtt = draw.choice([5, 20, 50]), draw.uniform(0.002, 0.015)
    return Case(rtt, rate, tcp(""), path(rate, rtt, 200), program=programs.small_writes(draw))


def kernel_pacing(draw: random.Random, _: tuple[str, ...]) -> Case:
    rate, rtt = draw.choice([10, 20, 50, 100]), draw.uniform(0.01, 0.08)
    made = path(rate, rtt, max(50, int(2 * packets(rate, rtt))))
    return Case(rtt, rate, tcp(""), made, program=programs.paced(rate * draw.uniform(0.1, 0.6)))


EVERYWHERE = {
    explained.BANDWIDTH: bandwidth,
    explained.WINDOW: receive_window,
    explained.LOSS: loss,
    explained.LATENCY: latency,
    explained.APPLICATION: application,
    explained.BUFFERBLOAT: bufferbloat,
    explained.BURSTS: bursts,
    explained.PATH_CHANGE: path_change,
}
CASES = {
    "sim": {**EVERYWHERE, explained.POLICER: policer, explained.PACING: pacing},
    "netns": {
        **EVERYWHERE,
        explained.STALL: receiver_stall,
        explained.PACING: kernel_pacing,
        explained.DELAYED_ACKS: delayed_acks,
    },
}
"""The causes of each world. Policers and controllers with a constant rate exist in the simulator only."""
