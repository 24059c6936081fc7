"""A trial: a cell and a number. Its key is a hash of everything that determines its record."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from longfat.flow_table import Column, Numbers, height
from longfat.named_classes import content_hash, file_hash, split
from longfat.results import Cell
from longfat.study.relative_files import with_names
from longfat.study.vocabulary import canonical


@dataclass(frozen=True)
class Trial:
    """One run of a cell. Cells with equal specifications share keys; `cell` is one of them."""

    key: str
    cell: Cell
    number: int
    seed: int

    @property
    def spec(self) -> dict[str, Any]:
        """The specification for the native part."""
        return {**self.cell.spec, "seed": self.seed, "trial": self.number}

    @property
    def spec_json(self) -> str:
        """`spec` as JSON text."""
        return canonical(self.spec)

    @property
    def place(self) -> str:
        """The protocol and the point of the sweep, for messages."""
        point = ", ".join(f"{key} = {value}" for key, value in self.cell.params.items())
        return f"{self.cell.protocol}{f' ({point})' if point else ''}"


@dataclass(frozen=True)
class Record:
    """The result of a trial: `metrics` and columns of its flows, or the `error` of a failed trial."""

    metrics: dict[str, float] | None
    error: str | None = None
    flows: Sequence[Column] = ()


@dataclass(frozen=True)
class Records:
    """The results of trials of one cell, by columns."""

    errors: Sequence[str | None]
    """The reason of a failure, for each trial."""
    metrics: Mapping[str, Numbers]
    """A value for each trial, NaN for none."""
    heights: Numbers
    """The number of flows of each trial."""
    flows: Sequence[Column]
    """The columns of all flows, trial by trial."""
    seconds: float = 0.0
    """Duration of the call."""

    @classmethod
    def of(cls, record: Record) -> Records:
        """Returns a single record by columns."""
        metrics = {name: np.array([value]) for name, value in (record.metrics or {}).items()}
        return cls([record.error], metrics, np.array([height(record.flows)], np.uint32), record.flows)


def trial_key(cell: Cell, seed: int, number: int, version: str) -> str:
    """Returns the hash (BLAKE2b, 128 bit) of specification, world, seed, number and version.

    >>> cell = Cell("sim", "sr", {}, {"path": {"delay": "5ms"}, "protocol": {}, "workload": {}})
    >>> trial_key(cell, 1, 0, "0.1.0") == trial_key(cell, 1, 0, "0.1.0")
    True
    >>> trial_key(cell, 1, 0, "0.1.0") == trial_key(cell, 1, 1, "0.1.0")
    False
    """
    return CellKeys.of(cell, seed, version).key(number)


@dataclass(frozen=True)
class CellKeys:
    """Makes the keys of a cell's trials. The text before a trial's number is hashed once."""

    before: Any
    after: str

    @classmethod
    def of(cls, cell: Cell, seed: int, version: str) -> CellKeys:
        """Returns the keys of the trials that derive their seeds from `seed`."""
        # The canonical JSON of {seed, spec, trial, version, world}, split at the trial's number.
        before = canonical({"seed": seed, "spec": _by_content(cell.spec)}).removesuffix("}")
        after = canonical({"version": version, "world": cell.world}).removeprefix("{")
        return cls(hashlib.blake2b(f'{before},"trial":'.encode(), digest_size=16), f",{after}")

    def key(self, number: int) -> str:
        """Returns the key of a trial in hexadecimal."""
        return self._digest(number).hex()

    def digests(self, count: int) -> np.ndarray[tuple[int], np.dtype[np.bytes_]]:
        """Returns the first `count` keys, 16 bytes each."""
        return np.frombuffer(b"".join(map(self._digest, range(count))), "S16")

    def _digest(self, number: int) -> bytes:
        made = self.before.copy()
        made.update(f"{number}{self.after}".encode())
        found: bytes = made.digest()
        return found


def _by_content(spec: dict[str, Any]) -> Any:
    """Returns a specification with files (traces, sources of controllers) replaced by their hashes."""
    return with_names(spec, file_hash, lambda name: {"class": split(name)[1], "source": content_hash(name)})


def trial_keys(cells: Sequence[Cell], counts: Sequence[int], seed: int, version: str) -> list[list[str]]:
    """Returns the keys of each cell's trials, in the order of their numbers."""
    found = []
    for cell, count in zip(cells, counts, strict=True):
        of_cell = CellKeys.of(cell, seed, version)
        found.append([of_cell.key(number) for number in range(count)])
    return found
