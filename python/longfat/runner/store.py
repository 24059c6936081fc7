"""The records of a run: Parquet parts, each written whole and renamed into place.

    runs/arq/loss/
        run.json             whose records these are, and where they were measured
        study.toml           the study as run
        records/part-00001.parquet ...
        records/flows-00001.parquet ...    a row for each flow of the trials in the part of the same number
        report.html

A record is found by its trial's key alone, so a part is never changed once it is there: killed at any moment,
a run leaves whole parts, and at most one temporary file that the next run removes. The flows of a part are
written before it, so that no record is without them.
"""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from longfat.files import TEMPORARY, remove_temporaries, write_whole
from longfat.flow_table import Column, flow_table, height
from longfat.runner import lock
from longfat.runner.trial import Record, Trial
from longfat.study import Study

RUN_FILE = "run.json"
STUDY_FILE = "study.toml"
RECORDS = "records"
REPORT_FILE = "report.html"

_COLUMNS = {
    "key": pl.String,
    "version": pl.String,
    "world": pl.String,
    "protocol": pl.String,
    "params": pl.String,
    "trial": pl.Int64,
    "seed": pl.Int64,
    "error": pl.String,
}


class FolderError(ValueError):
    """A folder that holds something else than this study's records; its text is one line."""


class Store:
    """One run's folder, locked while it is open. Use `open_store`."""

    def __init__(self, folder: Path, version: str) -> None:
        self.folder = folder
        self.version = version
        self._records = folder / RECORDS
        self._buffer: list[tuple[Trial, Record]] = []
        self._started = self._flushed = time.monotonic()
        self._next = 1 + max((_part_number(part) for part in parts(folder)), default=0)
        self.keys: set[str] = {key for part in parts(folder) for key in _whole(part, ["key"])["key"]}

    def describe(self, study: Study, environment: dict[str, Any], *, quick: bool) -> None:
        """Writes what the folder is: first of all, so that a later run knows it."""
        about = {
            "longfat": self.version,
            "study": study.name,
            "quick": quick,
            "cuts": study.cuts,
            "environment": environment,
        }
        write_whole(self.folder / RUN_FILE, (json.dumps(about, indent=2, ensure_ascii=False) + "\n").encode())
        write_whole(self.folder / STUDY_FILE, study.text.encode())
        self._records.mkdir(exist_ok=True)

    def add(self, trial: Trial, record: Record) -> None:
        """Keeps a record; it is on disk after the next `flush`."""
        if trial.key not in self.keys:
            self.keys.add(trial.key)
            self._buffer.append((trial, record))

    def flush_if_due(self) -> None:
        """Flushes now and then: a kill costs a quarter second or a fiftieth of the run; parts stay few."""
        now = time.monotonic()
        if self._buffer and now - self._flushed >= max(0.25, (now - self._started) / 50):
            self.flush()

    def flush(self) -> None:
        """Writes what was added since the last time as one part. Raises OSError, losing nothing on disk."""
        if not self._buffer:
            return
        told = [(trial.key, record.flows) for trial, record in self._buffer if record.flows]
        flows = f"flows-{self._next:05}"
        if told:
            self._write(flows, _flows(told))
        try:
            self._write(f"part-{self._next:05}", _frame(self._buffer, self.version))
        except OSError:
            # On a full disk, flows without records only take room.
            with contextlib.suppress(OSError):
                self._place(flows).unlink(missing_ok=True)
            raise
        self._next += 1
        self._buffer.clear()
        self._flushed = time.monotonic()

    def _write(self, name: str, frame: pl.DataFrame) -> None:
        content = io.BytesIO()
        frame.write_parquet(content, compression="zstd")
        write_whole(self._place(name), content.getvalue())

    def _place(self, name: str) -> Path:
        return self._records / f"{name}.parquet"


@contextlib.contextmanager
def open_store(folder: Path, study: str, version: str, *, fresh: bool) -> Iterator[Store]:
    """Opens a run's folder, creating it where there is none, and holds its lock.

    Raises FolderError where the folder holds something else than records of this study, FolderBusyError
    where another run uses it, OSError where it cannot be written. A folder that was made for the run and
    holds no record is removed after an error. `fresh` removes the study's own records.
    """
    _refuse_foreign(folder, study)
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with lock.acquire(folder):
            _refuse_foreign(folder, study)
            remove_temporaries(folder)
            if (folder / RECORDS).is_dir():
                remove_temporaries(folder / RECORDS)
            if fresh:
                for stale in [*parts(folder), *parts(folder, "flows"), folder / REPORT_FILE]:
                    stale.unlink(missing_ok=True)
            yield Store(folder, version)
    except (OSError, ValueError):
        if is_new and not parts(folder):
            shutil.rmtree(folder, ignore_errors=True)
        raise


def _refuse_foreign(folder: Path, study: str) -> None:
    if not folder.exists():
        return
    if not folder.is_dir():
        raise FolderError(f"{folder}: is a file: --out names the folder of a run")
    about = folder / RUN_FILE
    if about.is_file():
        owner = describe(folder).get("study")
        if owner != study:
            raise FolderError(
                f'{folder}: holds the records of the study "{owner}", not of "{study}": choose another --out'
            )
        return
    strangers = sorted(entry.name for entry in folder.iterdir() if not _ours(entry))
    if strangers:
        raise FolderError(
            f'{folder}: holds "{strangers[0]}" and is no run\'s folder: choose a new or empty one with --out'
        )


