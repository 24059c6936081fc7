"""Custom protocol parts, as Python classes: found by name, checked and described for the native part.

A study names a class like a built-in kind: `congestion = "aimd.py:Aimd"` (a file next to the study's file)
or `congestion = "package.module:Class"`; with settings as a table:
`congestion = {kind = "aimd.py:Aimd", increase = 2}`. Likewise `scheduler`, `policy` and `queue`.
"""

from __future__ import annotations

import abc
import difflib
import functools
import importlib
import importlib.util
import inspect
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Self

from longfat.extensions.names import FILE_SUFFIX, file_hash, register, registered, split

ROLES = {
    "CongestionController": "longfat.extensions.controller",
    "Scheduler": "longfat.extensions.scheduler",
    "PathPolicy": "longfat.extensions.policy",
    "QueueDiscipline": "longfat.extensions.queue",
}
"""The base classes, with their modules."""


LONGEST_CALL_S = 86_400
"""Largest `call_limit_s`."""


class ExtensionError(ValueError):
    """A name without a usable class. The text is one line."""


@dataclass(frozen=True)
class Configured:
    """A class with settings, as a value of a study."""

    cls: type
    settings: dict[str, Any]

    def to_study(self) -> dict[str, Any]:
        """Returns the table of a study."""
        return {"kind": self.cls, **self.settings}


class Extension(abc.ABC):
    """The base of the base classes.

    The parameters of `__init__`, all with defaults, are the settings of a class in a study.
    """

    WHAT: ClassVar[str]
    """What a class is, with its article."""
    OWNER: ClassVar[str]
    """What creates an object of the class for itself, such as a connection."""
    call_limit_s: ClassVar[float] = 60.0
    """Longest time in s that `__init__` or a method may take. A longer call fails the trial."""
    _HOOKS: ClassVar[tuple[str, ...]] = ()
    """Optional methods, which are called only if a class overrides them."""
    _RESERVED: ClassVar[tuple[str, ...]] = ()
    """Keys of a study that are not settings of the class."""

    @classmethod
    def configured(cls, **settings: Any) -> Configured:
        """Returns the class with settings, for the place of the class: `queue=Red.configured(low=10)`."""
        return Configured(cls, settings)

    @classmethod
    def _maker(cls, settings: dict[str, Any]) -> Callable[..., Self]:
        """Returns a function from the arguments of `_prepare` to an object."""
        return functools.partial(cls._make, settings=settings)

    @classmethod
    def _make(cls, *context: Any, settings: dict[str, Any]) -> Self:
        made = cls.__new__(cls)
        made._prepare(*context)
        # Unlike a call of the class, this sets the attributes before `__init__` reads them.
        initialise: Callable[..., None] = cls.__init__
        initialise(made, **settings)
        return made

    def _prepare(self, *context: Any) -> None:  # noqa: B027 - most have none
        """Sets the attributes that an object has before `__init__` runs."""


def base_class(role: str) -> type[Extension]:
    """Returns the base class of a role."""
    found: type[Extension] = getattr(importlib.import_module(ROLES[role]), role)
    return found


def name_of(cls: type) -> str:
    """Returns the name by which a study refers to a class of this program, for `load`.

    Raises:
        ExtensionError: for other classes, and for a class defined inside a function.
    """
    if not any(_is_kind(cls, base_class(role)) for role in ROLES):
        listed = ", ".join(f"longfat.{role}" for role in ROLES)
        raise ExtensionError(f"class {cls.__name__} is not derived from any of {listed}")
    try:
        return register(cls)
    except ValueError as error:
        raise ExtensionError(str(error)) from None


