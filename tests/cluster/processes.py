"""A Dask cluster of real processes, which tests kill and restart."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ENVIRONMENT = {
    **os.environ,
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0",
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "5s",
    "DASK_LOGGING__DISTRIBUTED": "critical",
    # Otherwise an idle worker takes 4 % of a processor for observations of itself.
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "500ms",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "5s",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__GIL__ENABLED": "False",
    "OMP_NUM_THREADS": "1",
}


class Machines:
    """A scheduler at a fixed port of the loopback interface, and workers of one thread."""

    def __init__(self, folder: Path, protocol: str, variables: Mapping[str, str]) -> None:
        self.folder = folder
        self.protocol = protocol
        self.environment = {**ENVIRONMENT, **variables}
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            self.port: int = unused.getsockname()[1]
        self.scheduler = self.start_scheduler()
        self.workers: list[subprocess.Popen[bytes]] = []

    @property
    def address(self) -> str:
        """The scheduler's address."""
        return f"{self.protocol}://127.0.0.1:{self.port}"

    def start_scheduler(self) -> subprocess.Popen[bytes]:
        """Starts the scheduler."""
        where = ("--host", "127.0.0.1", "--port", str(self.port), "--protocol", self.protocol)
        self.scheduler = self._start("distributed.cli.dask_scheduler", *where, "--no-dashboard")
        return self.scheduler

    def start_worker(self, *options: str) -> subprocess.Popen[bytes]:
        """Starts a worker without a nanny, so that a kill ends it; more options follow."""
        local = self.folder / f"worker-{len(self.workers)}"
        local.mkdir(exist_ok=True)
        arguments = (self.address, "--nthreads", "1", "--no-dashboard", "--local-directory", str(local))
        kind = () if "--nanny" in options else ("--no-nanny",)
        self.workers.append(self._start("distributed.cli.dask_worker", *arguments, *kind, *options))
        return self.workers[-1]

    def revive(self, workers: int) -> None:
        """Starts what is missing, as a supervisor does."""
        if self.scheduler.poll() is not None:
            self.start_scheduler()
        self.workers = [worker for worker in self.workers if worker.poll() is None]
        while len(self.workers) < workers:
            self.start_worker()

    def _start(self, module: str, *arguments: str) -> subprocess.Popen[bytes]:
        # Its own process group, so that all of it can be killed.
        return subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def close(self) -> None:
        """Kills all processes."""
        for process in (*self.workers, self.scheduler):
            kill(process)


def kill(process: subprocess.Popen[Any]) -> None:
    """Kills a process and those that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextlib.contextmanager
def machines(
    folder: Path, workers: int = 2, protocol: str = "tcp", variables: Mapping[str, str] | None = None
) -> Iterator[Machines]:
    """Yields a cluster that ends with the block; `variables` are for the environment of its processes."""
    made = Machines(folder, protocol, variables or {})
    try:
        for _ in range(workers):
            made.start_worker()
        yield made
    finally:
        made.close()
