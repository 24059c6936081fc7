"""The archive of a bundle: equal files give equal bytes, and its manifest has a hash of each."""

from __future__ import annotations

import errno
import hashlib
import json
import lzma
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from longfat.system.files import produce_whole

MANIFEST = "MANIFEST.json"
FORMAT = 1
"""The version of this layout."""
_DATE = (1980, 1, 1, 0, 0, 0)
"""The date of all files in an archive: the earliest that the format knows."""
LARGEST = 64 << 30
"""The largest size of all files together, in bytes."""


DAMAGES = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError, RuntimeError)
"""What the standard library raises for archives that are damaged, encrypted or of unknown methods."""


class BundleError(ValueError):
    """A file that is not a bundle, is damaged, or is one of another version."""


def write(folder: Path, target: Path, about: Mapping[str, Any]) -> None:
    """Writes all files of a folder, except compiled ones, with a manifest, as an archive."""
    files = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    names = sorted(path.as_posix() for path in files if "__pycache__" not in path.parts)
    hashes = {name: hash_of(folder / name) for name in names}
    manifest = json.dumps({"format": FORMAT, **about, "sha256": hashes}, indent=2) + "\n"

    def produce(path: Path) -> None:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(zipfile.ZipInfo(MANIFEST, _DATE), manifest)
            for name in names:
                entry = zipfile.ZipInfo(name, _DATE)
                entry.compress_type = zipfile.ZIP_DEFLATED
                with archive.open(entry, "w") as out, (folder / name).open("rb") as content:
                    while block := content.read(1 << 20):
                        out.write(block)

    produce_whole(target, produce)


def extract(bundle: Path, folder: Path) -> dict[str, Any]:
    """Extracts an archive into an empty folder and checks every file. Returns its manifest.

    Raises:
        BundleError: for anything else than a complete bundle of this format.
        OSError: if the file cannot be read.
    """
    try:
        with zipfile.ZipFile(bundle) as archive:
            manifest = _manifest(bundle, archive)
            hashes: dict[str, str] = manifest["sha256"]
            present = set(archive.namelist()) - {MANIFEST}
            if missing := sorted(set(hashes) - present):
                raise BundleError(f"{bundle}: {missing[0]} is missing in this bundle")
            if foreign := sorted(present - set(hashes)):
                raise BundleError(f"{bundle}: {foreign[0]} is not in the bundle's manifest")
            if sum(entry.file_size for entry in archive.infolist()) > LARGEST:
                raise BundleError(f"{bundle}: is too large: at most {LARGEST >> 30} GiB")
            for name, expected in hashes.items():
                path = PurePosixPath(name)
                if path.is_absolute() or ".." in path.parts:
                    raise BundleError(f"{bundle}: {name} is outside of the bundle")
                archive.extract(name, folder)
                if hash_of(folder / name) != expected:
                    raise BundleError(f"{bundle}: {name} was changed after the bundle was written")
    except DAMAGES as error:
        raise BundleError(f"{bundle}: is not a bundle, or is damaged: {error}") from None
    except OSError as error:
        # A damaged offset leads to a position before the start of the file.
        if error.errno != errno.EINVAL:
            raise
        raise BundleError(f"{bundle}: is not a bundle, or is damaged: {error}") from None
    return manifest


def _manifest(bundle: Path, archive: zipfile.ZipFile) -> dict[str, Any]:
    try:
        manifest = json.loads(archive.read(MANIFEST))
    except KeyError:
        raise BundleError(f"{bundle}: is not a bundle: it has no {MANIFEST}") from None
    except ValueError:
        raise BundleError(f"{bundle}: {MANIFEST} is not JSON") from None
    if not isinstance(manifest, dict) or not isinstance(manifest.get("sha256"), dict):
        raise BundleError(f"{bundle}: {MANIFEST} lists no files")
    if manifest.get("format") != FORMAT:
        raise BundleError(
            f"{bundle}: has the format {manifest.get('format')}, and this longfat reads {FORMAT}"
        )
    return manifest


def hash_of(path: Path) -> str:
    """Returns the SHA-256 of a file as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
