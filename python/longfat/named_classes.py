"""Names of Python classes in studies: `aimd.py:Aimd` (a file and a class in it) or `package.module:Class`.

A class that a program passes itself is registered under such a name, and is found there first.
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
CLASS_KEYS = ("congestion", "kind")
"""The keys of a specification whose value may name a class: a controller alone, or as a table's kind."""
INTERACTIVE = "__main__"
"""The module of classes that were typed into a notebook or an interpreter."""

_REGISTERED: dict[str, tuple[type, str]] = {}
"""Classes that the program itself passed, by name, each with the hash of its file at that time."""


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


def register(cls: type) -> str:
    """Returns the name of a class that a program has at hand, under which `registered` then finds it.

    The name holds the class's file where it has one, so that another process can import it; of an installed
    package it holds the module. ValueError for a class inside a function: its name leads nowhere.

    >>> import collections
    >>> register(collections.Counter)
    'collections:Counter'
    """
    if "<locals>" in cls.__qualname__:
        raise ValueError(
            f"class {cls.__name__} is defined inside a function: define it at the top level, "
            "and make what varies a parameter of its __init__"
        )
    name = f"{_home(cls)}{SEPARATOR}{cls.__qualname__}"
    if name not in _REGISTERED or _REGISTERED[name][0] is not cls:
        file = _file(cls)
        _REGISTERED[name] = (cls, "" if file is None else file_hash(file))
    return name


def _file(cls: type) -> str | None:
    """The file of a class's module; None for a class that was typed in."""
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    return file if file is not None and Path(file).is_file() else None


def _home(cls: type) -> str:
    """The file of a class, or its module where that belongs to a package or has no file."""
    file = _file(cls)
    package = getattr(sys.modules.get(cls.__module__), "__package__", None)
    if file is None or (package and cls.__module__ != INTERACTIVE):
        return cls.__module__
    return str(Path(file).resolve())


def registered(name: str) -> type | None:
    """The class that was registered under a name; None where none was, or where its file has changed since.

    A class of the program that runs stays the same: its file cannot be imported a second time.
    """
    cls, known = _REGISTERED.get(name, (None, ""))
    if cls is None or cls.__module__ == INTERACTIVE or not split(name)[0].endswith(FILE_SUFFIX):
        return cls
    try:
        return cls if file_hash(split(name)[0]) == known else None
    except OSError:
        return cls


def content_hash(name: str) -> str:
    """A hash of what a named class does: of its file, or of its code where it has no file.

    Raises ValueError where there is no such class, OSError where its file cannot be read.
    """
    cls = registered(name)
    if cls is None:
        return file_hash(source_file(name))
    return _REGISTERED[name][1] or hashlib.blake2b(repr(_behaviour(cls)).encode(), digest_size=16).hexdigest()


def _behaviour(cls: type) -> list[Any]:
    """The code and the constants of a class and of the bases that have no file either."""
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
    """What a function does, without the place where it was typed."""
    constants = [_code(one) if isinstance(one, CodeType) else one for one in code.co_consts]
    return [code.co_code, code.co_names, code.co_varnames, constants]


def source_file(name: str) -> Path:
    """The file that a class is written in; ValueError where there is none."""
    where, _ = split(name)
    if where.endswith(FILE_SUFFIX):
        return Path(where)
    try:
        found = importlib.util.find_spec(where)
    except (ImportError, ValueError):
        found = None
    if found is None and where == INTERACTIVE:
        raise ValueError(f'"{name}": define the class first: it belongs to an interactive session')
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
