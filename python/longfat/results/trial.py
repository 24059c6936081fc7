"""A trial: a cell and a number, and its record. A cell's key is a hash of what determines its records."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import polars as pl

from longfat.extensions.names import content_hash, file_hash, split
from longfat.results.run import Cell
from longfat.study.combinations import SpecTexts
from longfat.study.relative_files import with_names
from longfat.study.vocabulary import canonical
from longfat.system.flow_table import Column, flow_table


@dataclass(frozen=True)
class Trial:
    """One run of a cell. Cells with equal specifications share their key; `cell` is one of them."""

    cell_key: str
    cell: Cell
    number: int
    seed: int

    @property
    def key(self) -> str:
        """What identifies the trial: the key of its cell and its number."""
        return f"{self.cell_key}-{self.number}"

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


ArrowRecords = tuple[bytes, bytes, float]
"""The tables of trials and flows as Arrow IPC streams, and the duration of the call."""


@dataclass(frozen=True)
class Records:
    """The results of trials of one cell, by columns."""

    trials: pl.DataFrame
    """`trial` and `error`, then a column for each metric, null where a trial has no value."""
    flows: pl.DataFrame = field(default_factory=pl.DataFrame)
    """`trial`, then the columns of its flows."""
    seconds: float = 0.0
    """Duration of the call."""

    @classmethod
    def of(cls, number: int, record: Record) -> Self:
        """Returns the record of a single trial by columns."""
        metrics = {name: [value] for name, value in (record.metrics or {}).items()}
        flows = flow_table(record.flows) if record.flows else pl.DataFrame()
        return cls(trials_frame([number], [record.error], metrics), of_trial(number, flows))

    def __len__(self) -> int:
        return self.trials.height

    @property
    def failed(self) -> int:
        """The number of failed trials."""
        return self.trials.height - self.trials["error"].null_count()

    def to_arrow(self) -> ArrowRecords:
        """Returns the records for another process."""
        return _stream(self.trials), _stream(self.flows), self.seconds

    @classmethod
    def from_arrow(cls, content: ArrowRecords) -> Self:
        """Returns the records of another process."""
        trials, flows, seconds = content
        return cls(pl.read_ipc_stream(trials), pl.read_ipc_stream(flows), seconds)


def together(some: Sequence[Records]) -> Records:
    """Returns the records of several calls as those of one."""
    return Records(
        pl.concat([one.trials for one in some], how="diagonal_relaxed"),
        pl.concat([one.flows for one in some], how="diagonal_relaxed"),
        sum(one.seconds for one in some),
    )


def trials_frame(
    numbers: Sequence[int], errors: Sequence[str | None], metrics: Mapping[str, Any]
) -> pl.DataFrame:
    """Returns the table of trials; NaN in a metric is no value."""
    measured = [pl.Series(name, values, dtype=pl.Float64) for name, values in metrics.items()]
    found = pl.DataFrame(
        [
            pl.Series("trial", numbers, dtype=pl.Int64),
            pl.Series("error", errors, dtype=pl.String),
            *measured,
        ]
    )
    return found.with_columns(pl.col(pl.Float64).fill_nan(None)) if measured else found


def of_trial(number: int, flows: pl.DataFrame) -> pl.DataFrame:
    """Returns the flows of one trial with its number."""
    return flows.select(pl.lit(number, pl.Int64).alias("trial"), pl.all()) if flows.height else flows


def _stream(frame: pl.DataFrame) -> bytes:
    content = io.BytesIO()
    frame.write_ipc_stream(content, compression="lz4")
    return content.getvalue()


class CellKeys:
    """The keys of cells with one seed and version, while files and classes of their specifications stay."""

    def __init__(self, seed: int, version: str) -> None:
        self._seed, self._version = seed, canonical(version)
        self._texts = SpecTexts(_by_content)

    def of(self, cell: Cell) -> str:
        """Returns the hash (BLAKE2b, 128 bit) of specification, world, seed and version, as canonical JSON.

        >>> cell = Cell("sim", "sr", {}, {"path": {"delay": "5ms"}, "protocol": {}, "workload": {}})
        >>> CellKeys(1, "0.1.0").of(cell) == CellKeys(1, "0.1.0").of(cell)
        True
        >>> CellKeys(1, "0.1.0").of(cell) == CellKeys(2, "0.1.0").of(cell)
        False
        """
        spec, world = self._texts.of(cell.spec), canonical(cell.world)
        content = f'{{"seed":{self._seed},"spec":{spec},"version":{self._version},"world":{world}}}'
        return hashlib.blake2b(content.encode(), digest_size=16).hexdigest()


def cell_key(cell: Cell, seed: int, version: str) -> str:
    """Returns the key of one cell (`CellKeys`)."""
    return CellKeys(seed, version).of(cell)


def _by_content(spec: Any) -> Any:
    """Returns a part with files (traces, sources of controllers) replaced by their hashes."""
    return with_names(spec, file_hash, lambda name: {"class": split(name)[1], "source": content_hash(name)})
