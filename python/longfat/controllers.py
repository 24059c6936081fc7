"""Custom congestion controllers, as Python classes.

A study names one like a built-in controller: `congestion = "aimd.py:Aimd"` (a file next to the study's
file) or `congestion = "package.module:Class"`; with settings as a table:
`congestion = {kind = "aimd.py:Aimd", increase = 2}`.
"""

from __future__ import annotations

import abc
import difflib
import importlib
import importlib.util
import inspect
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Self, TypeGuard

from longfat._native import Acknowledgement, Loss
from longfat.named_classes import FILE_SUFFIX, file_hash, register, registered, split

__all__ = ["Acknowledgement", "CongestionController", "ControllerError", "Loss"]

INITIAL_PACKETS = 10
"""The window at the start of a controller that sets none (RFC 6928)."""
DEFAULT_SEGMENT = 1460
"""Payload bytes of a full packet for a controller without a connection: an MTU of 1500 bytes over IPv4."""


class ControllerError(ValueError):
    """A name without a usable controller. The text is one line."""


class CongestionController(abc.ABC):
    """A congestion controller: receives events, and sets a window and optionally a pacing rate.

    Each connection has its own object. The parameters of `__init__`, all with defaults, are its settings in a
    study. Times are in seconds since the start of the trial, sizes in bytes of payload. The attributes are
    read after each call. An exception in a method fails the trial, with class and method in its error.

    Equal events must give equal results: no clock, no randomness (`random.Random(seed)` of a setting is
    fine), no state shared between objects. Then a study's records do not depend on the number of cores.

    >>> class Aimd(CongestionController):
    ...     def __init__(self, increase: float = 1.0) -> None:
    ...         self.increase = increase
    ...     def on_acknowledged(self, ack: Acknowledgement) -> None:
    ...         self.window += self.increase * self.segment * ack.bytes / self.window
    ...     def on_lost(self, loss: Loss) -> None:
    ...         self.window = max(self.window / 2, 2 * self.segment)
    ...     def on_timeout(self, now: float, in_flight: int) -> None:
    ...         self.window = self.segment
    >>> controller = Aimd._make(1000, None, {"increase": 2})
    >>> controller.on_acknowledged(Acknowledgement(now=0.1, bytes=10_000))
    >>> controller.window
    12000.0
    """

    segment: int
    """Payload bytes of a full packet; set before `__init__` runs."""
    window: float
    """Bytes that may be in flight; initially 10 packets, or TCP's `initial_window`.
    A packet may leave while the bytes in flight, itself included, stay within the window, and always when
    nothing is in flight."""
    pacing_rate: float | Any = None  # Any, so that subclasses may declare a float
    """Rate in bit/s at which packets leave; None for no pacing."""
    threshold: float | Any = None
    """Slow start threshold in bytes, for traces; None for a controller without one."""

    _HOOKS: ClassVar = ("on_sent", "on_spurious", "on_idle")

    @abc.abstractmethod
    def on_acknowledged(self, ack: Acknowledgement) -> None:
        """Handles an ACK that acknowledges new data; called after `on_lost` if it also revealed losses."""

    @abc.abstractmethod
    def on_lost(self, loss: Loss) -> None:
        """Handles losses that ACKs of later packets revealed.

        One congestion event may cause several calls: compare `loss.newest_sent_at` with the time of the last
        reduction (RFC 6582), to reduce once for all packets sent before it.
        """

    @abc.abstractmethod
    def on_timeout(self, now: float, in_flight: int) -> None:
        """Handles an RTO: no ACK for `in_flight` bytes during a whole timeout."""

    def on_sent(self, now: float, size: int, in_flight: int) -> None:  # noqa: B027 - optional
        """Handles the departure of a packet of `size` bytes, included in `in_flight`. Does nothing here."""

    def on_congestion_experienced(self, now: float, sent_at: float) -> None:
        """Handles an ECN mark of a packet sent at `sent_at`: by default as a loss of 0 bytes (RFC 3168)."""
        self.on_lost(Loss(now=now, bytes=0, newest_sent_at=sent_at))

    def on_spurious(self, now: float) -> None:  # noqa: B027
        """Handles a spurious reduction: nothing was lost. Does nothing here."""

    def on_idle(self, now: float, idle: float, rto: float) -> None:  # noqa: B027
        """Handles the first packet after `idle` seconds; `rto` is the timeout in s. Does nothing here."""

    def metrics(self) -> dict[str, float]:
        """Returns names and values of internal state for traces, in addition to the window."""
        return {}

    def __new__(cls, *_args: object, **_settings: object) -> Self:
        """Sets `segment` and `window`, so that tests can create a controller without a connection."""
        made = super().__new__(cls)
        made.segment = DEFAULT_SEGMENT
        made.window = INITIAL_PACKETS * DEFAULT_SEGMENT
        return made

    @classmethod
    def _make(cls, segment: int, initial_window: int | None, settings: dict[str, Any]) -> Self:
        made = cls.__new__(cls)
        made.segment = segment
        made.window = (initial_window or INITIAL_PACKETS) * segment
        # Unlike a call of the class, this sets the segment before `__init__` reads it.
        initialise: Callable[..., None] = cls.__init__
        initialise(made, **settings)
        return made


