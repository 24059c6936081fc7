"""Congestion controllers of your own, as Python classes.

A study names one as it names a built-in controller: `congestion = "aimd.py:Aimd"` (a file beside the study's
file) or `congestion = "package.module:Class"`; and as a table where the class takes settings:
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
    """A name that leads to no usable controller; its text is one clear line."""


class CongestionController(abc.ABC):
    """A congestion controller: is told facts, answers with a window and, if it paces, a rate.

    Each connection has its own object. The parameters of `__init__`, all with defaults, are its settings in a
    study. Times are in seconds since the trial began, sizes in bytes of payload. The attributes are read
    after each call. What a method raises ends the trial as failed, with a line that names class and method.

    The same facts must give the same answers: no clock, no randomness (`random.Random(seed)` of a setting is
    fine), nothing shared between objects. Then a study's records are the same however many cores ran it.

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
    """Bytes that may be in flight; at first the initial window, 10 packets unless TCP is told another one.
    A packet may leave while the bytes in flight, itself included, stay within the window, and always when
    nothing is in flight."""
    pacing_rate: float | None = None
    """Bits per second at which packets leave; None for as fast as the window lets them."""
    threshold: float | None = None
    """Slow start threshold in bytes, for traces; None for a controller without one."""

    _HOOKS: ClassVar = ("on_sent", "on_spurious", "on_idle")

    @abc.abstractmethod
    def on_acknowledged(self, ack: Acknowledgement) -> None:
        """An ACK arrived that newly acknowledged something; after `on_lost`, if it also revealed losses."""

    @abc.abstractmethod
    def on_lost(self, loss: Loss) -> None:
        """Packets were found lost by what later packets' ACKs revealed.

        One congestion may be told several times: compare `loss.newest_sent_at` with the time of the last
        reduction, as RFC 6582 asks, to reduce once for all that left before it.
        """

    @abc.abstractmethod
    def on_timeout(self, now: float, in_flight: int) -> None:
        """The retransmission timer ran out: nothing was heard of `in_flight` bytes for a whole timeout."""

    def on_sent(self, now: float, size: int, in_flight: int) -> None:  # noqa: B027 - need not be there
        """A packet of `size` bytes left; `in_flight` includes it. Does nothing here."""

    def on_congestion_experienced(self, now: float, sent_at: float) -> None:
        """A packet sent at `sent_at` was marked for congestion: here a loss of no bytes, as RFC 3168 asks."""
        self.on_lost(Loss(now=now, bytes=0, newest_sent_at=sent_at))

    def on_spurious(self, now: float) -> None:  # noqa: B027
        """The last reduction was needless: nothing had been lost. Does nothing here."""

    def on_idle(self, now: float, idle: float, rto: float) -> None:  # noqa: B027
        """About to send after `idle` seconds without a packet; `rto` is the timeout. Does nothing here."""

    def metrics(self) -> dict[str, float]:
        """Names and values of the inner state, for traces; the window is there in any case."""
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
        # As calling the class would, but the segment is there before the settings are read.
        initialise: Callable[..., None] = cls.__init__
        initialise(made, **settings)
        return made


def name_of(cls: type) -> str:
    """Returns the name by which a study refers to a class that a program has at hand; `load` finds it.

    Raises:
        ControllerError: for a class that is no controller, or that is defined inside a function.
    """
    if not _is_controller(cls):
        raise ControllerError(f"class {cls.__name__} is not derived from longfat.CongestionController")
    try:
        return register(cls)
    except ValueError as error:
        raise ControllerError(str(error)) from None


def load(name: str) -> type[CongestionController]:
    """The class that a name stands for.

    Raises:
        ControllerError: where there is none, or none that is a controller.
    """
    at_hand = registered(name)
    if _is_controller(at_hand):
        return at_hand
    where, wanted = split(name)
    if not where or not wanted.isidentifier():
        raise ControllerError(f'"{name}" is no controller: write FILE.py:CLASS or package.module:CLASS')
    try:
        module = _from_file(where) if where.endswith(FILE_SUFFIX) else importlib.import_module(where)
    except FileNotFoundError:
        raise ControllerError(f'"{name}": there is no file {where}') from None
    except ModuleNotFoundError as error:
        raise ControllerError(f'"{name}": {error}') from None
    except Exception as error:  # noqa: BLE001 - whatever the module does when it is imported
        raise ControllerError(f'"{name}": {_told(error, where)}') from None
    found = getattr(module, wanted, None)
    if _is_controller(found):
        return found
    known = sorted(key for key, value in vars(module).items() if _is_controller(value))
    if found is not None:
        raise ControllerError(f'"{name}": {wanted} is no class derived from longfat.CongestionController')
    near = difflib.get_close_matches(wanted, known, n=1)
    hint = f'; did you mean "{near[0]}"?' if near else ""
    there = ", ".join(known) or "none"
    raise ControllerError(f'"{name}": no class {wanted} in {where}; controllers there: {there}{hint}')


def _is_controller(value: object) -> TypeGuard[type[CongestionController]]:
    return (
        isinstance(value, type)
        and issubclass(value, CongestionController)
        and value is not CongestionController
    )


_LOADED: dict[str, tuple[str, ModuleType]] = {}


def _from_file(where: str) -> ModuleType:
    """The module of a file; anew where its text has changed."""
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
    # What it defines is found under its module's name, by dataclasses for one.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    _LOADED[key] = (content, module)
    return module


def _told(error: Exception, where: str) -> str:
    """An exception in one line, with the line of the file where it arose."""
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
    """What the native part asks of a name: class, help, JSON Schema of its settings, which hooks it has."""
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
