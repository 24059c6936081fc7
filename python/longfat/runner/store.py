"""The records of a run: Parquet parts, each written whole and renamed into place.

    runs/arq/loss/
        run.json             the study's name and the environment
        study.toml           the study as run
        records/part-00001.parquet ...
        records/flows-00001.parquet ...    a row for each flow of the trials in the part of the same number
        aside/KEY.json       the specification of a trial that killed its workers
        report.html

Trials have unique keys, so a part never changes after it is written: a run that is killed leaves complete
parts and at most one temporary file, which the next run removes. The flows of a part are written before it,
so that no record lacks them.
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
from longfat.flow_table import flow_table
from longfat.runner import lock
from longfat.runner.planning import KeySet
from longfat.runner.trial import Records, Trial
from longfat.study import Study

RUN_FILE = "run.json"
STUDY_FILE = "study.toml"
RECORDS = "records"
ASIDE = "aside"
"""The folder of specifications of trials that killed their workers."""
REPORT_FILE = "report.html"
INDEX_FILE = "index.html"
"""The index of the runs in the folders below."""

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
    """A folder with other contents than this study's records. The text is one line."""


class Store:
    """One run's folder, locked while it is open. Use `open_store`."""

    def __init__(self, folder: Path, version: str) -> None:
        self.folder = folder
        self.version = version
        self._records = folder / RECORDS
        self._buffer: list[tuple[Sequence[Trial], Records]] = []
        self._started = self._flushed = time.monotonic()
        self._next = 1 + max((_part_number(part) for part in parts(folder)), default=0)
        self.keys = KeySet()
        for part in parts(folder):
            self.keys.add(_whole(part, ["key"])["key"])

    def describe(self, study: Study, environment: dict[str, Any], *, quick: bool) -> None:
        """Writes the description of the run, before its first record."""
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

    def add(self, trials: Sequence[Trial], records: Records) -> None:
        """Adds the records of trials of one cell, which the next `flush` writes."""
        self.keys.add(trial.key for trial in trials)
        self._buffer.append((trials, records))

    def set_aside(self, trial: Trial) -> None:
        """Keeps the specification of a trial that killed its workers, as JSON."""
        folder = self.folder / ASIDE
        folder.mkdir(exist_ok=True)
        about = {"key": trial.key, "world": trial.cell.world, "spec": trial.spec}
        write_whole(folder / f"{trial.key}.json", (json.dumps(about, indent=2) + "\n").encode())

    def flush_if_due(self) -> None:
        """Flushes every 0.25 s, or every 2 % of a long run, which keeps the number of parts small."""
        now = time.monotonic()
        if self._buffer and now - self._flushed >= max(0.25, (now - self._started) / 50):
            self.flush()

    def flush(self) -> None:
        """Writes the added records as one part. Raises OSError; earlier parts stay intact."""
        if not self._buffer:
            return
        with_flows = [(trials, records) for trials, records in self._buffer if records.flows]
        flows = f"flows-{self._next:05}"
        if with_flows:
            self._write(flows, _flows(with_flows))
        try:
            self._write(f"part-{self._next:05}", _frame(self._buffer, self.version))
        except OSError:
            # On a full disk, remove flows without records.
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
    """Opens a run's folder, or creates it, and locks it.

    Raises FolderError if the folder has other contents than this study's records, FolderBusyError if another
    run uses it, OSError if it is not writable. After an error, a new folder without records is removed.
    `fresh` removes the study's records.
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
                old = [*parts(folder), *parts(folder, "flows"), *set_aside_in(folder), folder / REPORT_FILE]
                for stale in old:
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
        raise FolderError(f"{folder}: is a file: --out must be a folder")
    about = folder / RUN_FILE
    if about.is_file():
        owner = describe(folder).get("study")
        if owner != study:
            raise FolderError(
                f'{folder}: has records of the study "{owner}", not of "{study}": choose another --out'
            )
        return
    strangers = sorted(entry.name for entry in folder.iterdir() if not _ours(entry))
    if strangers:
        raise FolderError(
            f'{folder}: has "{strangers[0]}" and is not the folder of a run: choose an empty one with --out'
        )


def _ours(entry: Path) -> bool:
    """Returns whether an entry may precede run.json: the lock, the index, temporary files, other runs."""
    if entry.is_dir():
        return (entry / RUN_FILE).is_file() or all(_ours(inner) for inner in entry.iterdir())
    return entry.name in (lock.NAME, INDEX_FILE) or (
        entry.name.startswith(".") and entry.name.endswith(TEMPORARY)
    )


def describe(folder: Path) -> dict[str, Any]:
    """Returns the description of a run's folder. Raises FolderError for any other folder."""
    about = folder / RUN_FILE
    try:
        content = json.loads(about.read_text(encoding="utf-8"))
    except NotADirectoryError:
        raise FolderError(f"{folder}: is a file: give the folder of a run, or the name of a study") from None
    except FileNotFoundError:
        quick = folder.with_name(f"{folder.name}-quick")
        hint = f": did you mean {quick}?" if (quick / RUN_FILE).is_file() else ""
        raise FolderError(f"{folder}: is not the folder of a run: it has no {RUN_FILE}{hint}") from None
    except (ValueError, UnicodeDecodeError):
        raise FolderError(f"{about}: cannot be read as JSON: remove the folder to start over") from None
    if not isinstance(content, dict):
        raise FolderError(f"{about}: was not written by longfat: remove the folder to start over")
    return content


