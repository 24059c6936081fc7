"""How near `longfat path` comes to the truth: random emulated paths, without and with other traffic.

Prints the errors of latency and bandwidth of every link against what the links were built with, which share
is within what is asked for (latency 2 % or 50 us; bandwidth 5 % up to 20 Mbit/s, 10 % above), how often
intervals hold the truth, and how well the model predicts round trips of sizes it was not measured with.

Usage: python benchmarks/path_accuracy.py [--paths 4] [--hops 8] [--load 0.2] [--seed 1] [--window 4] [--json]
"""

from __future__ import annotations

import argparse
import json
import random
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from longfat.analysis.theory.latency import echo
from longfat.api.hops import read
from longfat.measurement.path_document import hops

OTHER_SIZES = "250,450,850,1250"
SCOUT = 36
"""What the search for routers is done with."""
LEAST_MBIT, MOST_MBIT, LEAST_MS, MOST_MS = 5.0, 100.0, 1.0, 10.0
SLOW_BPS = 20e6
DATAGRAM = 972
LOAD_S = 600


def study(rates: list[float], delays: list[float]) -> str:
    """A chain of links between a and b, with hosts x and y at its first and last router for other traffic."""
    routers = [f"r{number}" for number in range(1, len(rates))]
    nodes = ["a", *routers, "b"]
    links = [
        f'{{ from = "{here}", to = "{there}", rate = "{rate}Mbit/s", delay = "{delay}ms", queue = "200pkt" }}'
        for here, there, rate, delay in zip(nodes, nodes[1:], rates, delays, strict=False)
    ]
    links += [
        f'{{ from = "x", to = "{routers[0]}", delay = "0.1ms" }}',
        f'{{ from = "{routers[-1]}", to = "y", delay = "0.1ms" }}',
    ]
    return "\n".join(
        [
            'title = "A chain"',
            "[topology]",
            'kind = "free"',
            'hosts = ["a", "b", "x", "y"]',
            f"routers = {json.dumps(routers)}",
            f"links = [{', '.join(links)}]",
            "[workload]",
            'kind = "bulk"',
            'duration = "1s"',
            "[[protocols]]",
            'name = "reno"',
            'kind = "tcp"',
            'congestion = "reno"',
        ]
    )


def send_load(to: str, bps: float) -> None:
    """Datagrams at random times (a Poisson process) at so many bit/s, until ended or for ten minutes."""
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    address = socket.gethostbyname(to)
    gap, end = (DATAGRAM + 28) * 8 / bps, time.monotonic() + LOAD_S
    due = time.monotonic()
    while due < end:
        due += random.expovariate(1 / gap)
        pause = due - time.monotonic()
        if pause > 0:
            time.sleep(pause)
        try:
            sender.sendto(bytes(DATAGRAM), (address, 9))
        except OSError:  # nobody listens there, and says so
            continue


