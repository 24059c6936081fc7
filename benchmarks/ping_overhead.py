"""Round trips on a loopback: longfat ping, iputils' ping and irtt in turns, and what the program itself adds.

iputils' ping begins its time in the program and ends it at the kernel's stamp of the answer, with -U in the
program too. So three figures of longfat are compared: the application's clock with `ping -U`; the
time from the application's call to the kernel's stamp of the answer (out + kernel) with `ping`; and with
`ping` also the round trip that longfat reports first, which is between two stamps of the kernel. Fewer is
better. Below an interval of 10 ms iputils' ping never sleeps, so that --spin is what compares with it
there; from there on both sleep. irtt asks over UDP, and is compared with --protocol udp.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

COMMAND = [sys.executable, "-P", "-m", "longfat"]
INTERVAL_S = 0.02
PAIRS = (
    ("application", "ping -U"),
    ("out + kernel", "ping"),
    ("kernel", "ping"),
    ("UDP application", "irtt"),
    ("UDP --spin application", "irtt"),
)
PORT = 9107
TIME = re.compile(r"time=([\d.]+) ms")


def run(command: Sequence[str]) -> str:
    """What a command prints; its error where it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]}: {done.stderr.strip().splitlines()[-1:] or done.returncode}")
    return done.stdout


def ours(size: int, count: int, *options: str) -> dict[str, float]:
    """Medians of longfat ping, in µs."""
    words = ["ping", "127.0.0.1", "--sizes", str(size), "--count", str(count), "--json", *options]
    (found,) = json.loads(run([*COMMAND, *words, "--interval", f"{INTERVAL_S * 1e3:g}ms"]))["sizes"]
    medians = {
        "application": found["application_s"]["median"]["value"],
        "kernel": found["kernel_s"]["median"]["value"],
        "out": found["outbound_s"],
        "in": found["inbound_s"],
    }
    told = {key: value * 1e6 for key, value in medians.items() if value is not None}
    if "out" in told:
        told["out + kernel"] = told["out"] + told["kernel"]
    return told


def iputils(size: int, count: int, *options: str) -> float:
    """Median of iputils' ping, in µs."""
    words = ["-n", "-i", str(INTERVAL_S), "-c", str(count), "-s", str(size)]
    told = run(["ping", *words, *options, "127.0.0.1"])
    return statistics.median(float(found) for found in TIME.findall(told)) * 1e3


@contextlib.contextmanager
def servers(*, with_irtt: bool) -> Iterator[None]:
    """Those that answer over UDP; they end with the measurement."""
    commands = [[*COMMAND, "echo", "--port", str(PORT)]]
    if with_irtt:
        commands.append(["irtt", "server", "-b", "127.0.0.1:2112"])
    quiet = subprocess.DEVNULL
    running = [subprocess.Popen(command, stdout=quiet, stderr=quiet) for command in commands]
    try:
        time.sleep(2)
        yield
    finally:
        for server in running:
            server.terminate()
            server.wait()


def irtt(size: int, count: int) -> float:
    """Median of irtt, in µs; its server must run."""
    words = ["client", "-Q", "-i", f"{INTERVAL_S * 1e3:g}ms", "-d", f"{count * INTERVAL_S:g}s"]
    words += ["-l", str(size)]
    told = json.loads(run(["irtt", *words, "-o", "-", "127.0.0.1"]))
    return float(told["stats"]["rtt"]["median"]) / 1e3


def measure(sizes: Sequence[int], count: int, rounds: int) -> list[dict[str, float]]:
    """A row a size, each a median over the rounds; programs take turns in each."""
    rivals = {"ping": shutil.which("ping") is not None, "irtt": shutil.which("irtt") is not None}
    for name, there in rivals.items():
        if not there:
            print(f"{name}: skipped, since it is not installed here", file=sys.stderr)
    rows = []
    for size in sizes:
        found: dict[str, list[float]] = {}
        for _ in range(rounds):
            told = {f"longfat {key}": value for key, value in ours(size, count).items()}
            told["longfat --spin application"] = ours(size, count, "--spin")["application"]
            for options in ((), ("--spin",)):
                udp = ours(size, count, "--protocol", "udp", "--port", str(PORT), *options)
                told[" ".join(("longfat UDP", *options, "application"))] = udp["application"]
            if rivals["ping"]:
                told["ping"] = iputils(size, count)
                told["ping -U"] = iputils(size, count, "-U")
            if rivals["irtt"]:
                told["irtt"] = irtt(size, count)
            for key, value in told.items():
                found.setdefault(key, []).append(value)
        rows.append({"size": size, **{key: statistics.median(values) for key, values in found.items()}})
    return rows


def main() -> None:
    """Prints a table, or a JSON list."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="16,56,500,1400")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    with servers(with_irtt=shutil.which("irtt") is not None):
        rows = measure([int(size) for size in asked.sizes.split(",")], asked.count, asked.rounds)
    if asked.json:
        print(json.dumps(rows, indent=2))
        return
    for row in rows:
        print(f"{row['size']:.0f} B, medians in µs")
        for key, value in row.items():
            if key != "size":
                print(f"  {key:28} {value:8.2f}")
        for mine, theirs in PAIRS:
            if theirs in row and f"longfat {mine}" in row:
                print(f"  {mine} : {theirs:20} {row[f'longfat {mine}'] / row[theirs]:8.2f}")


if __name__ == "__main__":
    main()
