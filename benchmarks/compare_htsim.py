"""CPU time of htsim and longfat on the same networks, given a checkout of csg-htsim (commit 841d9e7).

    python benchmarks/compare_htsim.py HTSIM_DIR [--scenario C] [--instructions]

Compiles htsim and `benchmarks/htsim/driver.cpp`, then runs both programs alternately. Data packets include
retransmissions; user CPU time and instructions are those of the whole process, set-up included. With
`LD_PRELOAD=libjemalloc.so.2`, htsim has a faster allocator; longfat has its own.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[1]
DRIVER = ROOT / "benchmarks" / "htsim" / "driver.cpp"
SOURCES = (
    "config",
    "eth_pause_packet",
    "eventlist",
    "fairpullqueue",
    "logfile",
    "loggers",
    "mtcp",
    "ndppacket",
    "network",
    "pipe",
    "queue",
    "route",
    "tcp",
    "tcppacket",
)
"""The files of htsim that the driver needs, without `.cpp`."""
FLAGS = ("-std=c++17", "-O3", "-flto", "-DNDEBUG", "-w")
SCENARIOS = {
    "A": ("A", 60, "A"),
    "B": ("B", 2, "B"),
    "C": ("C", 10, "C"),
    "M": ("M", 60, "M, htsim with access links"),
    "N": ("M", 60, "M, htsim without access links"),
}
"""Scenario of longfat, seconds of virtual time, and label, by scenario of the driver."""


class ComparisonError(Exception):
    """An error that ends the comparison, in one line."""


@dataclass
class Result:
    """Figures of one run."""

    packets: int
    goodput: float
    fct: float | None


def run(command: list[str | Path]) -> subprocess.CompletedProcess[str]:
    """Runs a program and returns what it printed."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True)
    except OSError as error:
        raise ComparisonError(f"{command[0]}: {error.strerror}") from None
    except subprocess.CalledProcessError as error:
        lines = error.stderr.strip().splitlines()
        reason = next((line for line in lines if "error" in line), lines[-1] if lines else "no message")
        raise ComparisonError(f"{Path(command[0]).name} exited with {error.returncode}: {reason}") from None


def build_driver(htsim: Path, folder: Path) -> Path:
    """Compiles what changed since the last build in this folder, and returns the driver."""
    sources = next((path for path in (htsim / "sim", htsim) if (path / "mtcp.h").is_file()), None)
    if sources is None:
        raise ComparisonError(f"{htsim}: not a checkout of csg-htsim (no sim/mtcp.h)")
    compiler = os.environ.get("CXX", "c++")
    if shutil.which(compiler) is None:
        raise ComparisonError(f"no C++ compiler: {compiler} not found (set CXX)")
    shared = max(path.stat().st_mtime for path in (*sources.glob("*.h"), Path(__file__)))
    objects = []
    for source in (*(sources / f"{name}.cpp" for name in SOURCES), DRIVER):
        made = folder / f"{source.stem}.o"
        objects.append(made)
        if not made.exists() or made.stat().st_mtime < max(source.stat().st_mtime, shared):
            print(f"compiling {source.name}", file=sys.stderr)
            run([compiler, *FLAGS, "-I", sources, "-c", source, "-o", made])
    program = folder / "driver"
    run([compiler, *FLAGS, *objects, "-o", program])
    return program


def build_longfat() -> Path:
    """Compiles longfat's scenarios and returns the program."""
    print("compiling longfat", file=sys.stderr)
    manifest = ROOT / "Cargo.toml"
    package = ["--package", "longfat-benchmarks", "--bin", "scenario"]
    run(["cargo", "build", "--quiet", "--locked", "--release", "--manifest-path", manifest, *package])
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "scenario"


def read_htsim(output: str) -> Result:
    """Reads the driver's line of JSON."""
    figures = json.loads(output)
    return Result(figures["packets"], figures["goodput_mbps"], figures["fct_ms"])


