"""A trial: a cell and a number, and its record. A cell's key is a hash of what determines its records."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import polars as pl

from longfat.extensions.names import content_hash, file_hash, split
from longfat.results.run import Cell
from longfat.study.combinations import Cells, Points, SpecTexts
from longfat.study.relative_files import with_names
from longfat.study.section_texts import SectionTexts
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


KEY_BYTES = 16
"""The length of a cell's key, which is written in hexadecimal digits."""
Digests = np.ndarray[tuple[int, int], np.dtype[np.uint8]]
"""Keys of cells, a row each."""


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
        start, end = self._frame(cell.world)
        return _digest(f"{start}{self._texts.of(cell.spec)}{end}".encode()).hex()

    def of_all(self, cells: Sequence[Cell]) -> Digests:
        """Returns the hashes of all cells, 16 bytes each, without making the cells of a study."""
        if not isinstance(cells, Cells):
            listed = b"".join(bytes.fromhex(self.of(cell)) for cell in cells)
            return np.frombuffer(listed, np.uint8).reshape(-1, KEY_BYTES)
        found = np.empty((len(cells), KEY_BYTES), np.uint8)
        for world, points, places in cells.blocks():
            listed = b"".join(self._of_points(points, world))
            of_points = np.frombuffer(listed, np.uint8).reshape(-1, KEY_BYTES)
            for some, numbers in places:
                own = slice(numbers.start, numbers.stop, numbers.step)
                found[own] = of_points[some.start : some.stop]
        return found

    def texts_of_all(self, cells: Sequence[Cell]) -> list[str]:
        """Returns the hashes of all cells as text."""
        text, length = self.of_all(cells).tobytes().hex(), 2 * KEY_BYTES
        return [text[start : start + length] for start in range(0, len(text), length)]

    def _of_points(self, points: Points, world: str) -> Iterator[bytes]:
        """Yields the hashes of up to `KEPT` points at a time."""
        start, end = self._frame(world)
        for chunk in SectionTexts(points, _by_content).chunks():
            names = sorted(chunk)
            columns = []
            for name in names:
                before = f'{start}{{"{name}":' if name == names[0] else f',"{name}":'
                after = f"}}{end}" if name == names[-1] else ""
                numbers, texts = chunk[name]
                whole = {number: f"{before}{text}{after}".encode() for number, text in texts.items()}
                columns.append([whole[number] for number in numbers])
            yield b"".join([_digest(b"".join(parts)) for parts in zip(*columns, strict=True)])

    def _frame(self, world: str) -> tuple[str, str]:
        """Returns what precedes and follows the specification in the hashed text."""
        return f'{{"seed":{self._seed},"spec":', f',"version":{self._version},"world":{canonical(world)}}}'


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=KEY_BYTES).digest()


def cell_key(cell: Cell, seed: int, version: str) -> str:
    """Returns the key of one cell (`CellKeys`)."""
    return CellKeys(seed, version).of(cell)


def _by_content(spec: Any, key: str = "") -> Any:
    """Returns the value of a key with files (traces, sources of controllers) replaced by their hashes."""
    return with_names(
        spec, file_hash, lambda name: {"class": split(name)[1], "source": content_hash(name)}, key
    )
