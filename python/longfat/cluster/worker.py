"""What runs in a worker: the batches of trials, and an answer about the machine."""

from __future__ import annotations

import os
import pickle
import platform
import threading
from collections.abc import Sequence
from typing import Any

from longfat import _native
from longfat.runner.executor import executor_of
from longfat.runner.trial import Records, Trial

_executors: dict[str, Any] = {}
_guard = threading.Lock()


class VersionError(RuntimeError):
    """A worker has another version of longfat than the client: its records would differ."""


def about() -> dict[str, Any]:
    """Returns version, host, machine, Python and processor count of this worker."""
    return {
        "longfat": _native.version(),
        "host": platform.node(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "process": os.getpid(),
    }


def run_batch(version: str, pickled: bytes) -> Records:
    """Runs pickled trials of one cell and returns their records.

    Raises VersionError in a worker of another version.
    """
    if version != _native.version():
        raise VersionError(
            f"the worker at {platform.node()} has longfat {_native.version()}, the client {version}"
        )
    trials: Sequence[Trial] = pickle.loads(pickled)  # noqa: S301 - from the client, as the task itself
    found: Records = _executor(trials[0].cell.world).run_all(trials)
    return found


def _executor(world: str) -> Any:
    """Returns the executor of a world, made once for each process. Its pool of threads is not used."""
    with _guard:
        if world not in _executors:
            _executors[world] = executor_of(world, 1)
        return _executors[world]
