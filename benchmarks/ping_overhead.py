"""Round trips on loopback: compares longfat ping with iputils' ping and irtt, in alternation.

iputils' ping measures from its send call to the kernel's timestamp of the reply; with -U, to its receive
call. The ratios compare

- longfat's application time with `ping -U`,
- the time from longfat's send call to the kernel's timestamp of the reply (out + kernel) with `ping`,
- longfat's main figure, the time between two timestamps of the kernel, with `ping`,
- `longfat ping --protocol udp` with irtt.

Smaller is better. At intervals below 10 ms iputils' ping never sleeps: compare it with --spin.
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
    """Returns what a command prints; raises its error if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]}: {done.stderr.strip().splitlines()[-1:] or done.returncode}")
    return done.stdout


def ours(size: int, count: int, *options: str) -> dict[str, float]:
    """Returns medians of longfat ping in µs."""
    words = ["ping", "127.0.0.1", "--sizes", str(size), "--count", str(count), "--json", *options]
    (found,) = json.loads(run([*COMMAND, *words, "--interval", f"{INTERVAL_S * 1e3:g}ms"]))["sizes"]
    medians = {
        "application": found["application_s"]["median"]["value"],
        "kernel": found["kernel_s"]["median"]["value"],
        "out": found["outbound_s"],
        "in": found["inbound_s"],
    }
    figures = {key: value * 1e6 for key, value in medians.items() if value is not None}
    if "out" in figures:
        figures["out + kernel"] = figures["out"] + figures["kernel"]
    return figures


def iputils(size: int, count: int, *options: str) -> float:
    """Returns the median of iputils' ping in µs."""
    words = ["-n", "-i", str(INTERVAL_S), "-c", str(count), "-s", str(size)]
    output = run(["ping", *words, *options, "127.0.0.1"])
    return statistics.median(float(found) for found in TIME.findall(output)) * 1e3


@contextlib.contextmanager
def servers(*, with_irtt: bool) -> Iterator[None]:
    """Runs the servers of the UDP measurements."""
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
    """Returns the median of irtt in µs; requires its server."""
    words = ["client", "-Q", "-i", f"{INTERVAL_S * 1e3:g}ms", "-d", f"{count * INTERVAL_S:g}s"]
    words += ["-l", str(size)]
    report = json.loads(run(["irtt", *words, "-o", "-", "127.0.0.1"]))
    return float(report["stats"]["rtt"]["median"]) / 1e3


def measure(sizes: Sequence[int], count: int, rounds: int) -> list[dict[str, float]]:
    """Returns a row per size with medians over the rounds; programs alternate within a round."""
    rivals = {"ping": shutil.which("ping") is not None, "irtt": shutil.which("irtt") is not None}
    for name, installed in rivals.items():
        if not installed:
            print(f"{name}: skipped, because it is not installed", file=sys.stderr)
    rows = []
    for size in sizes:
        found: dict[str, list[float]] = {}
        for _ in range(rounds):
            figures = {f"longfat {key}": value for key, value in ours(size, count).items()}
            figures["longfat --spin application"] = ours(size, count, "--spin")["application"]
            for spin in ((), ("--spin",)):
                udp = ours(size, count, "--protocol", "udp", "--port", str(PORT), *spin)
                figures[" ".join(("longfat UDP", *spin, "application"))] = udp["application"]
            if rivals["ping"]:
                figures["ping"] = iputils(size, count)
                figures["ping -U"] = iputils(size, count, "-U")
            if rivals["irtt"]:
                figures["irtt"] = irtt(size, count)
            for key, value in figures.items():
                found.setdefault(key, []).append(value)
        rows.append({"size": size, **{key: statistics.median(values) for key, values in found.items()}})
    return rows


def main() -> None:
    """Prints a table, or a JSON list."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default="16,56,500,1400")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with servers(with_irtt=shutil.which("irtt") is not None):
        rows = measure([int(size) for size in options.sizes.split(",")], options.count, options.rounds)
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    for row in rows:
        print(f"{row['size']:.0f} B, medians in µs")
        for key, value in row.items():
            if key != "size":
                print(f"  {key:28} {value:8.2f}")
        for figure, rival in PAIRS:
            if rival in row and f"longfat {figure}" in row:
                print(f"  {figure} : {rival:20} {row[f'longfat {figure}'] / row[rival]:8.2f}")


if __name__ == "__main__":
    main()