def read_longfat(output: str) -> Result:
    """Reads the line of longfat's program."""
    match = re.fullmatch(r"packets (\d+) hops \d+ goodput (\S+) Mbit/s fct (\S+) ms\s*", output)
    if match is None:
        raise ComparisonError(f"longfat printed {output.strip()!r}")
    fct = float(match[3])
    return Result(int(match[1]), float(match[2]), None if math.isnan(fct) else fct)


def count_instructions(command: list[str | Path]) -> int:
    """Returns the instructions that Valgrind counts in a run."""
    valgrind = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    match = re.search(r"I\s+refs:\s+([\d,]+)", run([*valgrind, *command]).stderr)
    if match is None:
        raise ComparisonError("valgrind printed no instruction count")
    return int(match[1].replace(",", ""))


def measure(command: list[str | Path]) -> tuple[float, str]:
    """Returns user CPU seconds and output of a run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    output = run(command).stdout
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before, output


def compare(name: str, htsim: Path, longfat: Path, options: argparse.Namespace) -> list[str]:
    """Returns the row of a scenario."""
    scenario, seconds, label = SCENARIOS[name]
    commands: list[list[str | Path]] = [
        [htsim, name, str(seconds)],
        [longfat, scenario, "linux", str(seconds)],
    ]
    times: list[list[float]] = [[], []]
    outputs = ["", ""]
    for _ in range(options.rounds):
        for side, command in enumerate(commands):
            used, outputs[side] = measure(command)
            times[side].append(used)
    ours, theirs = read_longfat(outputs[1]), read_htsim(outputs[0])
    rates = [
        result.packets / statistics.median(used) / 1e6
        for result, used in zip((theirs, ours), times, strict=True)
    ]
    row = [label, *(f"{rate:.2f}" for rate in rates), f"{rates[1] / rates[0]:.2f}"]
    row.append(f"{theirs.goodput:.1f}, {ours.goodput:.1f}")
    fcts = (theirs.fct, ours.fct)
    row.append(", ".join(f"{fct:.1f}" for fct in fcts if fct is not None) or "-")
    if options.instructions:
        counts = [
            count_instructions(command) / result.packets
            for result, command in zip((theirs, ours), commands, strict=True)
        ]
        row += [*(f"{count:.0f}" for count in counts), f"{counts[1] / counts[0]:.2f}"]
    return row


def print_table(rows: list[list[str]]) -> None:
    """Prints the rows in columns, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for label, *cells in rows:
        aligned = (cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
        print("  ".join((label.ljust(widths[0]), *aligned)))


class Parser(argparse.ArgumentParser):
    """Parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Exits with 2."""
        self.exit(2, f"{self.prog}: {message}\n")


def main() -> None:
    """Builds both programs and prints the table."""
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("htsim", type=Path, metavar="HTSIM_DIR", help="checkout of csg-htsim")
    parser.add_argument("--rounds", type=int, default=7, help="alternating runs per scenario (default: 7)")
    parser.add_argument("--scenario", choices=SCENARIOS, action="append", help="default: all")
    parser.add_argument("--build", type=Path, metavar="DIR", help="folder for objects, reused by later runs")
    parser.add_argument("--longfat", type=Path, metavar="PATH", help="compiled program `scenario`")
    parser.add_argument("--instructions", action="store_true", help="count instructions (needs Valgrind)")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds: at least 1")
    if options.instructions and shutil.which("valgrind") is None:
        parser.error("--instructions: valgrind not found")
    header = ["scenario", "htsim Mpkt/s", "longfat Mpkt/s", "ratio", "goodput Mbit/s", "FCT ms"]
    if options.instructions:
        header += ["htsim instr/pkt", "longfat instr/pkt", "instr ratio"]
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.build or Path(temporary)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            htsim = build_driver(options.htsim, folder.resolve())
            longfat = options.longfat.resolve() if options.longfat else build_longfat()
            names = options.scenario or SCENARIOS
            print_table([header, *(compare(name, htsim, longfat, options) for name in names)])
        except (ComparisonError, OSError) as error:
            parser.error(str(error))
    print(f"Medians of {options.rounds} alternating runs; data packets per second of user CPU time.")
    print("Goodput and FCT: htsim, longfat.")


if __name__ == "__main__":
    main()
