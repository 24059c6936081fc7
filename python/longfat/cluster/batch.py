"""Trials of one cell on their way to a worker."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import polars as pl

from longfat.cluster.attachments import Attachment, Contents, attachments_of, localised
from longfat.results.run import Cell
from longfat.results.trial import Records, Trial
from longfat.store.planning import CellTrials, Numbers
from longfat.worlds.executor import executor_of


@dataclass(frozen=True)
class Batch:
    """The numbers of trials of one cell, and what its specification names."""

    cell: Cell
    seed: int
    numbers: Numbers
    attachments: tuple[Attachment, ...]

    @classmethod
    def of(cls, trials: CellTrials) -> Self:
        """Returns the batch of some trials of one cell. Raises OSError for an unreadable file."""
        return cls(trials.cell, trials.seed, trials.numbers, attachments_of(trials.cell.spec))

    def after(self, count: int) -> Batch:
        """Returns the batch without its first trials."""
        return dataclasses.replace(self, numbers=self.numbers[count:])

    def localised(self, contents: Contents, folder: Path) -> LocalBatch:
        """Returns the batch for this process. Raises AttachmentError if a module differs."""
        spec, names = localised(self.cell.spec, self.attachments, contents, folder)
        return LocalBatch(dataclasses.replace(self.cell, spec=spec), self.seed, self.numbers, names)


@dataclass(frozen=True)
class LocalBatch:
    """A batch whose specification names files of this machine; `names` are local and original ones."""

    cell: Cell
    seed: int
    numbers: Numbers
    names: Mapping[str, str]

    def run(self) -> Records:
        """Returns the records of all trials, with original names in errors."""
        return self._run(self.numbers)

    def run_one(self, place: int) -> Records:
        """Returns the record of the trial at a place."""
        return self._run(self.numbers[place : place + 1])

    def _run(self, numbers: Numbers) -> Records:
        found = _EXECUTORS.run_all(CellTrials([self.cell], 0, self.seed, "", numbers))
        error = pl.col("error")
        for here, there in self.names.items():
            error = error.str.replace_all(here, there, literal=True)
        return dataclasses.replace(found, trials=found.trials.with_columns(error))


class _Executors:
    """The executors of this process, one for each world. Their pools of threads are not used."""

    def __init__(self) -> None:
        self._of_world: dict[str, Any] = {}
        self._guard = threading.Lock()

    def run_all(self, trials: Sequence[Trial]) -> Records:
        """Runs trials of one cell in the calling thread."""
        world = trials[0].cell.world
        with self._guard:
            if world not in self._of_world:
                self._of_world[world] = executor_of(world, 1)
        found: Records = self._of_world[world].run_all(trials)
        return found


_EXECUTORS = _Executors()
