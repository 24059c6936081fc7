"""Local copies of the parts of a remote run, which is read several times by columns."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from longfat.store import parts
from longfat.store.shard import Shard
from longfat.system.remote_path import Location, RemotePath, contents


class Copies:
    """Reads the parts of a folder, or of a shard. The copies of remote ones exist as long as this object."""

    def __init__(self, folder: Location, shard: Shard | None = None) -> None:
        self._folder = folder
        self._shard = shard
        self._local: Path | None = None

    def frames(self, wanted: parts.Wanted) -> Iterator[pl.DataFrame]:
        """Yields all parts with records and the wanted columns."""
        return parts.frames(self._folder, wanted=wanted, read=self._contents, shard=self._shard)

    def _contents(self, paths: Sequence[Location]) -> Iterator[tuple[Location, bytes | None]]:
        if not isinstance(self._folder, RemotePath):
            yield from contents(paths)
            return
        if self._local is None:
            self._local = Path(tempfile.mkdtemp(prefix="longfat-"))
            weakref.finalize(self, shutil.rmtree, self._local, ignore_errors=True)
        # A part never changes, so its name identifies its content.
        known = {path.name for path in self._local.iterdir()}
        for path in paths:
            if path.name in known:
                yield path, (self._local / path.name).read_bytes()
        for path, content in contents([path for path in paths if path.name not in known]):
            if content is not None:
                (self._local / path.name).write_bytes(content)
            yield path, content
