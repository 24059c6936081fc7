"""Compaction: many small parts of a run become a few large ones.

A new part is written before the parts that it replaces are removed. So a process killed at any moment
leaves duplicates at most, which readers skip. Several processes may compact at once: each record is in the
newest part that contains it, which only the writer of a newer one removes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import polars as pl

from longfat.store import parts
from longfat.system.files import write_whole
from longfat.system.remote_path import Location, contents, size

MANY = 24
"""Number of small parts above which they are compacted."""
LARGE = 1 << 20
"""Size in B from which a part stays as it is."""
MOST = 4 << 20
"""Size in B of the parts that become one, in memory."""


def compact(folder: Location, name: Callable[[str], str], writer: str = "") -> None:
    """Compacts the parts of a run, with a writer only its own.

    `name` returns the file name of the next part of a kind.
    """
    for kind in (parts.FLOWS, parts.PART):
        listed = [part for part in parts.listed(folder, kind) if part.stem.endswith(writer)]
        if len(listed) <= MANY:
            continue
        small = [(part, bytes_) for part in listed if (bytes_ := size(part)) < LARGE]
        if len(small) <= MANY:
            continue
        for group, frames in _groups(part for part, _ in small):
            if frames:
                write_whole(folder / parts.RECORDS / name(kind), parts.encoded(_merged(kind, frames)))
            for part in group:
                part.unlink(missing_ok=True)


def _groups(small: Iterable[Location]) -> Iterator[tuple[list[Location], list[pl.DataFrame]]]:
    """Yields parts and their frames, up to `MOST` bytes and one part in memory."""
    group: list[Location] = []
    frames: list[pl.DataFrame] = []
    total = 0
    for part, content in contents(list(small)):
        group.append(part)
        if content is None:
            continue
        frames.append(parts.frame_of(part, content))
        total += int(frames[-1].estimated_size())
        if total >= MOST:
            yield group, frames
            group, frames, total = [], [], 0
    yield group, frames


def _merged(kind: str, found: Sequence[pl.DataFrame]) -> pl.DataFrame:
    if kind == parts.FLOWS:
        return pl.concat(parts.flows_once(found), how="diagonal_relaxed")
    return parts.once(pl.concat(found, how="diagonal_relaxed"))
