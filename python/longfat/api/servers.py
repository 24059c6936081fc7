"""A loop of the native part in a thread of this process."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable
from typing import Any

_TIMEOUT_S = 60


class Server:
    """A thread that serves one of the native part's loops until it ends or is stopped."""

    def __init__(
        self, serve: Callable[[Callable[[str], bool]], str], watch: Callable[[dict[str, Any]], object] = bool
    ) -> None:
        self.result = ""
        self.error: BaseException | None = None
        self._watch = watch
        self._first: queue.Queue[str | BaseException] = queue.Queue()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(serve,), daemon=True)
        self._thread.start()
        first = self._first.get(timeout=_TIMEOUT_S)
        if isinstance(first, BaseException):
            raise first
        self.address = first

    def _run(self, serve: Callable[[Callable[[str], bool]], str]) -> None:
        try:
            self.result = serve(self._handle)
        except BaseException as error:  # noqa: BLE001 - it is raised again in the thread that waits
            self.error = error
            self._first.put(error)

    def _handle(self, text: str) -> bool:
        event = json.loads(text)
        self._watch(event)
        if "listening" in event:
            self._first.put(event["listening"])
        elif event.get("event") == "listening":
            self._first.put(event["address"])
        return not self._stopped.is_set()

    def stop(self) -> None:
        """Ends the loop and waits for the thread."""
        self._stopped.set()
        self._thread.join(_TIMEOUT_S)

    def wait(self, timeout: float | None = None) -> None:
        """Waits for the end of the loop. Raises the loop's error, and TimeoutError after `timeout` s."""
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise TimeoutError(f"not finished after {timeout} s")
        if self.error is not None:
            raise self.error

    @property
    def is_running(self) -> bool:
        """Whether the loop runs."""
        return self._thread.is_alive()
