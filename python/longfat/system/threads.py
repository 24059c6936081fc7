"""A pool of daemon threads.

The interpreter waits at its exit for the threads of `concurrent.futures`. A thread in a Python class that
does not return would hold up the exit, so the interpreter does not wait for these.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

_Argument = TypeVar("_Argument")
_Result = TypeVar("_Result")
_Task = tuple[Future[Any], Callable[[Any], Any], Any]


class DaemonPool:
    """Runs calls in up to `size` daemon threads, in the order of their submission."""

    def __init__(self, size: int, name: str) -> None:
        self._size, self._name = size, name
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._closed = False

    def submit(self, call: Callable[[_Argument], _Result], argument: _Argument) -> Future[_Result]:
        """Queues a call and returns the future of its result. Raises RuntimeError after `close`."""
        if self._closed:
            raise RuntimeError("the pool is closed")
        future: Future[_Result] = Future()
        self._tasks.put((future, call, argument))
        if len(self._threads) < self._size:
            name = f"{self._name}-{len(self._threads)}"
            thread = threading.Thread(target=self._work, name=name, daemon=True)
            self._threads.append(thread)
            thread.start()
        return future

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            future, call, argument = task
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(call(argument))
            except BaseException as error:  # noqa: BLE001 - the caller of `result` handles it
                future.set_exception(error)

    def close(self, timeout: float | None = None) -> bool:
        """Cancels waiting calls and waits for the running ones, up to `timeout` s.

        Returns whether all threads have ended.
        """
        self._closed = True
        while True:
            try:
                task = self._tasks.get_nowait()
            except queue.Empty:
                break
            if task is not None:
                task[0].cancel()
        for _ in self._threads:
            self._tasks.put(None)
        end = None if timeout is None else time.monotonic() + timeout
        for thread in self._threads:
            thread.join(None if end is None else max(0.0, end - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)
