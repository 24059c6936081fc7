"""Measures the CPU time and the memory of loading and planning large studies, each in a process of its own.

    python benchmarks/planning.py [--side 1000]

The sweeps have side x side cells. "sections" sweeps a key of the path and one of the workload, "section" two
keys of the path, and "BDP" is "sections" with a queue of one BDP. "check" builds the network of each cell, as
a run does before its first trial.
"""

from __future__ import annotations

import argparse
import itertools
import resource
import subprocess
import sys
import time
from typing import Any

from longfat.runner.runner import check_trials
from longfat.store.planning import plan
from longfat.store.present import Present
from longfat.study import cells, load_study


def study(kind: str, side: int) -> dict[str, Any]:
    """Returns a study with `side` values of two keys."""
    delays = [f"{n}us" for n in range(1_000, 1_000 + side)]
    queues = [f"{n}pkt" for n in range(10, 10 + side)]
    sizes = [f"{n}kB" for n in range(1_000, 1_000 + side)]
    other = {"path.queue": queues} if kind == "section" else {"workload.size": sizes}
    return {
        "title": "Many cells",
        "repeats": 1,
        "path": {"rate": "10Mbit/s", "delay": "20ms", "queue": "1BDP" if kind == "BDP" else "100pkt"},
        "workload": {"kind": "file", "size": "1MB"},
        "protocols": ["reno"],
        "sweep": {"path.delay": delays, **other},
    }


def measure(kind: str, side: int) -> None:
    """Prints a row for one kind of sweep."""
    data = study(kind, side)
    times = [time.process_time()]
    loaded = load_study(data)
    times.append(time.process_time())
    every = cells(loaded)
    missing = plan(every, [1] * len(every), loaded.seed, "1", Present()).missing
    times.append(time.process_time())
    check_trials(missing, every)
    times.append(time.process_time())
    load, planned, check = (end - start for start, end in itertools.pairwise(times))
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    spent = f"{load:.1f} s | {planned:.1f} s | {check:.1f} s"
    print(f"| {kind} | {len(missing):,} | {spent} | {megabytes:.0f} MB |")


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", type=int, default=1000, help="Values of each swept key.")
    parser.add_argument("--kind", help="Only this kind, in this process.")
    options = parser.parse_args()
    if options.kind:
        measure(options.kind, options.side)
        return
    print("| sweep | cells | load | plan | check | memory |")
    print("| --- | --- | --- | --- | --- | --- |", flush=True)
    for kind in ("sections", "section", "BDP"):
        again = [sys.executable, __file__, "--kind", kind, "--side", str(options.side)]
        subprocess.run(again, check=True)


if __name__ == "__main__":
    main()