def parts(folder: Path, kind: str = "part") -> list[Path]:
    """Returns the Parquet parts of a run in order; `kind` is "part" for records or "flows"."""
    return sorted((folder / RECORDS).glob(f"{kind}-*.parquet"), key=_part_number)


def set_aside_in(folder: Path) -> list[Path]:
    """Returns the files of trials that killed their workers."""
    return sorted((folder / ASIDE).glob("*.json"))


def _part_number(part: Path) -> int:
    number = part.stem.partition("-")[2]
    return int(number) if number.isdigit() else 0


def read(folder: Path) -> pl.DataFrame:
    """Returns all records of a folder, one row for each key: the store's columns, then the metrics."""
    frames = [_whole(part) for part in parts(folder)]
    if not frames:
        return pl.DataFrame(schema=_COLUMNS)
    found = pl.concat(frames, how="diagonal_relaxed")
    # Killed runs may leave duplicate records.
    twice = found["key"].n_unique() < found.height
    return found.unique("key", keep="first", maintain_order=True) if twice else found


def read_flows(
    folder: Path, keys: Iterable[str] | None = None, columns: Sequence[str] | None = None
) -> pl.DataFrame:
    """Returns the flows of a folder's trials: `key`, then the columns of the flows.

    A run may have tens of millions of flows: `keys` and `columns` select some of them.
    """
    wanted = None if keys is None else pl.Series(list(keys), dtype=pl.String)
    seen = pl.Series([], dtype=pl.String)
    frames = []
    for part in parts(folder, "flows"):
        frame = _whole(part)
        # A trial that ran twice (its first part was incomplete) left its flows twice, bit for bit.
        fresh = frame.filter(~pl.col("key").is_in(seen.implode()))
        if wanted is not None:
            fresh = fresh.filter(pl.col("key").is_in(wanted.implode()))
        seen = seen.append(frame["key"].unique())
        if columns is not None:
            fresh = fresh.select("key", *(name for name in columns if name in fresh.columns))
        frames.append(fresh)
    return pl.concat(frames, how="diagonal_relaxed") if frames else pl.DataFrame(schema={"key": pl.String})


def _whole(part: Path, columns: list[str] | None = None) -> pl.DataFrame:
    """Returns a part, or some of its columns. Raises FolderError if the file is not a part."""
    try:
        # Read into memory first: a mapped file that vanishes or shrinks would kill the process.
        frame = pl.read_parquet(io.BytesIO(part.read_bytes()), columns=columns)
    except pl.exceptions.ColumnNotFoundError:
        frame = pl.DataFrame()
    except pl.exceptions.PolarsError:
        raise FolderError(
            f"{part}: is not a complete Parquet file: remove it to run its trials again"
        ) from None
    if "key" not in frame.columns:
        raise FolderError(f"{part}: was not written by longfat: remove it to run its trials again")
    return frame


def _flows(added: Sequence[tuple[Sequence[Trial], Records]]) -> pl.DataFrame:
    """Returns the flows of trials with their keys."""
    heights = np.concatenate([records.heights for _, records in added])
    rows = np.repeat(np.arange(len(heights), dtype=np.uint32), heights)
    keys = pl.Series("key", _keys(added), dtype=pl.String).gather(pl.Series(rows))
    flows = flow_table(*(records.flows for _, records in added))
    return flows.select(keys, pl.all())


def _keys(added: Sequence[tuple[Sequence[Trial], Records]]) -> list[str]:
    return [trial.key for trials, _ in added for trial in trials]


def _frame(added: Sequence[tuple[Sequence[Trial], Records]], version: str) -> pl.DataFrame:
    heights = [len(trials) for trials, _ in added]
    cells = [trials[0].cell for trials, _ in added]

    def repeated(name: str, values: Sequence[str]) -> pl.Series:
        rows = np.repeat(np.arange(len(values), dtype=np.uint32), heights)
        return pl.Series(name, values, dtype=pl.String).gather(pl.Series(rows))

    def measured(name: str) -> pl.Series:
        values = [records.metrics.get(name, np.full(len(trials), np.nan)) for trials, records in added]
        return pl.Series(name, np.concatenate(values), dtype=pl.Float64).fill_nan(None)

    about = {
        "key": _keys(added),
        "version": [version] * sum(heights),
        "world": repeated("world", [cell.world for cell in cells]),
        "protocol": repeated("protocol", [cell.protocol for cell in cells]),
        "params": repeated("params", [json.dumps(cell.params, ensure_ascii=False) for cell in cells]),
        "trial": [trial.number for trials, _ in added for trial in trials],
        "seed": [trial.seed for trials, _ in added for trial in trials],
        "error": [error for _, records in added for error in records.errors],
    }
    names = dict.fromkeys(name for _, records in added for name in records.metrics)
    return pl.DataFrame(about, schema=_COLUMNS).with_columns(measured(name) for name in names)