def _ours(entry: Path) -> bool:
    """What may lie in a folder before its run.json: our lock, our leftovers, other runs' folders."""
    if entry.is_dir():
        return (entry / RUN_FILE).is_file() or all(_ours(inner) for inner in entry.iterdir())
    return entry.name == lock.NAME or (entry.name.startswith(".") and entry.name.endswith(TEMPORARY))


def describe(folder: Path) -> dict[str, Any]:
    """What a run's folder says of itself; FolderError where it is none."""
    about = folder / RUN_FILE
    try:
        content = json.loads(about.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FolderError(f"{folder}: is no run's folder: there is no {RUN_FILE} in it") from None
    except (ValueError, UnicodeDecodeError):
        raise FolderError(f"{about}: cannot be read as JSON: remove the folder to start over") from None
    if not isinstance(content, dict):
        raise FolderError(f"{about}: is not what longfat wrote: remove the folder to start over")
    return content


def parts(folder: Path, kind: str = "part") -> list[Path]:
    """The Parquet parts of a run (`kind` "flows": those of its flows), in the order of their writing."""
    return sorted((folder / RECORDS).glob(f"{kind}-*.parquet"), key=_part_number)


def _part_number(part: Path) -> int:
    number = part.stem.partition("-")[2]
    return int(number) if number.isdigit() else 0


def read(folder: Path) -> pl.DataFrame:
    """All records of a folder, one row a key: the columns of the store, then one Float64 column a metric."""
    frames = [_whole(part) for part in parts(folder)]
    if not frames:
        return pl.DataFrame(schema=_COLUMNS)
    found = pl.concat(frames, how="diagonal_relaxed")
    # Runs that were killed may have left a record twice.
    twice = found["key"].n_unique() < found.height
    return found.unique("key", keep="first", maintain_order=True) if twice else found


def read_flows(
    folder: Path, keys: Iterable[str] | None = None, columns: Sequence[str] | None = None
) -> pl.DataFrame:
    """The flows of the trials of a folder: `key`, then what each trial said of its flows.

    A run may have tens of millions: `keys` names the wanted trials, `columns` what is wanted of them.
    """
    wanted = None if keys is None else pl.Series(list(keys), dtype=pl.String)
    seen = pl.Series([], dtype=pl.String)
    frames = []
    for part in parts(folder, "flows"):
        frame = _whole(part)
        # A trial that was run twice (its first part was not whole) left its flows twice, bit for bit.
        fresh = frame.filter(~pl.col("key").is_in(seen.implode()))
        if wanted is not None:
            fresh = fresh.filter(pl.col("key").is_in(wanted.implode()))
        seen = seen.append(frame["key"].unique())
        if columns is not None:
            fresh = fresh.select("key", *(name for name in columns if name in fresh.columns))
        frames.append(fresh)
    return pl.concat(frames, how="diagonal_relaxed") if frames else pl.DataFrame(schema={"key": pl.String})


def _whole(part: Path, columns: list[str] | None = None) -> pl.DataFrame:
    """The frame of a part, or some of its columns; FolderError where the file is not a part."""
    try:
        # Read into memory first: a mapped file that vanishes or shrinks would end the process.
        frame = pl.read_parquet(io.BytesIO(part.read_bytes()), columns=columns)
    except pl.exceptions.ColumnNotFoundError:
        frame = pl.DataFrame()
    except pl.exceptions.PolarsError:
        raise FolderError(f"{part}: is no whole Parquet file: remove it, and its trials run again") from None
    if "key" not in frame.columns:
        raise FolderError(f"{part}: is not what longfat wrote: remove it, and its trials run again")
    return frame


def _flows(told: list[tuple[str, Sequence[Column]]]) -> pl.DataFrame:
    """The flows of trials under their keys."""
    trials = np.repeat(np.arange(len(told), dtype=np.uint32), [height(columns) for _, columns in told])
    keys = pl.Series("key", [key for key, _ in told], dtype=pl.String).gather(pl.Series(trials))
    flows = flow_table(*(columns for _, columns in told))
    return flows.select(keys, pl.all())


def _frame(records: list[tuple[Trial, Record]], version: str) -> pl.DataFrame:
    rows = [
        {
            "key": trial.key,
            "version": version,
            "world": trial.cell.world,
            "protocol": trial.cell.protocol,
            "params": json.dumps(trial.cell.params, ensure_ascii=False),
            "trial": trial.number,
            "seed": trial.seed,
            "error": record.error,
        }
        for trial, record in records
    ]
    names = list(dict.fromkeys(name for _, record in records for name in record.metrics or {}))
    measured = {
        name: pl.Series([(record.metrics or {}).get(name) for _, record in records], dtype=pl.Float64)
        for name in names
    }
    return pl.DataFrame(rows, schema=_COLUMNS).with_columns(**measured)
