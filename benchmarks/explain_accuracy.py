"""Compares the explanations of `longfat explain` with captures whose cause is known.

`python benchmarks/explain_accuracy.py [CAUSE...] [--captures 10] [--world sim|netns] [--side SIDE]` makes
captures over random rates, delays, buffers, controllers and seeds, each built for one cause, and prints how
often each cause is named, the errors of RTT and rate, and with `--replay` how often the controller is right
and the replay reproduces the duration. `receiver stall` needs a program that stops reading, so it exists
between Linux kernels only. `netns` needs root or user namespaces, and about 15 s per capture.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import longfat as lf

CAUSES = ("bandwidth", "receive window", "loss", "latency", "application", "bufferbloat")
STALL = "receiver stall"
LOSS_BASED = ("reno", "cubic")
IN_KERNEL = ("reno", "cubic")
_STALLING = """
import socket, sys, time
server = socket.socket()
server.bind(("0.0.0.0", 8000))
server.listen()
connection, _ = server.accept()
got, pause = 0, float(sys.argv[2])
while data := connection.recv(65536):
    got += len(data)
    if got > int(sys.argv[1]) and pause:
        time.sleep(pause)
        pause = 0
"""
_SENDING = """
import socket, sys
connection = socket.create_connection(("receiver", 8000))
connection.sendall(bytes(int(sys.argv[1])))
connection.shutdown(socket.SHUT_WR)
connection.recv(1)
"""


@dataclass
class Case:
    """A transfer that one cause limits."""

    protocol: dict[str, Any]
    path: dict[str, Any]
    workload: dict[str, Any]


@dataclass
class Score:
    """What the explanations of a cause's captures gave."""

    named: Counter[str] = field(default_factory=Counter)
    rtt: list[float] = field(default_factory=list)
    rate: list[float] = field(default_factory=list)
    controllers: list[bool] = field(default_factory=list)
    reproduced: list[bool] = field(default_factory=list)


def case(cause: str, draw: random.Random, controllers: tuple[str, ...]) -> Case:
    """Returns a random transfer that a cause limits."""
    rate, rtt = draw.choice([2, 5, 10, 20, 50, 100]), draw.uniform(0.01, 0.12)
    controller = draw.choice(controllers)
    if cause in ("receive window", "loss", "latency"):
        rate, rtt = draw.choice([20, 50, 100]), draw.uniform(0.03, 0.12)
    if cause == "bufferbloat":
        rate = draw.choice([2, 5, 10, 20])
    if cause in ("loss", "bufferbloat"):
        controller = draw.choice(LOSS_BASED)
    packets = rate * 1e6 * rtt / 8 / 1500
    if cause == "bandwidth" and packets < 16:
        rtt, packets = rtt * 16 / packets, 16.0
    path = {
        "rate": f"{rate}Mbit/s",
        "delay": f"{rtt * 500:.3f}ms",
        "queue": f"{max(50, int(2 * packets))}pkt",
    }
    protocol: dict[str, Any] = {"kind": "tcp", "congestion": controller}
    workload = {"kind": "bulk", "duration": f"{max(5, 60 * rtt):.1f}s"}
    if cause == "bandwidth":
        path["queue"] = f"{max(8, int(packets * draw.uniform(0.5, 1)))}pkt"
        workload["duration"] = f"{max(10, 150 * rtt):.1f}s"
    elif cause == "receive window":
        protocol["receive_buffer"] = f"{int(packets * 1500 * draw.uniform(0.2, 0.6))}B"
    elif cause == "loss":
        path |= {"queue": f"{max(100, int(packets))}pkt", "loss": f"{draw.uniform(0.5, 3):.2f}%"}
        workload["duration"] = "15s"
    elif cause == "latency":
        workload = {"kind": "file", "size": f"{draw.randint(20, 300)}kB"}
    elif cause == "application":
        if draw.random() < 0.5:
            workload["rate"] = f"{rate * draw.uniform(0.1, 0.5):.3f}Mbit/s"
        else:
            workload = {
                "kind": "on-off",
                "rate": f"{rate * draw.uniform(0.3, 0.6):.3f}Mbit/s",
                "on": f"{draw.uniform(0.2, 1):.2f}s",
                "off": f"{draw.uniform(0.5, 2):.2f}s",
                "duration": "20s",
            }
    elif cause == "bufferbloat":
        path["queue"] = f"{max(100, int(packets * draw.uniform(4, 8)))}pkt"
        workload["duration"] = f"{max(20, 400 * rtt):.1f}s"
    return Case(protocol, path, workload)


