"""A trial: one cell, one number. Its key is a hash of all that its record depends on."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longfat.results import Cell
from longfat.study.loading import TRACE
from longfat.study.vocabulary import canonical


@dataclass(frozen=True)
class Trial:
    """What an executor runs. `cell` is one of the cells that share this key (equal specifications do)."""

    key: str
    cell: Cell
    number: int
    seed: int

    @property
    def spec(self) -> dict[str, Any]:
        """The specification that the native part runs."""
        return {**self.cell.spec, "seed": self.seed, "trial": self.number}

    @property
    def spec_json(self) -> str:
        """`spec` as JSON text."""
        return canonical(self.spec)


@dataclass(frozen=True)
class Record:
    """What one trial measured: `metrics`, a row a flow; or the `error` by which it failed."""

    metrics: dict[str, float] | None
    error: str | None = None
    flows: Sequence[Mapping[str, Any]] = ()


def trial_key(cell: Cell, seed: int, number: int, version: str) -> str:
    """Hash (BLAKE2b, 128 bit) of specification, world, seed, trial and version: equal keys, equal records.

    >>> cell = Cell("sim", "sr", {}, {"path": {"delay": "5ms"}, "protocol": {}, "workload": {}})
    >>> trial_key(cell, 1, 0, "0.1.0") == trial_key(cell, 1, 0, "0.1.0")
    True
    >>> trial_key(cell, 1, 0, "0.1.0") == trial_key(cell, 1, 1, "0.1.0")
    False
    """
    content = {
        "spec": _by_content(cell.spec),
        "world": cell.world,
        "seed": seed,
        "trial": number,
        "version": version,
    }
    return hashlib.blake2b(canonical(content).encode(), digest_size=16).hexdigest()


def _by_content(spec: Any) -> Any:
    """A specification with each file that it names (a recorded rate) replaced by a hash of what is in it."""
    if isinstance(spec, list):
        return [_by_content(entry) for entry in spec]
    if not isinstance(spec, dict):
        return spec
    return {
        key: _file_hash(value) if key == TRACE and isinstance(value, str) else _by_content(value)
        for key, value in spec.items()
    }


def _file_hash(name: str) -> str:
    status = Path(name).stat()
    return _hash_of(name, status.st_mtime_ns, status.st_size)


@functools.lru_cache(maxsize=1024)
def _hash_of(name: str, _modified: int, _size: int) -> str:
    return hashlib.blake2b(Path(name).read_bytes(), digest_size=16).hexdigest()


def plan(
    cells: Sequence[Cell], counts: Sequence[int], seed: int, version: str
) -> Iterable[tuple[int, Trial]]:
    """(index of the cell, trial) of every trial, the first of all cells before the second of any.

    Interrupted halfway, a run has then seen every cell about equally often.
    """
    for number in range(max(counts, default=0)):
        for index, cell in enumerate(cells):
            if number < counts[index]:
                yield index, Trial(trial_key(cell, seed, number, version), cell, number, seed)