def measure(rates: list[float], delays: list[float], load: float, window: int) -> dict[str, Any]:
    """One path: what was found, and round trips of other sizes to its end."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "chain.toml").write_text(study(rates, delays), encoding="utf-8")
        longfat = f"{sys.executable} -P -m longfat"
        path = f"a {longfat} path b --window {window} --json"
        lines = [
            f"{path} > {place / 'path.json'}",
            f"{path} --sizes {OTHER_SIZES} --rounds 16 --samples {place / 'others'} > /dev/null",
        ]
        if load:
            bps = load * min(rates[1:-1]) * 1e6
            lines.insert(0, f"x {sys.executable} {Path(__file__).resolve()} --send-to y {bps} &")
        started = time.monotonic()
        subprocess.run(
            [sys.executable, "-P", "-m", "longfat", "net", str(place / "chain.toml")],
            input="\n".join(lines) + "\n",
            text=True,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        found: dict[str, Any] = json.loads((place / "path.json").read_text(encoding="utf-8"))
        found["seconds"] = time.monotonic() - started
        there, back = read([" ".join(keys(hop)) for hop in hops(found)])
        trips = round_trips(place / "others", len(rates))
        least = {size: min(seconds) for size, seconds in trips.items()}
        found["reproduced"] = [echo(there, back, size) / seconds - 1 for size, seconds in least.items()]
        found["queueing"] = [s - least[size] for size, seconds in trips.items() for s in seconds]
        return found


def keys(hop: dict[str, Any], prefix: str = "") -> list[str]:
    """A hop of a model as `longfat predict --hop` has it."""
    found = [f"{prefix}{key}={value}" for key, value in hop.items() if key != "reverse"]
    return found + (keys(hop["reverse"], "reverse.") if "reverse" in hop else [])


def round_trips(samples: Path, end: int) -> dict[int, list[float]]:
    """Seconds to the end of the path, by the size of the packet."""
    found: dict[int, list[float]] = {}
    for line in samples.read_text(encoding="utf-8").splitlines()[1:]:
        probe = json.loads(line)
        size = probe["size"]
        if probe["ttl"] == end and probe["answer"] and probe["kernel_s"] and size > SCOUT:
            found.setdefault(size, []).append(probe["kernel_s"])
    return found


def errors(found: dict[str, Any], rates: list[float], delays: list[float]) -> list[dict[str, Any]]:
    """For each link that was told apart, how far it is from the truth."""
    rows = []
    for hop in found["hops"]:
        link = hop["link"]
        if link is None or len(link["ttls"]) != 1:
            continue
        number = link["ttls"][0] - 1
        rate, delay = rates[number] * 1e6, delays[number] * 1e-3
        slope, told = link["seconds_per_byte"], link["rate_bps"]
        rows.append(
            {
                "hop": number + 1,
                "rate_bps": rate,
                "latency_error_s": link["latency_s"]["value"] - delay,
                "latency_is_near": abs(link["latency_s"]["value"] - delay) <= max(50e-6, 0.02 * delay),
                "rate_error": None if told is None else told["value"] / rate - 1,
                "rate_is_near": told is not None
                and abs(told["value"] / rate - 1) <= (0.05 if rate <= SLOW_BPS else 0.10),
                "holds": slope["low"] <= 8 / rate <= slope["high"],
            }
        )
    return rows


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--paths", type=int, default=4)
    parser.add_argument("--hops", type=int, default=8)
    parser.add_argument("--load", type=float, action="append", help="share of the slowest link (0 and 0.2)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--window", type=int, default=4)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--send-to", nargs=2, metavar=("HOST", "BPS"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.send_to:
        send_load(asked.send_to[0], float(asked.send_to[1]))
        return
    for load in asked.load or [0.0, 0.2]:
        rows, back, queueing, links, seconds, probes = [], [], [], 0, 0.0, 0
        for number in range(asked.paths):
            drawn = random.Random(asked.seed + number)
            rates = [
                round(10 ** drawn.uniform(np.log10(LEAST_MBIT), np.log10(MOST_MBIT)), 2)
                for _ in range(asked.hops)
            ]
            delays = [round(drawn.uniform(LEAST_MS, MOST_MS), 2) for _ in range(asked.hops)]
            found = measure(rates, delays, load, asked.window)
            rows += errors(found, rates, delays)
            back += found["reproduced"]
            queueing += found["queueing"]
            links += asked.hops
            seconds, probes = seconds + found["seconds"], probes + found["probes"]
        told = summary(rows, back, links) | {
            "queueing_s": _quantiles(queueing),
            "load": load,
            "seconds": seconds,
            "probes": probes,
        }
        print(json.dumps(told | {"links": rows}) if asked.json else text(told), flush=True)


def summary(rows: list[dict[str, Any]], back: list[float], links: int) -> dict[str, Any]:
    """Quantiles of errors, and shares."""
    latency = [abs(row["latency_error_s"]) for row in rows]
    slow = [
        abs(row["rate_error"])
        for row in rows
        if row["rate_error"] is not None and row["rate_bps"] <= SLOW_BPS
    ]
    fast = [
        abs(row["rate_error"]) for row in rows if row["rate_error"] is not None and row["rate_bps"] > SLOW_BPS
    ]
    return {
        "of_links": links,
        "told_apart": len(rows),
        "latency_error_s": _quantiles(latency),
        "rate_error_up_to_20_mbit": _quantiles(slow),
        "rate_error_above": _quantiles(fast),
        "latency_near": sum(row["latency_is_near"] for row in rows) / links,
        "rate_near": sum(row["rate_is_near"] for row in rows) / links,
        "intervals_that_hold": sum(row["holds"] for row in rows) / max(len(rows), 1),
        "reproduced_rtt_error": _quantiles([abs(error) for error in back]),
    }


def _quantiles(values: list[float]) -> dict[str, float]:
    if not values:
        return {}
    return {name: float(np.quantile(values, q)) for name, q in (("p50", 0.5), ("p95", 0.95), ("max", 1.0))}


def text(told: dict[str, Any]) -> str:
    """A summary for people."""

    def three(name: str, scale: float, unit: str) -> str:
        quantiles = told[name]
        return " / ".join(f"{value * scale:.2f}" for value in quantiles.values()) + f" {unit}"

    load, probes, seconds = told["load"], told["probes"], told["seconds"]
    links = f"{told['of_links']} links, {told['told_apart']} told apart"
    near = f"latency {told['latency_near']:.1%}, bandwidth {told['rate_near']:.1%}"
    lines = [
        f"Other traffic {load:.0%} of the slowest link: {links}, {probes} probes, {seconds:.0f} s",
        "errors, median / 95th percentile / largest:",
        f"  latency                   {three('latency_error_s', 1e6, 'us')}",
        f"  bandwidth to 20 Mbit/s    {three('rate_error_up_to_20_mbit', 100, '%')}",
        f"  bandwidth above           {three('rate_error_above', 100, '%')}",
        f"  (queueing in round trips  {three('queueing_s', 1e6, 'us')})",
        f"  round trips by the model  {three('reproduced_rtt_error', 100, '%')}",
        f"within what is asked for: {near}; intervals that hold {told['intervals_that_hold']:.1%}",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
