"""Measures runs on a Dask cluster of this machine: overhead, scaling, tasks per second and memory.

    python benchmarks/cluster.py [overhead] [scaling] [tasks] [kinds] [memory] [--share 1]

The overhead is a ratio of processor times of one run, because other programs may use the machine.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from longfat.cluster import open_machines
from longfat.cluster.connection import Connection, Target
from longfat.results.trial import Records, trials_frame
from longfat.runner import run_study
from longfat.runner.runner import Machines
from longfat.store import parts
from longfat.study import Overrides, Study, load_study
from longfat.worlds.environment import available_cores

SIZES = {"7200kB": (2000, 10_000), "180MB": (80, 400)}
"""Sizes of files whose simulated transfer takes about 2 ms and 50 ms, and numbers of trials."""

REPEATS = 3

share = 1.0
"""Share of the usual numbers of trials and tasks."""


def counted(usual: int) -> int:
    """Returns a number of trials or tasks."""
    return max(1, round(usual * share))


def study(size: str, repeats: int) -> Study:
    """Returns a study with one cell."""
    return load_study(
        {
            "title": "Cluster",
            "repeats": repeats,
            "path": {"rate": "20Mbit/s", "delay": "10ms", "queue": "40pkt", "loss": "0.1%"},
            "workload": {"kind": "file", "size": size},
            "protocols": [{"name": "cubic", "kind": "tcp"}],
        }
    )


def processor_seconds() -> float:
    """Returns the processor time of this process, which runs the scheduler, and of its workers."""
    total = 0.0
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        times = process.cpu_times()
        total += times.user + times.system
    return total


def time_simulation() -> None:
    """Counts the processor time of simulations in a worker."""
    from longfat.cluster import batch

    simulate = batch._EXECUTORS.run_all

    def run_all(trials: Any) -> Records:
        started = time.thread_time()
        try:
            return simulate(trials)
        finally:
            vars(batch)["simulation_s"] = simulation_seconds() + time.thread_time() - started

    vars(batch._EXECUTORS)["run_all"] = run_all


def simulation_seconds() -> float:
    """Returns the processor time of simulations in this worker so far."""
    from longfat.cluster import batch

    return float(vars(batch).get("simulation_s", 0.0))


def on_cluster(machines: Machines, one: Study) -> tuple[float, float]:
    """Returns processor time and duration of a run."""
    with tempfile.TemporaryDirectory() as folder:
        busy, started = processor_seconds(), time.perf_counter()
        run_study(one, folder=Path(folder, "run"), machines=machines)
        return processor_seconds() - busy, time.perf_counter() - started


def overhead() -> None:
    """Prints the processor time of all processes beyond that of the simulations, in the same run.

    The difference of two numbers of trials does not contain the start and the end of a run.
    """
    for jobs in (1, 2):
        with open_machines("dask", Target(), jobs) as machines:
            client_of(machines).run(time_simulation)
            spent(machines, study("1kB", 50))
            for size, counts in SIZES.items():
                print_overhead(machines, jobs, size, [jobs * counted(count) for count in counts])


def print_overhead(machines: Machines, workers: int, size: str, counts: list[int]) -> None:
    few, many = counts
    shares, costs = [], []
    for _ in range(REPEATS):
        most, least = (spent(machines, study(size, count)) for count in (many, few))
        busy, simulated = (one - other for one, other in zip(most, least, strict=True))
        shares.append(busy / simulated - 1)
        costs.append((busy - simulated) / (many - few))
    print(
        f"overhead, {workers} workers, trials of {simulated / (many - few) * 1e3:.1f} ms: "
        f"{100 * statistics.median(shares):.1f} % ({statistics.median(costs) * 1e6:.0f} µs per trial)",
        flush=True,
    )


def spent(machines: Machines, one: Study) -> tuple[float, float]:
    """Returns the processor time of a run, and that of its simulations."""
    client = client_of(machines)
    before = sum(client.run(simulation_seconds).values())
    busy = on_cluster(machines, one)[0]
    return busy, sum(client.run(simulation_seconds).values()) - before


def client_of(machines: Any) -> Any:
    """Returns Dask's client."""
    return vars(vars(machines)["_connection"])["_client"]


