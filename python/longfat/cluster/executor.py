"""Runs trials on a cluster: batches become tasks, and lost tasks are sent again.

Dask repeats the tasks of a worker that dies. Beyond that:

- Tasks that the scheduler forgot (it restarted, or the connection broke) are sent again.
- A batch that kills its workers is divided into single trials. These run one at a time when nothing else
  runs, so that no innocent trial is blamed. One that still kills its worker three times is set aside.

Every batch has one result, whatever happens to its tasks, so no trial is counted twice.
"""

from __future__ import annotations

import collections
import pickle
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import numpy as np

from longfat import _native
from longfat.cluster.connection import ClusterError, Connection
from longfat.cluster.worker import run_batch
from longfat.runner.executor import KILLED, CancelledTrialError, DividedCallError
from longfat.runner.trial import Records, Trial

SECONDS_PER_CALL = 0.5
"""Duration of a task: far above Dask's cost of about 2 ms, and short for progress and Ctrl-C."""
TASKS_PER_SECOND = 200
"""Most tasks a second, which one client handles; with more workers, tasks take longer."""


@dataclass(eq=False)
class _Batch:
    """Trials of one cell in one task."""

    trials: Sequence[Trial]
    result: Future[Records]
    suspect: bool = False
    task: Any = None


class ClusterExecutor:
    """Runs the trials of one world on a connected cluster."""

    most_trials = 10_000
    longest_first = True

    def __init__(self, connection: Connection, world: str) -> None:
        self._connection = connection
        self._world = world
        self._guard = threading.RLock()
        self._running: set[_Batch] = set()
        self._suspects: collections.deque[_Batch] = collections.deque()
        self._to_send: collections.deque[_Batch] = collections.deque()
        self._wake = threading.Condition(self._guard)
        self._is_cancelled = self._is_closed = False
        self._sender = threading.Thread(target=self._send_all, name="cluster-sender", daemon=True)
        self._sender.start()

    @property
    def jobs(self) -> int:
        """The number of threads of all workers."""
        return self._connection.threads

    @property
    def seconds_per_call(self) -> float:
        """The duration of a task in s."""
        return max(SECONDS_PER_CALL, self.jobs / TASKS_PER_SECOND)

    def submit(self, trials: Sequence[Trial]) -> Future[Records]:
        """Queues trials of one cell."""
        batch = _Batch(trials, Future())
        self._enqueue(batch)
        return batch.result

    def forecast(self, trials: Sequence[Trial]) -> float | None:  # noqa: ARG002 - virtual time
        """Returns None: the duration is unknown."""
        return None

    def unsupported(self, trials: Sequence[Trial]) -> list[str]:  # noqa: ARG002 - depends on the world
        """Returns why a cluster cannot run the trials: other tasks would disturb trials in wall time."""
        return [] if self._world == "sim" else ["a cluster runs trials in virtual time only"]

    def refusals(self, trials: Sequence[Trial]) -> list[str]:  # noqa: ARG002 - virtual time
        """Returns none."""
        return []

    def cancel(self) -> None:
        """Cancels all waiting and running trials."""
        with self._guard:
            self._is_cancelled = True
            batches = [*self._running, *self._to_send, *self._suspects]
            self._running.clear()
            self._to_send.clear()
            self._suspects.clear()
            self._wake.notify_all()
        tasks = [batch.task for batch in batches if batch.task is not None]
        for batch in batches:
            _fail(batch, CancelledTrialError())
        for task in tasks:
            task.cancel()

    def close(self) -> None:
        """Ends the sending of trials; the connection stays."""
        with self._guard:
            self._is_closed = True
            self._wake.notify_all()
        self._sender.join()

    def _enqueue(self, batch: _Batch) -> None:
        with self._guard:
            if self._is_cancelled:
                _fail(batch, CancelledTrialError())
                return
            self._to_send.append(batch)
            self._wake.notify_all()

    def _send_all(self) -> None:
        """Sends waiting batches, also again, and suspects one at a time when nothing else runs."""
        while True:
            with self._guard:
                while not (self._is_closed or self._to_send or (self._suspects and not self._running)):
                    self._wake.wait()
                if self._is_closed:
                    return
                batch = self._to_send.popleft() if self._to_send else self._suspects.popleft()
                self._running.add(batch)
            try:
                task = self._connection.submit(run_batch, _native.version(), pickle.dumps(batch.trials))
            except ClusterError as error:
                self._end(batch)
                _fail(batch, error)
                continue
            batch.task = task
            task.add_done_callback(lambda _, batch=batch, task=task: self._done(batch, task))

    def _end(self, batch: _Batch) -> bool:
        """Removes a batch from those that run; returns whether it was one of them."""
        with self._guard:
            is_known = batch in self._running
            self._running.discard(batch)
            self._wake.notify_all()
        return is_known

    def _done(self, batch: _Batch, task: Any) -> None:
        """Handles the end of a task, in a thread of Dask's client."""
        from distributed.scheduler import KilledWorker

        try:
            records = task.result() if task.status == "finished" else None
            error = task.exception() if task.status == "error" else None
        except Exception:  # noqa: BLE001 - the scheduler went away while it answered
            records = error = None
        if not self._end(batch) or batch.task is not task:
            return
        if records is not None:
            task.release()
            batch.result.set_result(records)
        elif isinstance(error, KilledWorker):
            self._suspect(batch)
        elif error is not None:
            _fail(batch, error)
        else:
            self._enqueue(batch)

    def _suspect(self, batch: _Batch) -> None:
        """Divides a batch that killed its workers, or sets its only trial aside."""
        if batch.suspect:
            batch.result.set_result(_set_aside(batch.trials))
            return
        pieces = [_Batch([trial], Future(), suspect=True) for trial in batch.trials]
        _fail(batch, DividedCallError([(piece.trials, piece.result) for piece in pieces]))
        with self._guard:
            self._suspects.extend(pieces)
            self._wake.notify_all()


def _fail(batch: _Batch, error: BaseException) -> None:
    if not batch.result.done():
        batch.result.set_exception(error)


def _set_aside(trials: Sequence[Trial]) -> Records:
    return Records([KILLED] * len(trials), {}, np.zeros(len(trials), np.uint32), [])