def stalled(file: Path, draw: random.Random) -> Case:
    """Captures a transfer to a program that stops reading, with tcpdump between Linux kernels."""
    rate, delay = draw.choice([20, 50, 100]), draw.uniform(5, 40)
    before, pause = draw.randint(1, 4), draw.uniform(4, 8)
    path = {"rate": f"{rate}Mbit/s", "delay": f"{delay:.1f}ms", "queue": "200pkt"}
    with tempfile.TemporaryDirectory() as folder:
        server, client = Path(folder) / "server.py", Path(folder) / "client.py"
        server.write_text(_STALLING)
        client.write_text(_SENDING)
        line = (
            f"tcpdump -U -i any -s 128 -w {file} tcp & sleep 1; "
            f"{sys.executable} {client} {before * 4_000_000}; sleep 0.5; kill %1"
        )
        words = [sys.executable, "-m", "longfat", "shell"]
        words += [word for key, value in path.items() for word in (f"--{key}", value)]
        words += ["--congestion", "cubic", "--sysctl", "net.ipv4.tcp_rmem=4096 131072 1000000"]
        words += ["--wait-port", "8000"]
        words += ["--server", f"{sys.executable} {server} {before * 1_000_000} {pause:.1f}"]
        subprocess.run([*words, "--", "bash", "-mc", line], check=True, capture_output=True, timeout=120)
    return Case({"congestion": ""}, path, {})


def judge(score: Score, made: Case, file: Path, *, replay: bool) -> lf.Explanation:
    """Adds the explanation of a capture to a score."""
    found = lf.explain(file, replay=replay, trials=4)
    score.named[found.limit or "nothing"] += 1
    figures = found.one.path if found.one is not None else {}
    if figures.get("base_rtt_s"):
        rtt = 2 * float(made.path["delay"].removesuffix("ms")) / 1e3
        score.rtt.append(abs(figures["base_rtt_s"] / rtt - 1))
    if found.one is not None and figures.get("rate_bps"):
        rate = float(made.path["rate"].removesuffix("Mbit/s")) * 1e6
        score.rate.append(abs(found.one.on_wire(figures["rate_bps"]) / rate - 1))
    if found.replay is not None and found.replay.controllers:
        score.controllers.append(found.replay.controller == made.protocol["congestion"])
        score.reproduced.append(found.replay.problem is None)
    return found


def main() -> None:
    """Makes the captures, explains them, and prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("causes", nargs="*", help="causes; default: all that the world has")
    parser.add_argument("--captures", type=int, default=10, help="captures of each cause")
    parser.add_argument("--world", choices=("sim", "netns"), default="sim")
    parser.add_argument("--side", choices=("sender", "receiver"), default="sender")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--replay", action="store_true", help="controllers and reproduced durations as well")
    parser.add_argument("--out", type=Path, help="output file (.json)")
    given = parser.parse_args()
    known = (*CAUSES, STALL) if given.world == "netns" else CAUSES
    scores = {cause: Score() for cause in given.causes or known}
    controllers = IN_KERNEL if given.world == "netns" else ("reno", "cubic", "bbr", "bbr1", "vegas")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "capture.pcapng"
        for cause, score in scores.items():
            draw = random.Random(f"{given.seed} {cause}")
            for number in range(given.captures):
                if cause == STALL:
                    made = stalled(file, draw)
                else:
                    made = case(cause, draw, controllers)
                    settings = {"workload": made.workload, "seed": number + 1, "world": given.world}
                    lf.trace(
                        made.protocol,
                        made.path,
                        pcapng=file,
                        side=given.side,
                        snap=96,
                        samples=False,
                        **settings,
                    )
                found = judge(score, made, file, replay=given.replay)
                if found.limit != cause:
                    print(f"{cause} {number}: {found.limits} {made}", file=sys.stderr)
    show(scores)
    if given.out is not None:
        given.out.write_text(json.dumps({cause: vars(score) for cause, score in scores.items()}, indent=1))


def show(scores: dict[str, Score]) -> None:
    """Prints the table of confusions, and the errors."""
    for cause, score in scores.items():
        total = sum(score.named.values())
        parts = [f"{cause}: {score.named[cause]} of {total} named"]
        parts += [f"{other} {count}" for other, count in score.named.most_common() if other != cause]
        for name, errors in (("RTT", score.rtt), ("rate", score.rate)):
            if errors:
                parts.append(
                    f"error of {name}: median {statistics.median(errors):.2%}, most {max(errors):.2%}"
                )
        if score.controllers:
            parts.append(f"controller {sum(score.controllers)} of {len(score.controllers)}")
            parts.append(f"reproduced {sum(score.reproduced)} of {len(score.reproduced)}")
        print("; ".join(parts))


if __name__ == "__main__":
    main()
