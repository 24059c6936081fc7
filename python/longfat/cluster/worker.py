"""What runs in a worker: the batches of trials, and an answer about the machine."""

from __future__ import annotations

import os
import pickle
import platform
from pathlib import Path

from longfat import _native
from longfat.cluster.attachments import Contents, missing
from longfat.cluster.batch import Batch
from longfat.cluster.single import run_singly
from longfat.results.trial import ArrowRecords

FOLDER = "longfat"
"""The folder of traces and sources in a worker's own folder."""


class VersionError(RuntimeError):
    """A worker has another version of longfat than the client: its records would differ."""


class NeedsContents:
    """The answer of a worker that lacks traces or classes: the client sends the batch again with them."""


def about() -> dict[str, object]:
    """Returns version, host, machine, Python and processor count of this worker."""
    return {
        "longfat": _native.version(),
        "host": platform.node(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "process": os.getpid(),
    }


def run_batch(version: str, pickled: bytes, contents: Contents, singly: bool) -> ArrowRecords | NeedsContents:
    """Runs a pickled batch and returns its records; with `singly` each trial runs in a child process.

    Raises VersionError in a worker of another version, AttachmentError if a module differs.
    """
    if version != _native.version():
        raise VersionError(
            f"the worker at {platform.node()} has longfat {_native.version()}, the client {version}"
        )
    from distributed import get_worker

    batch: Batch = pickle.loads(pickled)  # noqa: S301 - from the client, as the task itself
    worker = get_worker()
    folder = Path(worker.local_directory, FOLDER)
    if missing(batch.attachments, contents, folder):
        return NeedsContents()
    if singly:
        found = run_singly(batch, contents, folder, worker.memory_manager.memory_limit)
    else:
        found = batch.localised(contents, folder).run()
    return found.to_arrow()
