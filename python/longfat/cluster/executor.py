"""Runs trials on a cluster: batches become tasks, and lost tasks are sent again.

Dask repeats the tasks of a worker that dies. Beyond that:

- Tasks that the scheduler forgot (it restarted, or the connection broke) are sent again.
- The trials of a batch whose workers died run one by one in a child process of a worker. It shows which trial
  kills its process, so that no innocent one is blamed. After three deaths a trial is set aside.
- If the workers of such a batch die too (a container with the child), it is divided. Single trials of these
  run one at a time when nothing else runs, and are set aside after three deaths.

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

from longfat import _native
from longfat.cluster.attachments import AttachmentError, Contents
from longfat.cluster.batch import Batch
from longfat.cluster.connection import ClusterError, Connection
from longfat.cluster.single import ChildError, killed
from longfat.cluster.worker import NeedsContents, VersionError, run_batch
from longfat.results.trial import Records, Trial
from longfat.store.planning import CellTrials
from longfat.worlds.executor import DEATHS, CancelledTrialError, DividedCallError

SECONDS_PER_CALL = 1.0
"""Duration of a task: far above the cost of 10 ms of client, scheduler and worker, and short for progress."""
TASKS_PER_SECOND = 100
"""Most tasks a second, which one client handles; with more workers, tasks take longer."""


@dataclass(eq=False)
class _Call:
    """Trials of one cell in one task."""

    trials: CellTrials
    result: Future[Records]
    singly: bool = False
    with_contents: bool = False
    deaths: int = 0
    task: Any = None


class ClusterExecutor:
    """Runs the trials of one world on a connected cluster."""

    most_trials = 10_000
    longest_first = True

    def __init__(self, connection: Connection, world: str) -> None:
        self._connection = connection
        self._world = world
        self._guard = threading.RLock()
        self._running: set[_Call] = set()
        self._suspects: collections.deque[_Call] = collections.deque()
        self._to_send: collections.deque[_Call] = collections.deque()
        self._wake = threading.Condition(self._guard)
        self._is_cancelled = self._is_closed = False
        self._stop = threading.Event()
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

    def submit(self, trials: CellTrials) -> Future[Records]:
        """Queues trials of one cell."""
        call = _Call(trials, Future())
        self._enqueue(call)
        return call.result

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
            calls = [*self._running, *self._to_send, *self._suspects]
            self._running.clear()
            self._to_send.clear()
            self._suspects.clear()
            self._wake.notify_all()
        for call in calls:
            # Dask cancels a task that has no future.
            call.task = None
            _fail(call, CancelledTrialError())

    def close(self) -> None:
        """Ends the sending of trials; the connection stays."""
        with self._guard:
            self._is_closed = True
            self._wake.notify_all()
        self._stop.set()
        self._sender.join()

    def _enqueue(self, call: _Call) -> None:
        with self._guard:
            if self._is_cancelled:
                _fail(call, CancelledTrialError())
                return
            waiting = self._suspects if call.deaths else self._to_send
            waiting.append(call)
            self._wake.notify_all()

    def _send_all(self) -> None:
        """Sends waiting calls, also again, and suspects one at a time when nothing else runs."""
        while True:
            with self._guard:
                while not (self._is_closed or self._to_send or (self._suspects and not self._running)):
                    self._wake.wait()
                if self._is_closed:
                    return
                call = self._to_send.popleft() if self._to_send else self._suspects.popleft()
                self._running.add(call)
            try:
                task = self._send(call)
            except (ClusterError, OSError) as error:
                self._end(call)
                _fail(call, error)
                continue
            call.task = task
            task.add_done_callback(lambda _, call=call, task=task: self._done(call, task))

    def _send(self, call: _Call) -> Any:
        batch = Batch.of(call.trials)
        contents: Contents = {}
        if call.with_contents or call.singly:
            contents = {one.digest: one.content() for one in batch.attachments if one.is_sent}
        # The batch stays pickled until the worker has compared versions: another version may not unpickle it.
        arguments = (_native.version(), pickle.dumps(batch), contents, call.singly)
        return self._connection.submit(self._stop, run_batch, *arguments)

    def _end(self, call: _Call) -> bool:
        """Removes a call from those that run; returns whether it was one of them."""
        with self._guard:
            is_known = call in self._running
            self._running.discard(call)
            self._wake.notify_all()
        return is_known

    def _done(self, call: _Call, task: Any) -> None:
        """Handles the end of a task, in a thread of Dask's client."""
        from distributed.scheduler import KilledWorker

        try:
            answer = task.result() if task.status == "finished" else None
            error = task.exception() if task.status == "error" else None
        except Exception:  # noqa: BLE001 - the scheduler went away while it answered
            answer = error = None
        task.release()
        if call.task is not task or not self._end(call):
            return
        call.task = None
        if isinstance(answer, NeedsContents):
            call.with_contents = True
            self._enqueue(call)
        elif answer is not None:
            call.result.set_result(Records.from_arrow(answer))
        elif isinstance(error, KilledWorker):
            self._suspect(call, error.allowed_failures + 1)
        elif error is not None:
            _fail(call, error if isinstance(error, ValueError) else ClusterError(_in_one_line(error)))
        else:
            self._enqueue(call)

    def _suspect(self, call: _Call, deaths: int) -> None:
        """Runs the trials of a call one by one, divides it, or sets its only trial aside."""
        if not call.singly:
            self._connection.note(f"a worker died; its {_rerun(len(call.trials))}")
            call.singly = True
            self._enqueue(call)
        elif len(call.trials) > 1:
            middle = len(call.trials) // 2
            pieces = [
                _Call(trials, Future(), singly=True)
                for trials in (call.trials[:middle], call.trials[middle:])
            ]
            _fail(call, DividedCallError([(piece.trials, piece.result) for piece in pieces]))
            for piece in pieces:
                self._enqueue(piece)
        else:
            # The first death was possibly that of a worker with another trial.
            call.deaths += deaths if call.deaths else 1
            if call.deaths > DEATHS:
                call.result.set_result(killed(call.trials[0].number))
            else:
                self._enqueue(call)


def _rerun(count: int) -> str:
    return "trial runs again" if count == 1 else f"{count} trials run again, one by one"


def _fail(call: _Call, error: BaseException) -> None:
    if not call.result.done():
        call.result.set_exception(error)


def _in_one_line(error: BaseException) -> str:
    text = (str(error).strip().splitlines() or [""])[0]
    if isinstance(error, (VersionError, AttachmentError, ChildError)):
        return text
    return f"a worker failed: {type(error).__name__}: {text}"
