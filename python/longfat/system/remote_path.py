"""Files on object storage, with the methods of `pathlib.Path` that a run needs.

Any filesystem of fsspec works: `s3://`, `gs://`, `az://`, `memory://` and others. Credentials and endpoints
come from the environment, as the filesystem's own documentation describes (`AWS_ENDPOINT_URL`).
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

PACKAGES = {
    "s3": "'longfat[storage]'",
    "s3a": "'longfat[storage]'",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "az": "adlfs",
    "abfs": "adlfs",
}
"""What `pip install` needs for a scheme."""
WHOLE = {*PACKAGES, "memory", "oss", "r2"}
"""Schemes where an object appears as a whole; others get it by a rename."""
PARALLEL = 16
"""Objects that are read at once."""


class RemotePath:
    """A file or folder at a URL."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")
        self._opened: tuple[Any, str] | None = None

    def __str__(self) -> str:
        return self._url

    def __repr__(self) -> str:
        return f"RemotePath({self._url!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemotePath) and self._url == other._url

    def __hash__(self) -> int:
        return hash(self._url)

    def __lt__(self, other: RemotePath) -> bool:
        return self._url < other._url

    def __truediv__(self, name: str) -> RemotePath:
        return RemotePath(f"{self._url}/{name}")

    def __reduce__(self) -> tuple[type[RemotePath], tuple[str]]:
        return RemotePath, (self._url,)

    @property
    def name(self) -> str:
        """The last part of the URL."""
        return self._url.rpartition("/")[2]

    @property
    def stem(self) -> str:
        """The name without its suffix."""
        return self.name.rpartition(".")[0] or self.name

    @property
    def parent(self) -> RemotePath:
        """The folder."""
        return RemotePath(self._url.rpartition("/")[0])

    @property
    def bucket(self) -> RemotePath:
        """The bucket, or what the scheme has in its place."""
        scheme, _, path = self._url.partition("://")
        return RemotePath(f"{scheme}://{path.partition('/')[0]}")

    def with_name(self, name: str) -> RemotePath:
        """Returns the path of another file in the same folder."""
        return self.parent / name

    def as_uri(self) -> str:
        """Returns the URL."""
        return self._url

    def exists(self) -> bool:
        """Returns whether a file or a folder with files is here."""
        return self._kind() is not None

    def is_file(self) -> bool:
        """Returns whether a file is here."""
        return self._kind() == "file"

    def is_dir(self) -> bool:
        """Returns whether files are below."""
        return self._kind() == "directory"

    def _kind(self) -> str | None:
        """Returns "file", "directory" or None. The filesystem's own `exists` hides all errors."""
        with self._one_line():
            files, path = self._files()
            try:
                return str(files.info(path)["type"])
            except FileNotFoundError:
                return None

    def mkdir(self, *, parents: bool = False, exist_ok: bool = False) -> None:
        """Makes a folder, where the filesystem has folders."""
        with self._one_line():
            files, path = self._files()
            if self._scheme not in WHOLE:
                files.makedirs(path, exist_ok=parents or exist_ok)

    def iterdir(self) -> Iterator[RemotePath]:
        """Yields files and folders, as they are now."""
        with self._one_line():
            files, path = self._files()
            try:
                found = files.ls(path, detail=False)
            except FileNotFoundError:
                found = []
        own = path.strip("/")
        for one in found:
            # An object may mark the folder itself.
            if one.strip("/") != own:
                yield self / one.rstrip("/").rpartition("/")[2]

    def glob(self, pattern: str) -> Iterator[RemotePath]:
        """Yields the entries whose names match."""
        return (one for one in self.iterdir() if fnmatch(one.name, pattern))

    def rglob(self, name: str) -> Iterator[RemotePath]:
        """Yields the files with this name in this folder and all below."""
        with self._one_line():
            files, path = self._files()
            found = files.find(path)
        own = path.strip("/")
        for one in found:
            below = one.strip("/").removeprefix(own).strip("/")
            if below.rpartition("/")[2] == name:
                yield self / below

    def read_bytes(self) -> bytes:
        """Returns the content. Raises FileNotFoundError without the file, OSError without the storage."""
        with self._one_line(missing=True):
            files, path = self._files()
            content: bytes = files.cat_file(path)
            return content

    def read_text(self, encoding: str = "utf-8") -> str:
        """Returns the content as text."""
        return self.read_bytes().decode(encoding)

    def write_bytes(self, content: bytes) -> None:
        """Writes the whole file: readers see the old content or the new one."""
        with self._one_line():
            files, path = self._files()
            if self._scheme in WHOLE:
                files.pipe_file(path, content)
                return
            temporary = f"{path}.{secrets.token_hex(3)}.tmp"
            files.pipe_file(temporary, content)
            files.mv(temporary, path)

    def create_bytes(self, content: bytes) -> bool:
        """Writes the file unless it exists; returns whether it did.

        Storage with conditional writes does so atomically. On other storage the last of two writers wins.
        """
        if self.is_file():
            return False
        with self._one_line():
            files, path = self._files()
            try:
                files.pipe_file(path, content, mode="create")
            except FileExistsError:
                return False
            except (TypeError, NotImplementedError):
                files.pipe_file(path, content)
            return True

    def unlink(self, *, missing_ok: bool = False) -> None:
        """Removes the file."""
        with self._one_line(missing=True):
            files, path = self._files()
            try:
                files.rm_file(path)
            except FileNotFoundError:
                if not missing_ok:
                    raise

    def size(self) -> int:
        """Returns the number of bytes."""
        with self._one_line(missing=True):
            files, path = self._files()
            return int(files.size(path))

    @property
    def _scheme(self) -> str:
        return self._url.partition("://")[0]

    def _files(self) -> tuple[Any, str]:
        """Returns the filesystem, without stale listings, and the path in it."""
        if self._opened is None:
            try:
                from fsspec.core import url_to_fs  # type: ignore[import-untyped]

                files, path = url_to_fs(self._url, use_listings_cache=False)
            except ImportError:
                package = PACKAGES.get(self._scheme, "'longfat[storage]' and the scheme's own package")
                raise OSError(f"{self}: needs another package: pip install {package}") from None
            self._opened = files, str(path)
        self._opened[0].invalidate_cache()
        return self._opened

    @contextlib.contextmanager
    def _one_line(self, *, missing: bool = False) -> Iterator[None]:
        """Turns the errors of storage into an OSError of one line; `missing` passes on FileNotFoundError."""
        try:
            yield
        except FileNotFoundError as error:
            if missing:
                raise FileNotFoundError(2, "no such file", str(self)) from None
            raise OSError(f"{self}: {_reason(error)}") from None
        except Exception as error:
            if isinstance(error, OSError) and str(error).startswith(str(self)):
                raise
            raise OSError(f"{self}: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    # Some filesystems raise an error without text from one with text.
    text = str(error) or str(error.__cause__ or "") or type(error).__name__
    return text.splitlines()[0]


Location = Path | RemotePath
"""Where a run's files are."""


def location(place: str | Path | RemotePath) -> Location:
    """Returns the place that a path or a URL names.

    >>> location("runs/arq"), location("s3://bucket/run/")
    (PosixPath('runs/arq'), RemotePath('s3://bucket/run'))
    >>> location("file:///tmp/a%20run")
    PosixPath('/tmp/a run')
    """
    if not isinstance(place, str):
        return place
    scheme, separator, _ = place.partition("://")
    if not separator:
        scheme = place.partition(":/")[0]
        if scheme in PACKAGES and not Path(f"{scheme}:").exists():
            raise ValueError(f'"{place}" is not a URL: write it like {scheme}://BUCKET/RUN')
        return Path(place)
    if scheme in ("file", "local"):
        return Path(unquote(urlsplit(place).path))
    return RemotePath(place)


def contents(paths: Sequence[Location]) -> Iterator[tuple[Location, bytes | None]]:
    """Yields the paths with their contents, None for a file that vanished. Reads remote ones in parallel."""
    if not any(isinstance(path, RemotePath) for path in paths):
        yield from map(_content, paths)
        return
    with ThreadPoolExecutor(PARALLEL) as pool:
        for first in range(0, len(paths), PARALLEL):
            yield from pool.map(_content, paths[first : first + PARALLEL])


def _content(path: Location) -> tuple[Location, bytes | None]:
    try:
        return path, path.read_bytes()
    except FileNotFoundError:
        return path, None


def size(path: Location) -> int:
    """Returns the number of bytes of a file, 0 if it vanished."""
    try:
        return path.size() if isinstance(path, RemotePath) else path.stat().st_size
    except FileNotFoundError:
        return 0
