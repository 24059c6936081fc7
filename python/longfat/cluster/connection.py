"""The connection to a Dask cluster, which survives a restart of the scheduler."""

from __future__ import annotations

import contextlib
import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from longfat import _native
from longfat.cluster import worker
from longfat.runner.executor import DEATHS

CONNECT = 30.0
"""Time in s for one attempt to reach the scheduler."""
AWAY = 600.0
"""Time in s without a scheduler after which a run ends; its records stay."""
RECOUNT = 1.0
"""Interval in s at which workers are counted."""
WORKERS = 60.0
"""Time in s to wait for the first worker."""


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
        self._note = note
        self._patience = patience
        self._cluster: Any = None
        self._client: Any = None
        self._guard = threading.Lock()
        self._threads, self._counted_at = 1, -math.inf
        self.workers: list[dict[str, Any]] = []
        """What each worker answered before the first trial."""

    def __enter__(self) -> Self:
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        try:
            if self._target.is_local:
                self._start_cluster()
            self._client = self._connect(self._patience)
            self.workers = self._check_workers()
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
        for one in (self._client, self._cluster):
            if one is not None:
                with contextlib.suppress(Exception):
                    one.close()
        self._client = self._cluster = None

    @property
    def threads(self) -> int:
        """The number of threads of all workers; they may come and go."""
        now = time.monotonic()
        if now - self._counted_at > RECOUNT:
            with contextlib.suppress(Exception):
                self._threads = max(1, sum(self._client.nthreads().values()))
            self._counted_at = now
        return self._threads

    def submit(self, function: Callable[..., Any], *arguments: object) -> Any:
        """Queues a call on any worker and returns Dask's future. Raises ClusterError without a scheduler."""
        return self.client().submit(function, *arguments, pure=False)

    def client(self) -> Any:
        """Returns the connected client; waits for a scheduler that is away, but not for ever.

        Raises ClusterError without one.
        """
        with self._guard:
            if self._client is None:
                raise ClusterError("the cluster is closed")
            if self._client.status == "running":
                return self._client
            self._note("lost the scheduler; waiting for it")
            until = time.monotonic() + AWAY
            while time.monotonic() < until:
                if self._client is None:
                    raise ClusterError("the cluster is closed")
                if self._client.status == "running":
                    break
                if self._client.status == "closed":
                    with contextlib.suppress(ClusterError):
                        self._client = self._connect(min(self._patience, max(0.1, until - time.monotonic())))
                        break
                time.sleep(0.2)
            else:
                raise ClusterError(f"no scheduler for {AWAY / 60:.0f} min; the same command resumes")
            self._note("found the scheduler again")
            return self._client

    def _start_cluster(self) -> None:
        import dask
        from distributed import LocalCluster

        # A trial that kills its worker for the third time is not tried again.
        dask.config.set({"distributed.scheduler.allowed-failures": DEATHS - 1})
        # Dask has no complete types.
        make: Any = LocalCluster
        self._cluster = make(
            n_workers=self._jobs,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
            preload=["longfat.cluster.preload"],
        )

    def _connect(self, patience: float) -> Any:
        from distributed import Client

        where = self._cluster or self._target.scheduler
        try:
            make: Any = Client
            file = self._target.scheduler_file
            return make(where, scheduler_file=file, timeout=patience, set_as_default=False)
        except (OSError, ValueError) as error:
            name = self._target.scheduler or self._target.scheduler_file or "the local cluster"
            raise ClusterError(f"{name}: no scheduler answers: {_first_line(error)}") from None

    def _check_workers(self) -> list[dict[str, Any]]:
        """Returns what all workers answer. Raises ClusterError without workers, or with another version."""
        if not self._client.nthreads():
            self._note("waiting for workers")
        try:
            self._client.wait_for_workers(1, timeout=WORKERS)
        except TimeoutError:
            raise ClusterError(
                f"the scheduler has no workers after {WORKERS:.0f} s: start one (dask worker)"
            ) from None
        answers = self._client.run(worker.about, on_error="return")
        own = _native.version()
        for address, answer in answers.items():
            if isinstance(answer, ModuleNotFoundError):
                raise ClusterError(f"worker {address} has no longfat: install longfat {own} there")
            if isinstance(answer, Exception):
                raise ClusterError(f"worker {address} does not answer: {_first_line(answer)}")
            if answer["longfat"] != own:
                raise ClusterError(f"worker {address} has longfat {answer['longfat']}: install {own} there")
        return [answer for _, answer in sorted(answers.items())]


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
