"""The connection to a Dask cluster, which survives a restart of the scheduler."""

from __future__ import annotations

import contextlib
import logging
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from longfat import _native
from longfat.cluster import worker

CONNECT = 30.0
"""Time in s for one attempt to reach the scheduler."""
AWAY = 600.0
"""Time in s without a scheduler after which a run ends; its records stay."""
RETRY = 5.0
"""Time for one attempt to reach a scheduler that was lost."""
RECOUNT = 2.0
"""Interval in s at which workers are counted."""
WORKERS = 60.0
"""Time in s to wait for the first worker."""

LOCAL = {
    # A batch that killed one worker runs trial by trial.
    "distributed.scheduler.allowed-failures": 0,
    # By default, timers of client and worker take 7 % of a core.
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.tick.cycle": "10s",
    "distributed.admin.system-monitor.interval": "2s",
    "distributed.scheduler.work-stealing-interval": "1s",
    "distributed.worker.memory.monitor-interval": "200ms",
    "distributed.worker.profile.enabled": False,
}
"""Dask's settings for a local cluster."""


class ClusterError(OSError):
    """The cluster cannot run the trials. The text is one line."""


@dataclass(frozen=True)
class Target:
    """Where the scheduler is: an address, a file that Dask wrote, or neither for a local cluster."""

    scheduler: str | None = None
    scheduler_file: str | None = None

    @property
    def is_local(self) -> bool:
        """Whether the cluster starts and ends with the run."""
        return self.scheduler is None and self.scheduler_file is None


