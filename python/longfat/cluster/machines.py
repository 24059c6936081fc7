"""The machines of a run, as the command line and `lf.run` name them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from longfat.cluster.connection import Connection, Target, environment
from longfat.cluster.executor import ClusterExecutor
from longfat.runner.runner import Machines, ThisMachine
from longfat.system.parameters import ParameterError
from longfat.worlds.executor import Executor

EXECUTORS = ("local", "dask")
"""Where trials can run."""


class Cluster:
    """A connected cluster."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def executor_of(self, world: str) -> Executor:
        """Returns the executor of a world, which refuses trials in wall time."""
        return ClusterExecutor(self._connection, world)

    def description(self) -> dict[str, Any]:
        """Returns number, versions and hosts of the workers before the first trial."""
        return {"cluster": environment(self._connection.workers)}


@contextlib.contextmanager
def open_machines(
    executor: str | None,
    target: Target,
    jobs: int | None,
    note: Callable[[str], None] = lambda _: None,
) -> Iterator[Machines]:
    """Yields this machine, or a cluster for as long as the block lasts.

    `executor` None means "dask" if `target` names a scheduler. `jobs` limits this machine or the workers of a
    local cluster. Raises ParameterError for an unknown executor, ClusterError without scheduler or workers.
    """
    if executor not in (None, *EXECUTORS):
        raise ParameterError("executor", f'"{executor}" is unknown; allowed: {", ".join(EXECUTORS)}')
    if executor == "local" and not target.is_local:
        raise ParameterError("executor", "local trials need no scheduler")
    if (executor or ("local" if target.is_local else "dask")) == "local":
        yield ThisMachine(jobs)
        return
    if jobs is not None and not target.is_local:
        raise ParameterError("jobs", "cannot be set for a scheduler, whose workers decide")
    with Connection(target, jobs, note) as connection:
        yield Cluster(connection)
