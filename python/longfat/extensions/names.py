"""Names of Python classes in studies: `aimd.py:Aimd` (a file and a class in it) or `package.module:Class`.

A class that a program passes as an object is registered under such a name.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import sys
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

SEPARATOR = ":"
FILE_SUFFIX = ".py"
CLASS_KEYS = ("congestion", "scheduler", "policy", "queue", "kind")
"""Keys of a specification whose value may name a class."""
INTERACTIVE = "__main__"
"""The module of classes defined in a notebook or an interpreter."""

_REGISTERED: dict[str, tuple[type, str]] = {}
"""Registered classes by name, each with the hash of its file at that time."""


def is_class(name: object) -> bool:
    """Returns whether a value of a study names a Python class.

    >>> is_class("aimd.py:Aimd"), is_class("cubic"), is_class(7)
    (True, False, False)
    """
    return isinstance(name, str) and SEPARATOR in name


def split(name: str) -> tuple[str, str]:
    """Returns the file or module of a class, and its name.

    >>> split("aimd.py:Aimd"), split("C:/studies/aimd.py:Aimd")
    (('aimd.py', 'Aimd'), ('C:/studies/aimd.py', 'Aimd'))
    """
    where, _, cls = name.rpartition(SEPARATOR)
    return where, cls


def anchored(name: str, folder: Path) -> str:
    """Returns a name with its file relative to `folder` made absolute; unchanged for a module.

    >>> anchored("package.module:Class", Path("/studies"))
    'package.module:Class'
    """
    where, cls = split(name)
    return f"{folder / where}{SEPARATOR}{cls}" if where.endswith(FILE_SUFFIX) else name


def short(name: str) -> str:
    """Returns a name without the folder of its file, for display.

    >>> short("/studies/aimd.py:Aimd"), short("package.module:Class")
    ('aimd.py:Aimd', 'package.module:Class')
    """
    where, cls = split(name)
    return f"{Path(where).name}{SEPARATOR}{cls}" if where.endswith(FILE_SUFFIX) else name


def register(cls: type) -> str:
    """Registers a class of this program and returns its name, for `registered`.

    The name has the class's file, if any, so that another process can import it; for an installed package it
    has the module. Raises ValueError for a class inside a function, which cannot be imported.

    >>> import collections
    >>> register(collections.Counter)
    'collections:Counter'
    """
    if "<locals>" in cls.__qualname__:
        raise ValueError(
            f"class {cls.__name__} is defined inside a function: define it at the top level, "
            "with parameters of its __init__ for what varies"
        )
    name = f"{_home(cls)}{SEPARATOR}{cls.__qualname__}"
    if name not in _REGISTERED or _REGISTERED[name][0] is not cls:
        file = _file(cls)
        _REGISTERED[name] = (cls, "" if file is None else file_hash(file))
    return name


def register_as(name: str, cls: type) -> None:
    """Registers a class that another process sent, under a name that no file or module has."""
    _REGISTERED[name] = (cls, "")


def _file(cls: type) -> str | None:
    """Returns the file of a class's module, None for an interactive class."""
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    return file if file is not None and Path(file).is_file() else None


def _home(cls: type) -> str:
    """Returns the file of a class, or its module if that is in a package or has no file."""
    file = _file(cls)
    package = getattr(sys.modules.get(cls.__module__), "__package__", None)
    if file is None or (package and cls.__module__ != INTERACTIVE):
        return cls.__module__
    return str(Path(file).resolve())


def registered(name: str) -> type | None:
    """Returns the class registered under a name; None for an unknown name, and if its file has changed.

    A class of the running program always stays the same: its file cannot be imported a second time.
    """
    cls, known = _REGISTERED.get(name, (None, ""))
    if cls is None or cls.__module__ == INTERACTIVE or not split(name)[0].endswith(FILE_SUFFIX):
        return cls
    try:
        return cls if file_hash(split(name)[0]) == known else None
    except OSError:
        return cls


def content_hash(name: str) -> str:
    """Returns a hash of a class's file, or of its code if it has no file.

    Raises ValueError for an unknown class, OSError if its file is not readable.
    """
    cls = registered(name)
    if cls is None:
        return file_hash(source_file(name))
    return _REGISTERED[name][1] or hashlib.blake2b(repr(_behaviour(cls)).encode(), digest_size=16).hexdigest()


def _behaviour(cls: type) -> list[Any]:
    """Returns code and constants of a class and of its bases without a file."""
    found: list[Any] = []
    for base in cls.__mro__:
        if base.__module__ != INTERACTIVE:
            continue
        for name, value in sorted(vars(base).items()):
            if isinstance(value, FunctionType):
                found.append((name, _code(value.__code__), value.__defaults__, value.__kwdefaults__))
                known = value.__globals__
                found += [
                    (used, known[used])
                    for used in value.__code__.co_names
                    if isinstance(known.get(used), bool | int | float | str)
                ]
            elif isinstance(value, bool | int | float | str | tuple) and not name.startswith("__"):
                found.append((name, value))
    return found


def _code(code: CodeType) -> list[Any]:
    """Returns the code of a function without its location."""
    constants = [_code(one) if isinstance(one, CodeType) else one for one in code.co_consts]
    return [code.co_code, code.co_names, code.co_varnames, constants]


def source_file(name: str) -> Path:
    """Returns the source file of a class. Raises ValueError if it has none."""
    where, _ = split(name)
    if where.endswith(FILE_SUFFIX):
        return Path(where)
    try:
        found = importlib.util.find_spec(where)
    except (ImportError, ValueError):
        found = None
    if found is None and where == INTERACTIVE:
        raise ValueError(f'"{name}": define this class of an interactive session first')
    if found is None:
        raise ValueError(f'"{name}": no such module: {where}')
    if found.origin is None or not Path(found.origin).is_file():
        raise ValueError(f'"{name}": module {where} has no file')
    return Path(found.origin)


def file_hash(path: str | Path) -> str:
    """Returns a hash (BLAKE2b, 128 bit) of a file's contents. Raises OSError if it is not readable."""
    status = Path(path).stat()
    return _hash_of(str(path), status.st_mtime_ns, status.st_size)


@functools.lru_cache(maxsize=1024)
def _hash_of(name: str, _modified: int, _size: int) -> str:
    return hashlib.blake2b(Path(name).read_bytes(), digest_size=16).hexdigest()