def scaling() -> None:
    """Prints the speedup of two workers over one in wall time."""
    durations = []
    for jobs in (1, 2):
        with open_machines("dask", Target(), jobs) as machines:
            on_cluster(machines, study("1kB", 50))
            durations.append(on_cluster(machines, study("1800kB", counted(20_000)))[1])
    print(f"{counted(20_000):,} trials: {durations[0]:.1f} s, two workers {durations[1]:.1f} s", flush=True)
    print(f"two workers are {durations[0] / durations[1]:.2f} times as fast", flush=True)


def tasks() -> None:
    """Prints the tasks per second of one client and scheduler with 1,000 idle threads."""
    from distributed import LocalCluster

    make: Any = LocalCluster
    settings: dict[str, Any] = {"processes": False, "n_workers": 10, "threads_per_worker": 100}
    with (
        make(**settings, dashboard_address="127.0.0.1:0") as cluster,
        Connection(Target(cluster.scheduler_address)) as connection,
        ThreadPoolExecutor(4) as pool,
    ):
        stop = threading.Event()
        busy, started = processor_seconds(), time.perf_counter()
        count = counted(4000)
        futures = list(pool.map(lambda n: connection.submit(stop, time.sleep, n * 0.0), range(count)))
        for future in futures:
            future.result()
        seconds = time.perf_counter() - started
        spent = (processor_seconds() - busy) / count
    print(f"tasks: {count / seconds:.0f} per second, {spent * 1e3:.2f} ms of processor time each", flush=True)


KINDS = ("arq/loss", "congestion/mathis", "fsfs/policies")
"""Studies whose trials have different costs."""


def kinds() -> None:
    """Prints trials per second of one core and bytes per trial of some studies with `--quick`."""
    for name in KINDS:
        one = load_study(name, Overrides(worlds=("sim",), quick=True))
        with tempfile.TemporaryDirectory() as folder:
            busy = time.process_time()
            run = run_study(one, folder=Path(folder, "run"), jobs=1)
            spent = time.process_time() - busy
            trials = sum(cell.n for cell in run.cells)
            size = {
                kind: sum(part.stat().st_size for part in parts.listed(Path(folder, "run"), kind)) / trials
                for kind in (parts.PART, parts.FLOWS)
            }
        print(
            f"{name}: {trials} trials, {spent / trials * 1e3:.1f} ms each, {trials / spent:.1f} per second "
            f"of a core; {size[parts.PART]:.0f} B of metrics and {size[parts.FLOWS]:.0f} B of flows each",
            flush=True,
        )


def nothing(trials: Any) -> Records:
    """Returns records of 30 metrics without a simulation."""
    numbers = [trial.number for trial in trials]
    metrics = {f"metric_{number}": np.zeros(len(numbers)) for number in range(30)}
    table = trials_frame(numbers, [None] * len(numbers), metrics)
    return Records(table, seconds=len(numbers) * 2e-5)


def replace_simulation() -> None:
    """Runs in each worker."""
    from longfat.cluster import batch

    vars(batch._EXECUTORS)["run_all"] = nothing


def run_nothing(count: int) -> None:
    """Prints time and memory of a run of trials that do nothing: client and scheduler, then a worker."""
    with open_machines("dask", Target(), 2) as machines:
        client_of(machines).run(replace_simulation)
        busy = time.process_time()
        duration = on_cluster(machines, study("1kB", count))[1]
        spent = time.process_time() - busy
        worker = max(memory_of(one) for one in psutil.Process().children(recursive=True))
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{count:,} trials that do nothing: {own:.0f} MiB of client and scheduler, "
        f"{worker:.0f} MiB of a worker, {duration:.1f} s, {spent / count * 1e6:.1f} µs of the client each",
        flush=True,
    )


def memory_of(process: psutil.Process) -> float:
    """Returns the memory of a process in MiB."""
    return float(process.memory_info().rss / 2**20)


def memory() -> None:
    """Prints the memory of runs of trials that do nothing, each in its own process, with a store."""
    for count in (10_000, 100_000, 1_000_000):
        code = f"import runpy; runpy.run_path({__file__!r})['run_nothing']({counted(count)})"
        subprocess.run([sys.executable, "-c", code], check=True)


PARTS = {
    "overhead": overhead,
    "scaling": scaling,
    "tasks": tasks,
    "kinds": kinds,
    "memory": memory,
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    parser.add_argument("--share", type=float, default=1.0, help="share of the usual numbers of trials")
    chosen = parser.parse_args()
    share = chosen.share
    print(f"{available_cores()} cores, load {psutil.getloadavg()[0]:.1f}")
    for part in chosen.parts or PARTS:
        PARTS[part]()
