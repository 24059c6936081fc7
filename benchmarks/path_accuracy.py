"""Accuracy of `longfat path` on random emulated paths, without and with other traffic.

Prints the errors of the latency and bandwidth of each link, the share within the target (latency 2 % or 50
us; bandwidth 5 % up to 20 Mbit/s, 10 % above), the share of intervals that cover the true value, and the
error of round trips that the model predicts for packet sizes that were not measured.

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

UNMEASURED_SIZES = "250,450,850,1250"
SCOUT = 36
"""Size in bytes of the packets that search for routers."""
MIN_MBIT, MAX_MBIT, MIN_MS, MAX_MS = 5.0, 100.0, 1.0, 10.0
SLOW_BPS = 20e6
DATAGRAM = 972
LOAD_S = 600


def study(rates: list[float], delays: list[float]) -> str:
    """Returns a chain of links from a to b, with hosts x and y at its end routers for other traffic."""
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
    """Sends datagrams at random times (a Poisson process) at `bps` for ten minutes."""
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
        except OSError:  # an ICMP error: the port is closed
            continue


def measure(rates: list[float], delays: list[float], load: float, window: int) -> dict[str, Any]:
    """Measures one path; adds the model's errors for round trips of unmeasured sizes."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "chain.toml").write_text(study(rates, delays), encoding="utf-8")
        longfat = f"{sys.executable} -P -m longfat"
        path = f"a {longfat} path b --window {window} --json"
        lines = [
            f"{path} > {place / 'path.json'}",
            f"{path} --sizes {UNMEASURED_SIZES} --rounds 16 --samples {place / 'others'} > /dev/null",
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
        forward, reverse = read([" ".join(keys(hop)) for hop in hops(found)])
        trips = round_trips(place / "others", len(rates))
        shortest = {size: min(seconds) for size, seconds in trips.items()}
        found["reproduced"] = [
            echo(forward, reverse, size) / seconds - 1 for size, seconds in shortest.items()
        ]
        found["queueing"] = [s - shortest[size] for size, seconds in trips.items() for s in seconds]
        return found


def keys(hop: dict[str, Any], prefix: str = "") -> list[str]:
    """Returns a hop of a model as keys of `longfat predict --hop`."""
    found = [f"{prefix}{key}={value}" for key, value in hop.items() if key != "reverse"]
    return found + (keys(hop["reverse"], "reverse.") if "reverse" in hop else [])


def round_trips(samples: Path, end: int) -> dict[int, list[float]]:
    """Returns the RTTs to the end of the path in seconds by packet size."""
    found: dict[int, list[float]] = {}
    for line in samples.read_text(encoding="utf-8").splitlines()[1:]:
        probe = json.loads(line)
        size = probe["size"]
        if probe["ttl"] == end and probe["answer"] and probe["kernel_s"] and size > SCOUT:
            found.setdefault(size, []).append(probe["kernel_s"])
    return found


def errors(found: dict[str, Any], rates: list[float], delays: list[float]) -> list[dict[str, Any]]:
    """Returns the errors of each separated link."""
    rows = []
    for hop in found["hops"]:
        link = hop["link"]
        if link is None or len(link["ttls"]) != 1:
            continue
        number = link["ttls"][0] - 1
        rate, delay = rates[number] * 1e6, delays[number] * 1e-3
        slope, measured = link["seconds_per_byte"], link["rate_bps"]
        rows.append(
            {
                "hop": number + 1,
                "rate_bps": rate,
                "latency_error_s": link["latency_s"]["value"] - delay,
                "latency_is_near": abs(link["latency_s"]["value"] - delay) <= max(50e-6, 0.02 * delay),
                "rate_error": None if measured is None else measured["value"] / rate - 1,
                "rate_is_near": measured is not None
                and abs(measured["value"] / rate - 1) <= (0.05 if rate <= SLOW_BPS else 0.10),
                "covered": slope["low"] <= 8 / rate <= slope["high"],
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
    options = parser.parse_args()
    if options.send_to:
        send_load(options.send_to[0], float(options.send_to[1]))
        return
    for load in options.load or [0.0, 0.2]:
        rows, reproduced, queueing, links, seconds, probes = [], [], [], 0, 0.0, 0
        for number in range(options.paths):
            drawn = random.Random(options.seed + number)
            rates = [
                round(10 ** drawn.uniform(np.log10(MIN_MBIT), np.log10(MAX_MBIT)), 2)
                for _ in range(options.hops)
            ]
            delays = [round(drawn.uniform(MIN_MS, MAX_MS), 2) for _ in range(options.hops)]
            found = measure(rates, delays, load, options.window)
            rows += errors(found, rates, delays)
            reproduced += found["reproduced"]
            queueing += found["queueing"]
            links += options.hops
            seconds, probes = seconds + found["seconds"], probes + found["probes"]
        figures = summary(rows, reproduced, links) | {
            "queueing_s": _quantiles(queueing),
            "load": load,
            "seconds": seconds,
            "probes": probes,
        }
        print(json.dumps(figures | {"links": rows}) if options.json else text(figures), flush=True)


def summary(rows: list[dict[str, Any]], reproduced: list[float], links: int) -> dict[str, Any]:
    """Returns quantiles of errors, and shares."""
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
        "total_links": links,
        "separated_links": len(rows),
        "latency_error_s": _quantiles(latency),
        "rate_error_up_to_20_mbit": _quantiles(slow),
        "rate_error_above": _quantiles(fast),
        "latency_near": sum(row["latency_is_near"] for row in rows) / links,
        "rate_near": sum(row["rate_is_near"] for row in rows) / links,
        "covered_share": sum(row["covered"] for row in rows) / max(len(rows), 1),
        "reproduced_rtt_error": _quantiles([abs(error) for error in reproduced]),
    }


def _quantiles(values: list[float]) -> dict[str, float]:
    if not values:
        return {}
    return {name: float(np.quantile(values, q)) for name, q in (("p50", 0.5), ("p95", 0.95), ("max", 1.0))}


def text(figures: dict[str, Any]) -> str:
    """Returns the summary as text."""

    def three(name: str, scale: float, unit: str) -> str:
        quantiles = figures[name]
        return " / ".join(f"{value * scale:.2f}" for value in quantiles.values()) + f" {unit}"

    load, probes, seconds = figures["load"], figures["probes"], figures["seconds"]
    links = f"{figures['total_links']} links, {figures['separated_links']} separated"
    near = f"latency {figures['latency_near']:.1%}, bandwidth {figures['rate_near']:.1%}"
    lines = [
        f"Other traffic {load:.0%} of the slowest link: {links}, {probes} probes, {seconds:.0f} s",
        "errors, median / 95th percentile / largest:",
        f"  latency                   {three('latency_error_s', 1e6, 'us')}",
        f"  bandwidth to 20 Mbit/s    {three('rate_error_up_to_20_mbit', 100, '%')}",
        f"  bandwidth above           {three('rate_error_above', 100, '%')}",
        f"  (queueing delay           {three('queueing_s', 1e6, 'us')})",
        f"  modelled round trips      {three('reproduced_rtt_error', 100, '%')}",
        f"within the target: {near}; intervals that cover the true value {figures['covered_share']:.1%}",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
