"""The Parquet parts of a run: their names, and how to read them.

A part never changes, and its name has a random ID of its writer, so that several processes write into one
place. Parts may hold a trial twice, with equal records, and compaction may replace parts while they are read.
Readers therefore list the parts until none is unread, and keep one record of each key.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence

import polars as pl

from longfat.remote_path import Location, contents

RECORDS = "records"
PART, FLOWS = "part", "flows"
"""The kinds of parts: records of trials, and their flows."""
COLUMNS = {
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


def listed(folder: Location, kind: str = PART) -> list[Location]:
    """Returns the parts of a run in order; `kind` is "part" for records or "flows"."""
    found: list[Location] = list((folder / RECORDS).glob(f"{kind}-*.parquet"))
    return sorted(found, key=lambda part: (number_of(part), part.name))


def frames(folder: Location, kind: str = PART, columns: list[str] | None = None) -> Iterator[pl.DataFrame]:
    """Yields all parts of a run, or some of their columns."""
    seen: set[str] = set()
    while unread := [part for part in listed(folder, kind) if part.name not in seen]:
        seen.update(part.name for part in unread)
        # The records of a part that vanished are in a new one.
        yield from (frame_of(part, found, columns) for part, found in contents(unread) if found is not None)


def read(folder: Location) -> pl.DataFrame:
    """Returns all records of a folder, one row for each key: the store's columns, then the metrics."""
    found = list(frames(folder))
    return once(pl.concat(found, how="diagonal_relaxed")) if found else pl.DataFrame(schema=COLUMNS)


def once(records: pl.DataFrame) -> pl.DataFrame:
    """Returns one row for each key."""
    twice = records["key"].n_unique() < records.height
    return records.unique("key", keep="first", maintain_order=True) if twice else records


def read_flows(
    folder: Location, keys: Iterable[str] | None = None, columns: Sequence[str] | None = None
) -> pl.DataFrame:
    """Returns the flows of a folder's trials: `key`, then the columns of the flows.

    A run may have tens of millions of flows: `keys` and `columns` select some of them.
    """
    wanted = None if keys is None else pl.Series(list(keys), dtype=pl.String)

    def chosen(frame: pl.DataFrame) -> pl.DataFrame:
        if wanted is not None:
            frame = frame.filter(pl.col("key").is_in(wanted.implode()))
        return frame if columns is None else frame.select("key", *(c for c in columns if c in frame.columns))

    found = [chosen(frame) for frame in flows_once(frames(folder, FLOWS))]
    return pl.concat(found, how="diagonal_relaxed") if found else pl.DataFrame(schema={"key": pl.String})


def flows_once(found: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Yields the flows without those of trials in an earlier frame."""
    seen = pl.Series([], dtype=pl.String)
    for frame in found:
        yield frame.filter(~pl.col("key").is_in(seen.implode()))
        seen = seen.append(frame["key"].unique())


def frame_of(part: Location, content: bytes, columns: list[str] | None = None) -> pl.DataFrame:
    """Returns a part, or some of its columns. Raises FolderError if the file is not a part."""
    try:
        # From memory: a mapped file that vanishes or shrinks would kill the process.
        frame = pl.read_parquet(io.BytesIO(content), columns=columns)
    except pl.exceptions.ColumnNotFoundError:
        frame = pl.DataFrame()
    except pl.exceptions.PolarsError:
        raise FolderError(
            f"{part}: is not a complete Parquet file: remove it to run its trials again"
        ) from None
    if "key" not in frame.columns:
        raise FolderError(f"{part}: was not written by longfat: remove it to run its trials again")
    return frame


def encoded(frame: pl.DataFrame) -> bytes:
    """Returns the file of a part."""
    content = io.BytesIO()
    frame.write_parquet(content, compression="zstd")
    return content.getvalue()
