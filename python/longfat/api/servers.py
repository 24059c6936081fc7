"""A loop of the native part in a thread of this process."""

from __future__ import annotations

import abc
import json
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

_TIMEOUT_S = 60


class Server:
    """Serves one of the native part's loops in a thread, until it ends or is stopped.

    With `wait`, the loop runs in this thread until it ends, or until Ctrl-C. The constructor raises errors.
    """

    def __init__(
        self,
        serve: Callable[[Callable[[str], bool]], str],
        watch: Callable[[dict[str, Any]], object] = bool,
        *,
        wait: bool = False,
    ) -> None:
        self.result = ""
        self.address = ""
        self.error: BaseException | None = None
        self._watch = watch
        self._started = threading.Event()
        self._stopped = threading.Event()
        # Not the end of the thread: after Ctrl-C in `Thread.join`, Python 3.11 regards a thread as ended.
        self._ended = threading.Event()
        if wait:
            self._run(serve)
        else:
            threading.Thread(target=self._run, args=(serve,), daemon=True).start()
        if not self._started.wait(_TIMEOUT_S):
            raise TimeoutError(f"not started after {_TIMEOUT_S} s")
        if not (self.address and self.is_interrupted):
            self._check()

    def _run(self, serve: Callable[[Callable[[str], bool]], str]) -> None:
        try:
            self.result = serve(self._handle)
        except BaseException as error:  # noqa: BLE001 - it is raised again in the thread that waits
            self.error = error
        finally:
            self._ended.set()
            self._started.set()

    def _handle(self, text: str) -> bool:
        event = json.loads(text)
        self._watch(event)
        if "listening" in event or event.get("event") == "listening":
            self.address = event.get("listening") or event["address"]
            self._started.set()
        return not self._stopped.is_set()

    @property
    def is_interrupted(self) -> bool:
        """Whether Ctrl-C stopped the loop."""
        return isinstance(self.error, KeyboardInterrupt)

    def stop(self) -> None:
        """Stops the loop and waits for its end."""
        self._stopped.set()
        self._ended.wait(_TIMEOUT_S)

    def wait(self, timeout: float | None = None) -> None:
        """Waits for the end of the loop. Raises the loop's error, and TimeoutError after `timeout` s."""
        if not self._ended.wait(timeout):
            raise TimeoutError(f"not finished after {timeout} s")
        self._check()

    def _check(self) -> None:
        if self.error is not None:
            raise self.error

    @property
    def is_running(self) -> bool:
        """Whether the loop runs."""
        return not self._ended.is_set()


class Stoppable(abc.ABC):
    """A server that the end of a `with` block stops."""

    @abc.abstractmethod
    def stop(self) -> object:
        """Stops the server."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