def name_of(cls: type) -> str:
    """Returns the name by which a study refers to a class of this program, for `load`.

    Raises:
        ControllerError: for other classes, and for a class defined inside a function.
    """
    if not _is_controller(cls):
        raise ControllerError(f"class {cls.__name__} is not derived from longfat.CongestionController")
    try:
        return register(cls)
    except ValueError as error:
        raise ControllerError(str(error)) from None


def load(name: str) -> type[CongestionController]:
    """Returns the controller class of a name.

    Raises:
        ControllerError: for an unknown name, and for a class that is not a controller.
    """
    known_class = registered(name)
    if _is_controller(known_class):
        return known_class
    where, wanted = split(name)
    if not where or not wanted.isidentifier():
        raise ControllerError(f'"{name}" is not a controller: write FILE.py:CLASS or package.module:CLASS')
    try:
        module = _from_file(where) if where.endswith(FILE_SUFFIX) else importlib.import_module(where)
    except FileNotFoundError:
        raise ControllerError(f'"{name}": no such file: {where}') from None
    except ModuleNotFoundError as error:
        raise ControllerError(f'"{name}": {error}') from None
    except Exception as error:  # noqa: BLE001 - whatever the module does when it is imported
        raise ControllerError(f'"{name}": {_in_one_line(error, where)}') from None
    found = getattr(module, wanted, None)
    if _is_controller(found):
        return found
    known = sorted(key for key, value in vars(module).items() if _is_controller(value))
    if found is not None:
        raise ControllerError(f'"{name}": {wanted} is not derived from longfat.CongestionController')
    near = difflib.get_close_matches(wanted, known, n=1)
    hint = f'; did you mean "{near[0]}"?' if near else ""
    there = ", ".join(known) or "none"
    raise ControllerError(f'"{name}": no class {wanted} in {where}; allowed: {there}{hint}')


def _is_controller(value: object) -> TypeGuard[type[CongestionController]]:
    return (
        isinstance(value, type)
        and issubclass(value, CongestionController)
        and value is not CongestionController
    )


_LOADED: dict[str, tuple[str, ModuleType]] = {}


def _from_file(where: str) -> ModuleType:
    """Returns the module of a file, reloaded if the file has changed."""
    path = Path(where).resolve()
    content = file_hash(path)
    key = str(path)
    if key in _LOADED and _LOADED[key][0] == content:
        return _LOADED[key][1]
    name = f"longfat_controller_{content}"
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


def _describe(name: str) -> tuple[type[CongestionController], str, str, list[bool]]:
    """Returns class, help, JSON Schema of the settings and implemented hooks, for the native part."""
    cls = load(name)
    properties: dict[str, Any] = {}
    more = False
    for parameter in list(inspect.signature(cls.__init__).parameters.values())[1:]:
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            more = True
        elif parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            continue
        elif parameter.default is inspect.Parameter.empty:
            raise ControllerError(f'"{name}": setting {parameter.name} of __init__ needs a default')
        else:
            properties[parameter.name] = {}
    help_ = (inspect.getdoc(cls) or "").partition("\n")[0]
    schema = {"type": "object", "properties": properties, "additionalProperties": more}
    own = [getattr(cls, hook) is not getattr(CongestionController, hook) for hook in cls._HOOKS]
    return cls, help_, json.dumps(schema), own
