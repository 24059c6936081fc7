"""The Parquet parts of a run: their names, and how to read them.

A part never changes, and its name has a random ID of its writer, so that several processes write into one
place. Parts may hold a trial twice, with equal records, and compaction may replace parts while they are read.
Readers therefore list the parts until none is unread, and keep one record of each trial.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Sequence

import polars as pl

from longfat.store.shard import Shard
from longfat.system.remote_path import Location, contents

RECORDS = "records"
PART, FLOWS = "part", "flows"
"""The kinds of parts: records of trials, and their flows."""
IDENTITY = ("cell_key", "trial")
"""The columns that identify a trial."""
COLUMNS = {
    "cell_key": pl.String,
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


def name_of(kind: str, number: int, writer: str) -> str:
    """Returns the file name of a part.

    >>> name_of("part", 1, "3f9a2c")
    'part-00001-3f9a2c.parquet'
    """
    return f"{kind}-{number:05}-{writer}.parquet"


def number_of(part: Location) -> int:
    """Returns the number in the name of a part."""
    number = part.stem.split("-")[1]
    return int(number) if number.isdigit() else 0


def tag_of(part: Location) -> str:
    """Returns the shard in the name of a part that has trials of one shard only; empty for others."""
    return part.stem.rpartition("-")[2].rpartition(".")[0]


def listed(folder: Location, kind: str = PART, shard: Shard | None = None) -> list[Location]:
    """Returns the parts of a run in order; `kind` is "part" for records or "flows".

    With a shard, those that have only trials of other shards are left out.
    """
    found: list[Location] = list((folder / RECORDS).glob(f"{kind}-*.parquet"))
    if shard is not None:
        found = [part for part in found if not shard.excludes(tag_of(part))]
    return sorted(found, key=lambda part: (number_of(part), part.name))


Read = Callable[[Sequence[Location]], Iterator[tuple[Location, bytes | None]]]
"""Yields parts with their contents, None for a part that vanished."""


Wanted = Callable[[str], bool]
"""Whether a column is needed."""


def _all(_: str) -> bool:
    return True


def frames(
    folder: Location,
    kind: str = PART,
    wanted: Wanted = _all,
    read: Read = contents,
    shard: Shard | None = None,
) -> Iterator[pl.DataFrame]:
    """Yields all parts of a run, or of one shard, with the wanted columns."""
    seen: set[str] = set()
    while unread := [part for part in listed(folder, kind, shard) if part.name not in seen]:
        seen.update(part.name for part in unread)
        # The records of a part that vanished are in a new one.
        yield from (frame_of(part, found, wanted) for part, found in read(unread) if found is not None)


def read(folder: Location) -> pl.DataFrame:
    """Returns all records of a folder, one row for each trial: the store's columns, then the metrics."""
    found = list(frames(folder))
    return once(pl.concat(found, how="diagonal_relaxed")) if found else pl.DataFrame(schema=COLUMNS)


def once(records: pl.DataFrame) -> pl.DataFrame:
    """Returns one row for each trial."""
    twice = records.select(pl.struct(IDENTITY).n_unique()).item() < records.height
    return records.unique(IDENTITY, keep="first", maintain_order=True) if twice else records


def flows_once(found: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Yields the flows without those of trials in an earlier frame."""
    seen = pl.DataFrame(schema={name: COLUMNS[name] for name in IDENTITY})
    for frame in found:
        yield frame.join(seen, on=IDENTITY, how="anti", maintain_order="left")
        seen = pl.concat([seen, frame.select(IDENTITY).unique()])


def frame_of(part: Location, content: bytes, wanted: Wanted = _all) -> pl.DataFrame:
    """Returns the wanted columns of a part. Raises FolderError if the file is not a part."""
    try:
        # From memory: a mapped file that vanishes or shrinks would kill the process.
        known = pl.read_parquet_schema(io.BytesIO(content))
        if not set(IDENTITY) <= set(known):
            raise FolderError(f"{part}: was not written by longfat: remove it to run its trials again")
        chosen = [name for name in known if wanted(name)]
        return pl.read_parquet(io.BytesIO(content), columns=chosen)
    except pl.exceptions.PolarsError:
        raise FolderError(
            f"{part}: is not a complete Parquet file: remove it to run its trials again"
        ) from None


def encoded(frame: pl.DataFrame) -> bytes:
    """Returns the file of a part."""
    content = io.BytesIO()
    frame.write_parquet(content, compression="zstd")
    return content.getvalue()
