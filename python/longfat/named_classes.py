"""Names of Python classes in studies: `aimd.py:Aimd` (a file and a class in it) or `package.module:Class`."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
from pathlib import Path

SEPARATOR = ":"
FILE_SUFFIX = ".py"
CLASS_KEYS = ("congestion", "kind")
"""The keys of a specification whose value may name a class: a controller alone, or as a table's kind."""


def is_class(name: object) -> bool:
    """Whether a value of a study names a Python class.

    >>> is_class("aimd.py:Aimd"), is_class("cubic"), is_class(7)
    (True, False, False)
    """
    return isinstance(name, str) and SEPARATOR in name


def split(name: str) -> tuple[str, str]:
    """Where the class is (a file, a module), and what it is called.

    >>> split("aimd.py:Aimd"), split("C:/studies/aimd.py:Aimd")
    (('aimd.py', 'Aimd'), ('C:/studies/aimd.py', 'Aimd'))
    """
    where, _, cls = name.rpartition(SEPARATOR)
    return where, cls


def anchored(name: str, folder: Path) -> str:
    """A name whose file is meant from a folder, with the file's whole path; of a module as it is.

    >>> anchored("package.module:Class", Path("/studies"))
    'package.module:Class'
    """
    where, cls = split(name)
    return f"{folder / where}{SEPARATOR}{cls}" if where.endswith(FILE_SUFFIX) else name


def short(name: str) -> str:
    """A name without the folder of its file, as people read it.

    >>> short("/studies/aimd.py:Aimd"), short("package.module:Class")
    ('aimd.py:Aimd', 'package.module:Class')
    """
    where, cls = split(name)
    return f"{Path(where).name}{SEPARATOR}{cls}" if where.endswith(FILE_SUFFIX) else name


def source_file(name: str) -> Path:
    """The file that a class is written in; ValueError where there is none."""
    where, _ = split(name)
    if where.endswith(FILE_SUFFIX):
        return Path(where)
    try:
        found = importlib.util.find_spec(where)
    except (ImportError, ValueError):
        found = None
    if found is None:
        raise ValueError(f'"{name}": there is no module {where}')
    if found.origin is None or not Path(found.origin).is_file():
        raise ValueError(f'"{name}": module {where} has no file')
    return Path(found.origin)


def file_hash(path: str | Path) -> str:
    """A hash (BLAKE2b, 128 bit) of what is in a file; OSError where it cannot be read."""
    status = Path(path).stat()
    return _hash_of(str(path), status.st_mtime_ns, status.st_size)


@functools.lru_cache(maxsize=1024)
def _hash_of(name: str, _modified: int, _size: int) -> str:
    return hashlib.blake2b(Path(name).read_bytes(), digest_size=16).hexdigest()
