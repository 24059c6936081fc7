"""Measures runs on a Dask cluster of this machine: overhead, scaling, tasks per second and memory.

    python benchmarks/cluster.py [overhead] [scaling] [tasks] [memory]

Overhead and scaling compare processor times, because other programs may use the machine.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from longfat import _native
from longfat.cluster import batch, open_machines
from longfat.cluster.connection import Connection, Target
from longfat.runner import run_study
from longfat.runner.dispatch import run_trials
from longfat.runner.environment import available_cores
from longfat.runner.executor import executor_of
from longfat.runner.planning import plan
from longfat.runner.present import Present
from longfat.runner.progress import Reporter
from longfat.runner.runner import Machines
from longfat.runner.sampling import Budget
from longfat.runner.trial import Records
from longfat.study import Study, cells, load_study

SIZES = {"7200kB": (500, 4000), "180MB": (20, 120)}
"""Sizes of files whose simulated transfer takes about 2 ms and 50 ms, and numbers of trials."""

REPEATS = 3


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


def direct(one: Study) -> float:
    """Returns the processor time of all trials by simulation alone, in batches."""
    executor: Any = executor_of("sim", 1)
    version = _native.version()
    wanted = plan(cells(one), [one.trials_in("sim")], one.seed, version, Present()).missing
    started = time.process_time()
    for first in range(0, len(wanted), 200):
        executor.run_all(wanted.groups[0][first : first + 200])
    return time.process_time() - started


def on_cluster(machines: Machines, one: Study) -> tuple[float, float]:
    """Returns processor time and duration of a run."""
    with tempfile.TemporaryDirectory() as folder:
        busy, started = processor_seconds(), time.perf_counter()
        run_study(one, folder=Path(folder, "run"), machines=machines)
        return processor_seconds() - busy, time.perf_counter() - started


def overhead() -> None:
    """Prints the processor time per trial beyond its simulation."""
    with open_machines("dask", Target(), 1) as machines:

        def busy(one: Study) -> float:
            return on_cluster(machines, one)[0]

        busy(study("1kB", 50))
        for size, counts in SIZES.items():
            few, many = (study(size, count) for count in counts)
            more = counts[1] - counts[0]
            # The shortest of several times: other programs share the caches.
            alone, most, least = (
                min(one(of) for _ in range(REPEATS))
                for one, of in ((direct, many), (busy, many), (busy, few))
            )
            alone *= more / counts[1]
            spent = most - least
            print(
                f"overhead, trials of {alone / more * 1e3:.1f} ms: {100 * (spent / alone - 1):.1f} % "
                f"({(spent - alone) / more * 1e6:.0f} µs per trial)",
                flush=True,
            )


def scaling() -> None:
    """Prints the speedup of two workers over one in wall time."""
    durations = []
    for jobs in (1, 2):
        with open_machines("dask", Target(), jobs) as machines:
            on_cluster(machines, study("1kB", 50))
            durations.append(on_cluster(machines, study("1800kB", 20_000))[1])
    print(f"20,000 trials: {durations[0]:.1f} s, two workers {durations[1]:.1f} s", flush=True)
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
        count = 4000
        futures = list(pool.map(lambda n: connection.submit(stop, time.sleep, n * 0.0), range(count)))
        for future in futures:
            future.result()
        seconds = time.perf_counter() - started
        spent = (processor_seconds() - busy) / count
    print(f"tasks: {count / seconds:.0f} per second, {spent * 1e3:.2f} ms of processor time each", flush=True)


class _NoStore:
    """A store that drops all records."""

    def add(self, trials: object, records: object) -> None:
        """Drops the records."""

    def flush_if_due(self) -> None:
        """Writes nothing."""

    flush = flush_if_due


def memory() -> None:
    """Prints the memory of this process, with client, scheduler and workers, after runs of empty trials."""
    from distributed import LocalCluster

    def nothing(trials: Any) -> Records:
        count = len(trials)
        metrics = {f"metric_{number}": np.zeros(count) for number in range(30)}
        return Records([None] * count, metrics, np.zeros(count, np.uint32), [], count * 2e-5)

    batch._EXECUTORS.run_all = nothing  # type: ignore[method-assign]
    make: Any = LocalCluster
    with make(processes=False, n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster:
        target = Target(cluster.scheduler_address)
        for count in (10_000, 100_000, 1_000_000):
            one = study("1kB", count)
            wanted = plan(cells(one), [count], one.seed, _native.version(), Present()).missing
            with open_machines("dask", target, None) as machines:
                store: Any = _NoStore()
                started = time.process_time()
                reporter = Reporter()
                reporter.start("sim", count, 0)
                run_trials(wanted, machines.executor_of("sim"), store, reporter, Budget())
                spent = time.process_time() - started
            used = psutil.Process().memory_info().rss / 1e6
            print(
                f"memory after {count:,} trials: {used:.0f} MB, {spent / count * 1e6:.1f} µs each", flush=True
            )


PARTS = {"overhead": overhead, "scaling": scaling, "tasks": tasks, "memory": memory}

if __name__ == "__main__":
    print(f"{available_cores()} cores, load {psutil.getloadavg()[0]:.1f}")
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
