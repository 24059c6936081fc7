"""Instruction counts of simulations, compared with the reviewed table `instructions.csv`.

Needs Valgrind and the runner of the benchmark crate (`make bench-instructions` installs it). Exits with 1
if a count rose by more than the tolerance; `--update` writes the table.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
from pathlib import Path

TABLE = Path(__file__).with_suffix(".csv")
# The compiler's layout changes counts by a few tenths of a percent.
TOLERANCE = 0.01
COMMAND = (
    "cargo",
    "bench",
    "--locked",
    "--package=longfat-benchmarks",
    "--bench=instructions",
    "--",
    "--output-format=json",
)


def measure() -> dict[str, int]:
    """Returns the instruction count of each scenario."""
    done = subprocess.run(COMMAND, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"instructions.py: {done.stderr.strip().splitlines()[-1]}")
    counts = {}
    for line in done.stdout.splitlines():
        if not line.startswith("{"):
            continue
        summary = json.loads(line)
        parts = summary["profiles"][0]["data"]["parts"]
        counts[summary["id"]] = sum(int(part["metrics"]["Ir"]["values"]["new"]) for part in parts)
    if not counts:
        sys.exit("instructions.py: the benchmark printed no counts")
    return counts


def read() -> dict[str, int]:
    """Returns the reviewed table."""
    if not TABLE.exists():
        return {}
    with TABLE.open(newline="") as file:
        return {row["scenario"]: int(row["instructions"]) for row in csv.DictReader(file)}


def write(counts: dict[str, int]) -> None:
    with TABLE.open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(("scenario", "instructions"))
        table.writerows(counts.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--update", action="store_true", help="write the table")
    update = parser.parse_args().update
    before, now = read(), measure()
    worse = []
    print(f"{'scenario':<12} {'table':>14} {'now':>14} {'ratio':>8}")
    for name, count in now.items():
        ratio = count / before[name] if name in before else float("nan")
        print(f"{name:<12} {before.get(name, 0):>14} {count:>14} {ratio:>8.4f}")
        if ratio > 1 + TOLERANCE:
            worse.append(name)
    if update:
        write(now)
    elif worse:
        sys.exit(f"instructions.py: more instructions than in {TABLE.name}: {', '.join(worse)}")


if __name__ == "__main__":
    main()
