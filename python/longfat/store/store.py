"""The records of a run: Parquet parts, each written whole, in a folder or on object storage.

    runs/arq/loss/
        run.json             the study's name and the environment
        study.toml           the study as run
        records/part-00001-3f9a2c.parquet ...
        records/flows-00001-3f9a2c.parquet ...   a row for each flow of the trials in that part
        aside/CELL_KEY-TRIAL.json   the specification of a trial that killed its workers
        shards/3of100        a shard whose trials all have a record
        report.html

A cell's key and a trial's number identify a record, so a part never changes after it is written: a run that
is killed leaves complete parts and at most one temporary file, which the next run removes. The flows of a
part are written before it, so that no record lacks them.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from longfat.results.trial import Records, Trial
from longfat.store import lock, parts
from longfat.store.compaction import compact
from longfat.store.parts import RECORDS, FolderError
from longfat.store.present import Present
from longfat.store.shard import Shard
from longfat.study import Study
from longfat.system.files import TEMPORARY, create_whole, remove_temporaries, write_whole
from longfat.system.remote_path import Location

RUN_FILE = "run.json"
STUDY_FILE = "study.toml"
ASIDE = "aside"
"""The folder of specifications of trials that killed their workers."""
SHARDS = "shards"
"""The folder of the names of shards whose trials all have a record."""
REPORT_FILE = "report.html"
BUFFER = 3 << 20
"""Size in B of records in memory at which they become a part."""
INDEX_FILE = "index.html"
"""The index of the runs in the folders below."""


class Store:
    """One run's folder, locked while it is open unless it is remote. Use `open_store`."""

    def __init__(
        self, folder: Location, version: str, *, shard: Shard | None = None, shared: bool = False
    ) -> None:
        self.folder = folder
        self.version = version
        self._shard = shard
        self._token = secrets.token_hex(3)
        self.writer = self._token if shard is None else f"{shard.tag}.{self._token}"
        self._shared = shared
        self._records = folder / RECORDS
        self._buffer: list[tuple[Trial, Records]] = []
        self._buffered = 0
        self._started = self._flushed = time.monotonic()
        self._flush_duration = 0.0
        self._next = 1 + max((parts.number_of(part) for part in parts.listed(folder)), default=0)

    def present(self) -> Present:
        """Returns the trials with a record; of other shards, it leaves out parts of their own."""
        return Present(parts.frames(self.folder, wanted=parts.IDENTITY.__contains__, shard=self._shard))

    def finish(self, shard: Shard) -> None:
        """Notes that all trials of a shard have a record."""
        (self.folder / SHARDS).mkdir(exist_ok=True)
        create_whole(self.folder / SHARDS / shard.tag, b"complete\n")

    def finished(self, count: int) -> int:
        """Returns how many of `count` shards have noted that."""
        return len(list((self.folder / SHARDS).glob(f"*of{count}")))

    def environment(self) -> dict[str, Any]:
        """Returns the environment of the run so far; empty before its first record."""
        try:
            about = json.loads((self.folder / RUN_FILE).read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return {}
        found = about.get("environment") if isinstance(about, dict) else None
        return found if isinstance(found, dict) else {}

    def describe(self, study: Study, environment: dict[str, Any]) -> None:
        """Writes the description of the run, before its first record.

        In a shared folder the first description stays. Raises FolderError if another writer's differs.
        """
        about = {
            "longfat": self.version,
            "study": study.name,
            "quick": study.is_quick,
            "cuts": study.cuts,
            "environment": environment,
        }
        if count := self._shard_count():
            about["shards"] = count
        self._describe(RUN_FILE, (json.dumps(about, indent=2, ensure_ascii=False) + "\n").encode())
        self._describe(STUDY_FILE, study.text.encode())
        _refuse_foreign(self.folder, study.name)
        if self._shared:
            self._require_equal(study)
        self._records.mkdir(exist_ok=True)

    def _shard_count(self) -> int | None:
        """Returns the number of shards of the run: this one's, or that of earlier ones that left records."""
        if self._shard is not None:
            return self._shard.count
        if not (self.folder / RUN_FILE).is_file() or not parts.listed(self.folder):
            return None
        count = describe(self.folder).get("shards")
        return count if isinstance(count, int) else None

    def _describe(self, name: str, content: bytes) -> None:
        if not create_whole(self.folder / name, content) and not self._shared:
            write_whole(self.folder / name, content)

    def _require_equal(self, study: Study) -> None:
        count = describe(self.folder).get("shards")
        if self._shard is not None and count not in (None, self._shard.count):
            raise FolderError(
                f"{self.folder}: was started with {count} shards, not {self._shard.count}: "
                "give all shards the same count, or choose another --out"
            )
        version = describe(self.folder).get("longfat")
        if version != self.version:
            raise FolderError(
                f"{self.folder}: was started with longfat {version}, not {self.version}: "
                "give all shards the same version"
            )
        if (self.folder / STUDY_FILE).read_bytes() != study.text.encode():
            raise FolderError(
                f"{self.folder / STUDY_FILE}: was started with other settings: "
                "give all shards the same ones, or choose another --out"
            )

    def add(self, first: Trial, records: Records) -> None:
        """Adds the records of trials of one cell, of which `first` is one; the next `flush` writes them."""
        self._buffer.append((first, records))
        self._buffered += int(records.trials.estimated_size() + records.flows.estimated_size())

    def set_aside(self, trial: Trial) -> None:
        """Keeps the specification of a trial that killed its workers, as JSON."""
        folder = self.folder / ASIDE
        folder.mkdir(exist_ok=True)
        about = {"key": trial.key, "world": trial.cell.world, "spec": trial.spec}
        write_whole(folder / f"{trial.key}.json", (json.dumps(about, indent=2) + "\n").encode())

    def flush_if_due(self) -> None:
        """Flushes every 0.25 s, or every 2 % of a long run, but at most `BUFFER` bytes.

        If a flush took more than 1 % of that time, the next one is later, by at most 2 s.
        """
        now = time.monotonic()
        rare = min(2.0, 100 * self._flush_duration)
        is_due = now - self._flushed >= max(0.25, rare, (now - self._started) / 50)
        if self._buffer and (is_due or self._buffered >= BUFFER):
            self.flush()

    def flush(self) -> None:
        """Writes the added records as one part. Raises OSError; earlier parts stay intact."""
        if not self._buffer:
            return
        started = time.monotonic()
        flows = self._place(parts.FLOWS)
        with_flows = [(first, records.flows) for first, records in self._buffer if records.flows.height]
        if with_flows:
            write_whole(flows, parts.encoded(_frame(with_flows, {})))
        try:
            write_whole(self._place(parts.PART), parts.encoded(self._records_frame()))
        except OSError:
            # On a full disk, remove flows without records.
            with contextlib.suppress(OSError):
                flows.unlink(missing_ok=True)
            raise
        self._next += 1
        self._buffer.clear()
        self._buffered = 0
        self._flushed = time.monotonic()
        self._flush_duration = self._flushed - started

    def compact(self, *, own: bool = False) -> None:
        """Replaces many small parts by few large ones, with `own` only those of this writer."""
        writer = self.writer if own else self._token

        def name(kind: str) -> str:
            self._next += 1
            return parts.name_of(kind, self._next - 1, writer)

        # The numbers of other writers may be higher: readers list new parts behind those that they replace.
        numbers = map(parts.number_of, parts.listed(self.folder))
        self._next = max(self._next, 1 + max(numbers, default=0))
        compact(self.folder, name, self.writer if own else "")

    def _records_frame(self) -> pl.DataFrame:
        version = self.version
        return _frame(
            [(first, records.trials) for first, records in self._buffer],
            {
                "version": lambda _: version,
                "world": lambda trial: trial.cell.world,
                "protocol": lambda trial: trial.cell.protocol,
                "params": lambda trial: json.dumps(trial.cell.params, ensure_ascii=False),
                "seed": lambda trial: trial.seed,
            },
        )

    def _place(self, kind: str) -> Location:
        return self._records / parts.name_of(kind, self._next, self.writer)


@contextlib.contextmanager
def open_store(
    folder: Location,
    study: str,
    version: str,
    *,
    fresh: bool,
    shard: Shard | None = None,
    shared: bool = False,
) -> Iterator[Store]:
    """Opens a run's folder, or creates it, and locks it.

    Raises FolderError if the folder has other contents than this study's records, FolderBusyError if another
    run uses it, OSError if it is not writable. After an error, a new folder without records is removed.
    `fresh` removes the study's records. A folder that is shared, or run in shards, has several writers; a
    remote one always may.
    """
    shared = shared or shard is not None
    _refuse_foreign(folder, study)
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with lock.acquire(folder, shared=shared) if isinstance(folder, Path) else contextlib.nullcontext():
            _refuse_foreign(folder, study)
            if isinstance(folder, Path) and not shared:
                remove_temporaries(folder)
                if (folder / RECORDS).is_dir():
                    remove_temporaries(folder / RECORDS)
            if fresh:
                kinds = (parts.PART, parts.FLOWS)
                records = [part for kind in kinds for part in parts.listed(folder, kind)]
                finished: list[Location] = list((folder / SHARDS).glob("*of*"))
                for stale in [*records, *set_aside_in(folder), *finished, folder / REPORT_FILE]:
                    stale.unlink(missing_ok=True)
            yield Store(folder, version, shard=shard, shared=shared)
    except (OSError, ValueError):
        if is_new and isinstance(folder, Path) and not shared and not parts.listed(folder):
            shutil.rmtree(folder, ignore_errors=True)
        raise


def _refuse_foreign(folder: Location, study: str) -> None:
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


def _ours(entry: Location) -> bool:
    """Returns whether an entry may precede run.json: the lock, the index, temporary files, other runs."""
    if entry.is_dir():
        return (entry / RUN_FILE).is_file() or all(_ours(inner) for inner in entry.iterdir())
    return entry.name in (lock.NAME, INDEX_FILE) or (
        entry.name.startswith(".") and entry.name.endswith(TEMPORARY)
    )


def quick_folder(folder: Location) -> Location:
    """Returns the folder of the run with `--quick` beside this one."""
    return folder.parent / f"{folder.name}-quick"


def describe(folder: Location) -> dict[str, Any]:
    """Returns the description of a run's folder. Raises FolderError for any other folder."""
    about = folder / RUN_FILE
    try:
        content = json.loads(about.read_text(encoding="utf-8"))
    except NotADirectoryError:
        raise FolderError(f"{folder}: is a file: give the folder of a run, or the name of a study") from None
    except FileNotFoundError:
        quick = quick_folder(folder)
        hint = f": did you mean {quick}?" if (quick / RUN_FILE).is_file() else ""
        raise FolderError(f"{folder}: is not the folder of a run: it has no {RUN_FILE}{hint}") from None
    except (ValueError, UnicodeDecodeError):
        raise FolderError(f"{about}: cannot be read as JSON: remove the folder to start over") from None
    if not isinstance(content, dict):
        raise FolderError(f"{about}: was not written by longfat: remove the folder to start over")
    return content


def set_aside_in(folder: Location) -> list[Location]:
    """Returns the files of trials that killed their workers."""
    found: list[Location] = list((folder / ASIDE).glob("*.json"))
    return sorted(found, key=str)


def _frame(
    added: Sequence[tuple[Trial, pl.DataFrame]], about: Mapping[str, Callable[[Trial], Any]]
) -> pl.DataFrame:
    """Returns rows of several cells with the key of their cell, their trial, and columns `about` the cell."""
    heights = [frame.height for _, frame in added]

    def repeated(name: str, values: Sequence[Any]) -> pl.Series:
        rows = np.repeat(np.arange(len(values), dtype=np.uint32), heights)
        return pl.Series(name, values, dtype=parts.COLUMNS[name]).gather(pl.Series(rows))

    columns = [repeated(name, [value(first) for first, _ in added]) for name, value in about.items()]
    keys = repeated("cell_key", [first.cell_key for first, _ in added])
    frame = pl.concat([frame for _, frame in added], how="diagonal_relaxed")
    return frame.select(keys, "trial", *columns, pl.exclude("trial"))