class Connection:
    """A client of a cluster. Use it in a `with` block."""

    def __init__(
        self,
        target: Target,
        jobs: int | None = None,
        note: Callable[[str], None] = lambda _: None,
        patience: float = CONNECT,
    ) -> None:
        try:
            import distributed  # noqa: F401
        except ImportError:
            raise ClusterError(
                "the executor dask needs the extra cluster: pip install 'longfat[cluster]'"
            ) from None
        self._target = target
        self._jobs = jobs
        self.note = note
        """Shows the user one line about the cluster."""
        self._patience = patience
        self._cluster: Any = None
        self._client: Any = None
        self._closed = threading.Event()
        self._threads = 0
        self.workers: list[dict[str, Any]] = []
        """What each worker answered before the first trial."""

    def __enter__(self) -> Self:
        _silence()
        try:
            if self._target.is_local:
                self._start_cluster()
            self.workers = self._greet_workers()
            threading.Thread(target=self._count_threads, name="cluster-counter", daemon=True).start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Disconnects, and ends a local cluster."""
        self._closed.set()
        for one in (self._client, self._cluster):
            if one is not None:
                with contextlib.suppress(Exception):
                    one.close()
        self._client = self._cluster = None

    @property
    def threads(self) -> int:
        """The number of threads of all workers; they may come and go."""
        return max(1, self._threads)

    def submit(self, stop: threading.Event, function: Callable[..., Any], *arguments: object) -> Any:
        """Queues a call on any worker and returns Dask's future.

        Raises ClusterError without a scheduler, and after `stop`.
        """
        return self._running_client(stop).submit(function, *arguments, pure=False)

    def _running_client(self, stop: threading.Event) -> Any:
        """Returns the connected client; waits for a scheduler that is away, but not for ever."""
        client = self._client
        if client is not None and client.status == "running":
            return client
        self.note("lost the scheduler; waiting for it")
        until = time.monotonic() + AWAY
        while time.monotonic() < until:
            if stop.is_set() or self._closed.is_set():
                raise ClusterError("the run has ended")
            if self._client.status == "running":
                break
            if self._client.status == "closed":
                with contextlib.suppress(ClusterError):
                    self._client = self._connect(RETRY)
                    break
            stop.wait(0.2)
        else:
            raise ClusterError(f"no scheduler for {AWAY / 60:.0f} min; the same command resumes")
        self.note("found the scheduler again")
        return self._client

    def _count_threads(self) -> None:
        """Counts the threads of all workers, again and again."""
        while not self._closed.wait(RECOUNT):
            with contextlib.suppress(Exception):
                count = self._client.run_on_scheduler(_total_threads)
                if self._threads and not count:
                    self.note("no workers; waiting for them")
                elif count < self._threads:
                    self.note(f"workers with {self._threads - count} of {self._threads} threads are gone")
                self._threads = count

    def _start_cluster(self) -> None:
        import dask
        from distributed import LocalCluster

        # Dask has no complete types.
        make: Any = LocalCluster
        with dask.config.set(LOCAL), _without_interrupts():
            try:
                self._cluster = make(
                    n_workers=self._jobs,
                    threads_per_worker=1,
                    processes=True,
                    dashboard_address="127.0.0.1:0",
                    scheduler_sync_interval="10s",
                    silence_logs=logging.CRITICAL,
                    preload=["longfat.cluster.preload"],
                )
            except Exception as error:  # noqa: BLE001 - Dask raises what its processes raise
                raise ClusterError(f"the local cluster does not start: {_first_line(error)}") from None

    def _connect(self, patience: float) -> Any:
        import dask
        from distributed import Client

        where = self._cluster or self._target.scheduler
        if str(where).startswith("tls://") and not dask.config.get("distributed.comm.tls.ca-file", None):
            raise ClusterError(
                f"{where}: needs certificates: set distributed.comm.tls in Dask's configuration, "
                "or DASK_DISTRIBUTED__COMM__TLS__CA_FILE, __CLIENT__CERT and __CLIENT__KEY"
            )
        file = self._target.scheduler_file
        if file is not None:
            self._wait_for_file(Path(file), patience)
        elif isinstance(where, str):
            _check_address(where)
        try:
            make: Any = Client
            return make(where, scheduler_file=file, timeout=patience, set_as_default=False)
        except (OSError, ValueError) as error:
            name = self._target.scheduler or self._target.scheduler_file or "the local cluster"
            raise ClusterError(f"{name}: no scheduler answers: {_first_line(error)}") from None

    def _wait_for_file(self, file: Path, patience: float) -> None:
        """Waits until a scheduler has written its file: a Dask client would wait for ever."""
        until = time.monotonic() + patience
        if not file.exists():
            self.note(f"waiting for a scheduler that writes {file}")
        while not file.exists():
            if time.monotonic() > until or self._closed.is_set():
                raise ClusterError(f"{file}: no scheduler has written this file within {patience:.0f} s")
            time.sleep(0.1)

    def _greet_workers(self) -> list[dict[str, Any]]:
        """Connects and returns what all workers answer, also if the scheduler restarts meanwhile."""
        until = time.monotonic() + self._patience
        while True:
            self._client = self._connect(self._patience)
            try:
                return self._check_workers()
            except ClusterError:
                raise
            # Dask raises CancelledError for calls that a closing client interrupts.
            except (OSError, CancelledError) as error:
                self._client.close()
                if time.monotonic() > until:
                    raise ClusterError(f"the cluster does not answer: {_first_line(error)}") from None

    def _check_workers(self) -> list[dict[str, Any]]:
        """Returns what all workers answer. Raises ClusterError without workers, or with another version."""
        if not self._client.nthreads():
            self.note("waiting for workers")
        try:
            self._client.wait_for_workers(1, timeout=WORKERS)
        except TimeoutError:
            raise ClusterError(
                f"the scheduler has no workers after {WORKERS:.0f} s: start one (dask worker)"
            ) from None
        found = self._client.run(worker.about, on_error="return")
        # A worker that ends meanwhile has no answer. Its successor checks the version of its trials.
        answers = {address: answer for address, answer in found.items() if not isinstance(answer, OSError)}
        if not answers:
            raise OSError("no worker answers")
        self._threads = self._client.run_on_scheduler(_total_threads)
        own = _native.version()
        for address, answer in answers.items():
            if isinstance(answer, ModuleNotFoundError):
                raise ClusterError(f"worker {address} has no longfat: install longfat {own} there")
            if isinstance(answer, Exception):
                raise ClusterError(f"worker {address} does not answer: {_first_line(answer)}")
            if answer["longfat"] != own:
                raise ClusterError(f"worker {address} has longfat {answer['longfat']}: install {own} there")
        return [answer for _, answer in sorted(answers.items())]


def _check_address(address: str) -> None:
    """Raises ClusterError for text that is no address: Dask would try for a minute to close its client."""
    scheme, _, rest = address.rpartition("://")
    if scheme in ("", "tcp", "tls") and not re.search(r"[^:]:\d+$", rest):
        raise ClusterError(f'"{address}" is not an address of a scheduler: write it like tcp://HOST:8786')


def _silence() -> None:
    """Silences Dask's loggers, each with its own level: what matters is an exception or a note."""
    for name in ("distributed", *logging.root.manager.loggerDict):
        if name.partition(".")[0] == "distributed":
            logging.getLogger(name).setLevel(logging.CRITICAL)


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """Blocks SIGINT in this thread; threads and processes that it starts inherit that.

    So Ctrl-C, which reaches the whole process group, ends no worker, also none that starts later.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _total_threads(dask_scheduler: Any) -> int:
    """Runs in the scheduler."""
    total: int = dask_scheduler.total_nthreads
    return total


def environment(workers: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Returns the workers for the description of a run: their number, and what they have in common or not."""
    return {
        "executor": "dask",
        "workers": len(workers),
        **{
            key: sorted({str(worker[key]) for worker in workers})
            for key in ("longfat", "machine", "python", "host")
        },
    }


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
