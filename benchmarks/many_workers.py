"""Measures client and scheduler of a run with many workers, whose trials sleep instead of simulating.

    python benchmarks/many_workers.py [--workers 1000] [--trials 400000] [--sleep 0.05]

All workers are real ones of Dask, with one thread each, in a few processes of this machine. Client and
scheduler have their own processes. Prints the duration, what part of it the trials sleep, and the processor
time of each kind of process.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from longfat.cluster import Target, open_machines
from longfat.results.trial import Records, trials_frame
from longfat.runner import run_study
from longfat.study import load_study

PROCESSES = 4
METRICS = 30
STUDY = {
    "title": "Trials that sleep",
    "path": {"rate": "20Mbit/s", "delay": "10ms", "queue": "40pkt"},
    "workload": {"kind": "file", "size": "1kB"},
    "protocols": [
        {"name": name, "kind": "tcp", "congestion": name} for name in ("reno", "cubic", "vegas", "bbr")
    ],
    "sweep": {"path.loss": ["0%", "0.1%", "0.3%", "1%", "3%"]},
}
QUIET = {
    # Timers of 1,000 workers would take more than this machine has.
    "distributed.admin.tick.interval": "10s",
    "distributed.admin.tick.cycle": "60s",
    "distributed.admin.system-monitor.interval": "60s",
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    "distributed.scheduler.work-stealing-interval": "1s",
}


def replace_simulation(sleep: float) -> None:
    """Replaces simulations in a worker by sleep of so many seconds per trial."""
    from longfat.cluster import batch

    def run_all(trials: Any) -> Records:
        numbers = [trial.number for trial in trials]
        time.sleep(sleep * len(numbers))
        metrics = {f"metric_{number}": np.zeros(len(numbers)) for number in range(METRICS)}
        table = trials_frame(numbers, [None] * len(numbers), metrics)
        return Records(table, seconds=sleep * len(numbers))

    vars(batch._EXECUTORS)["run_all"] = run_all


async def host(address: str, count: int, sleep: float) -> None:
    """Runs workers in this process until the scheduler closes them."""
    import dask
    from distributed import Worker

    replace_simulation(sleep)
    make: Any = Worker
    with dask.config.set(QUIET), tempfile.TemporaryDirectory() as folder:
        async with contextlib.AsyncExitStack() as stack:
            workers = [
                await stack.enter_async_context(
                    make(address, nthreads=1, memory_limit=0, dashboard=False, local_directory=folder)
                )
                for _ in range(count)
            ]
            await asyncio.gather(*(worker.finished() for worker in workers))


@contextlib.contextmanager
def cluster(workers: int, sleep: float) -> Iterator[tuple[str, list[psutil.Process]]]:
    """Yields the address of a scheduler with workers; the first of its processes is the scheduler."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = str(unused.getsockname()[1])
    address = f"tcp://127.0.0.1:{port}"
    schedule = (
        "-m",
        "distributed.cli.dask_scheduler",
        "--host",
        "127.0.0.1",
        "--port",
        port,
        "--no-dashboard",
    )
    started = [start(*schedule)]
    try:
        for number in range(PROCESSES):
            count = workers // PROCESSES + (number < workers % PROCESSES)
            started.append(start(__file__, "--host", address, str(count), str(sleep)))
        yield address, [psutil.Process(process.pid) for process in started]
    finally:
        for process in reversed(started):
            process.kill()
            process.wait()


def start(*arguments: str) -> subprocess.Popen[bytes]:
    """Starts Python without its messages."""
    return subprocess.Popen([sys.executable, *arguments], stderr=subprocess.DEVNULL)


def wait_for_workers(address: str, workers: int) -> None:
    """Waits until all workers have registered."""
    from distributed import Client

    make: Any = Client
    with make(address, timeout=60, set_as_default=False) as client:
        client.wait_for_workers(workers, timeout=300)


def busy(process: psutil.Process) -> float:
    """Returns the processor time of a process in s."""
    times = process.cpu_times()
    return float(times.user + times.system)


def measure(workers: int, trials: int, sleep: float) -> None:
    """Runs the study and prints the figures."""
    table = STUDY | {"repeats": trials // 20}
    with cluster(workers, sleep) as (address, processes), tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        wait_for_workers(address, workers)
        print(f"{workers} workers registered after {time.perf_counter() - began:.0f} s", flush=True)
        everything = [psutil.Process(), *processes]
        with open_machines("dask", Target(address), None) as machines:
            before, began = [busy(one) for one in everything], time.perf_counter()
            run_study(load_study(table), folder=Path(folder, "run"), machines=machines)
            duration = time.perf_counter() - began
            spent = [busy(one) - start for one, start in zip(everything, before, strict=True)]
    ideal = trials * sleep / workers
    print(
        f"{trials:,} trials of {sleep:g} s: {duration:.1f} s, {100 * ideal / duration:.0f} % of it in trials"
    )
    for name, seconds in (("client", spent[0]), ("scheduler", spent[1]), ("workers", sum(spent[2:]))):
        print(f"{name}: {seconds:.1f} s of processor time, {seconds / trials * 1e6:.0f} µs per trial")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, default=1000)
    parser.add_argument("--trials", type=int, default=400_000)
    parser.add_argument("--sleep", type=float, default=0.05, help="duration of a trial in s")
    parser.add_argument("--host", nargs=3, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.host:
        asyncio.run(host(chosen.host[0], int(chosen.host[1]), float(chosen.host[2])))
    else:
        measure(chosen.workers, chosen.trials, chosen.sleep)