def load(role: str, name: str) -> Any:
    """Returns the class of a name; `role` is the name of its base class.

    Raises:
        ExtensionError: for an unknown name, and for a class with another base.
    """
    base = base_class(role)
    known_class = registered(name)
    if _is_kind(known_class, base):
        return known_class
    where, wanted = split(name)
    if not where or not wanted.isidentifier():
        raise ExtensionError(f'"{name}" is not {base.WHAT}: write FILE.py:CLASS or package.module:CLASS')
    try:
        module = _from_file(where) if where.endswith(FILE_SUFFIX) else importlib.import_module(where)
    except FileNotFoundError:
        raise ExtensionError(f'"{name}": no such file: {where}') from None
    except ModuleNotFoundError as error:
        raise ExtensionError(f'"{name}": {error}') from None
    except Exception as error:  # noqa: BLE001 - whatever the module does when it is imported
        raise ExtensionError(f'"{name}": {_in_one_line(error, where)}') from None
    found = getattr(module, wanted, None)
    if _is_kind(found, base):
        return found
    if found is not None:
        raise ExtensionError(f'"{name}": {wanted} is not derived from longfat.{role}')
    known = sorted(key for key, value in vars(module).items() if _is_kind(value, base))
    near = difflib.get_close_matches(wanted, known, n=1)
    hint = f'; did you mean "{near[0]}"?' if near else ""
    there = ", ".join(known) or "none"
    raise ExtensionError(f'"{name}": no class {wanted} in {where}; allowed: {there}{hint}')


def classes_in(role: str, file: str) -> list[str]:
    """Returns the names of the classes of a role that a Python file defines.

    Raises:
        ExtensionError: if the file cannot be imported.
    """
    base = base_class(role)
    try:
        module = _from_file(file)
    except Exception as error:  # noqa: BLE001 - whatever the module does when it is imported
        raise ExtensionError(f"{Path(file).name}: {_in_one_line(error, file)}") from None
    own = {key: value for key, value in vars(module).items() if _is_kind(value, base)}
    return [key for key, value in own.items() if value.__module__ == module.__name__]


def _is_kind(value: object, base: type[Extension]) -> bool:
    return isinstance(value, type) and issubclass(value, base) and value is not base


_LOADED: dict[str, tuple[str, ModuleType]] = {}


def _from_file(where: str) -> ModuleType:
    """Returns the module of a file, reloaded if the file has changed."""
    path = Path(where).resolve()
    content = file_hash(path)
    key = str(path)
    if key in _LOADED and _LOADED[key][0] == content:
        return _LOADED[key][1]
    name = f"longfat_extension_{content}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{where} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    # Some libraries (dataclasses) look up classes by their module's name.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    _LOADED[key] = (content, module)
    return module


def _in_one_line(error: Exception, where: str) -> str:
    """Returns an exception as one line, with its line in the file."""
    text = str(error).partition("\n")[0]
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error.msg} (line {error.lineno})"
    line = None
    trace = error.__traceback__
    while trace is not None:
        if Path(trace.tb_frame.f_code.co_filename).name == Path(where).name:
            line = trace.tb_lineno
        trace = trace.tb_next
    place = f" (line {line})" if line else ""
    return (f"{type(error).__name__}: {text}" if text else type(error).__name__) + place


def _describe(role: str, name: str) -> tuple[type[Extension], str, str, list[bool]]:
    """Returns class, help, JSON Schema of the settings and implemented hooks, for the native part."""
    cls = load(role, name)
    base = base_class(role)
    properties: dict[str, Any] = {}
    more = False
    for parameter in list(inspect.signature(cls.__init__).parameters.values())[1:]:
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            more = True
        elif parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            continue
        elif parameter.default is inspect.Parameter.empty:
            raise ExtensionError(f'"{name}": setting {parameter.name} of __init__ needs a default')
        elif parameter.name in base._RESERVED:
            raise ExtensionError(f'"{name}": {parameter.name} is a key of {base.WHAT} itself: rename it')
        else:
            properties[parameter.name] = {}
    help_ = (inspect.getdoc(cls) or "").partition("\n")[0]
    limit: Any = cls.call_limit_s
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not 0 < limit <= LONGEST_CALL_S:
        raise ExtensionError(f'"{name}": call_limit_s is {limit!r}: above 0, up to {LONGEST_CALL_S} s')
    schema = {"type": "object", "properties": properties, "additionalProperties": more}
    own = [getattr(cls, hook) is not getattr(base, hook) for hook in base._HOOKS]
    return cls, help_, json.dumps(schema), own
