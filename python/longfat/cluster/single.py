"""Runs trials one by one in a child process, to find those that kill the process that runs them.

The process is `longfat.cluster.child`.
"""

from __future__ import annotations

import contextlib
import pickle
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from longfat.cluster.attachments import Contents
from longfat.cluster.batch import Batch
from longfat.results.trial import Record, Records, together
from longfat.system.interpreter import python_command
from longfat.worlds.executor import DEATHS, KILLED

READY = "ready"
MEMORY_PART = 0.95
"""The part of a worker's memory limit at which the child is killed, as Dask kills a worker."""
WATCH_S = 0.1
"""Interval in s at which the memory of the child is checked."""


class ChildError(RuntimeError):
    """The child did not start."""


def run_singly(batch: Batch, contents: Contents, folder: Path, memory_limit: float | None = None) -> Records:
    """Returns the records of all trials; a trial that kills its process three times gets an error as record.

    `memory_limit` is in bytes. Raises ChildError if the child process does not start.
    """
    found: list[Records] = []
    deaths = 0
    while len(found) < len(batch.numbers):
        for records in _answers(batch.after(len(found)), contents, folder, memory_limit):
            found.append(records)
            deaths = 0
        if len(found) == len(batch.numbers):
            break
        deaths += 1
        if deaths == DEATHS:
            found.append(killed(int(batch.numbers[len(found)])))
            deaths = 0
    return together(found)


def killed(number: int) -> Records:
    """Returns the record of a trial that killed its workers."""
    return Records.of(number, Record(None, KILLED))


def _answers(batch: Batch, contents: Contents, folder: Path, memory_limit: float | None) -> Iterator[Records]:
    """Yields the records of trials until all are complete or the child dies."""
    with subprocess.Popen(
        python_command("-m", "longfat.cluster.child"), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        watch = threading.Thread(target=_limit_memory, args=(child, memory_limit), daemon=True)
        watch.start()
        try:
            with contextlib.suppress(BrokenPipeError):
                pickle.dump((batch, contents, folder), child.stdin)
                child.stdin.flush()
            if _next(child.stdout) != READY:
                raise ChildError("the process for single trials does not start")
            for _ in batch.numbers:
                answer = _next(child.stdout)
                if isinstance(answer, Exception):
                    raise answer
                if answer is None:
                    return
                yield answer
        finally:
            child.kill()
            with contextlib.suppress(BrokenPipeError):
                child.stdin.close()
            child.wait()
            watch.join()


def _next(stream: IO[bytes]) -> Any:
    """Returns the next object, None after the child's death."""
    try:
        return pickle.load(stream)  # noqa: S301 - from the child
    except (EOFError, pickle.UnpicklingError):
        return None


def _limit_memory(child: subprocess.Popen[bytes], limit: float | None) -> None:
    import psutil

    if not limit:
        return
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(child.pid)
        while child.returncode is None:
            if process.memory_info().rss > MEMORY_PART * limit:
                process.kill()
                return
            time.sleep(WATCH_S)
