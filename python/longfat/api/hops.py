"""Hops of a path as text: "rate=T1 delay=5ms processing=1ms"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path as File
from typing import TYPE_CHECKING, Any

from longfat.analysis.theory.latency import Hop
from longfat.api.quantities import quantity
from longfat.system.parameters import ParameterError

if TYPE_CHECKING:
    from longfat.analysis.prediction.layout import Link

NAMED_RATES = {"56k": 56e3, "T1": 1.544e6, "E1": 2.048e6, "E3": 34.368e6, "T3": 45e6}
"""Rates of named lines in bit/s; T3 is the usual rounding of 44.736 Mbit/s."""

_KEYS = {"rate": "rate", "delay": "duration", "processing": "duration", "loss": "proportion"}
_MOST = 255
"""Hops that a packet's time to live allows."""

Ways = tuple[tuple[Hop, ...], tuple[Hop, ...]]
"""The hops of the forward and of the reverse direction, each in the order of a packet's way."""


def read(texts: Sequence[str]) -> Ways:
    """Returns the hops of both directions. Raises ParameterError.

    Texts go from near to far. Keys are rate, delay, processing and loss; with the prefix `reverse.` they
    apply to the reverse direction, which is otherwise the same. `count` repeats a hop.

    >>> there, back = read(["rate=T1 delay=5ms", "rate=10Mbit/s reverse.rate=1Mbit/s count=2"])
    >>> [hop.rate for hop in there], [hop.rate for hop in back]
    ([1544000.0, 10000000.0, 10000000.0], [1000000.0, 1000000.0, 1544000.0])
    """
    there: list[Hop] = []
    back: list[Hop] = []
    for text in texts:
        forward, reverse, count = _hop(text)
        there += [forward] * count
        back += [reverse] * count
    if len(there) > _MOST:
        raise ParameterError("hop", f"{len(there)} hops are out of range: 1 to {_MOST}")
    return tuple(there), tuple(reversed(back))


def of_model(file: File) -> tuple[Ways, list[str]]:
    """Returns the hops of a path model file, and the effects in it that the time does not include."""
    from longfat.study.path_model import read as read_model

    return of_path(read_model(file).path, str(file))


def of_path(path: dict[str, Any], name: str = "path") -> tuple[Ways, list[str]]:
    """Returns the hops of a path's table, and the effects in it that the time does not include.

    Raises ValueError, with the name, for a path without a closed form.
    """
    from longfat.analysis.prediction.layout import layout
    from longfat.analysis.prediction.model import NoClosedFormError

    spec = {
        "path": path,
        "protocol": {"kind": "udp"},
        "workload": {"kind": "bulk", "rate": "1Mbit/s", "duration": "1s"},
    }
    try:
        (flow,) = layout(spec).flows
    except NoClosedFormError as error:
        raise ValueError(f"{name}: {error}") from None
    ways = (flow.forward, flow.reverse)
    left_out = [] if all(link.steady for way in ways for link in way) else ["variation over time"]
    there, back = (tuple(Hop(link.rate, link.delay, loss=_loss(link)) for link in way) for way in ways)
    if any(_is_bursty(link) for way in ways for link in way):
        left_out.append("losses in bursts, or of half of all packets or more")
    return (there, back), left_out


def _loss(link: Link) -> float:
    return 0.0 if _is_bursty(link) else link.loss


def _is_bursty(link: Link) -> bool:
    """Returns whether the losses of a link have no constant probability."""
    from longfat.analysis.prediction.model import NoClosedFormError

    try:
        return link.loss < 0
    except NoClosedFormError:
        return True


def with_processing(ways: Ways, seconds: float) -> Ways:
    """Returns the hops with more processing time (in s) at each sending node."""
    there, back = (tuple(replace(hop, processing=hop.processing + seconds) for hop in way) for way in ways)
    return there, back


def rate(text: str) -> float:
    """Returns a rate with its unit, or of a named line, in bit/s.

    >>> rate("T1"), rate("10Mbit/s")
    (1544000.0, 10000000.0)
    """
    found = NAMED_RATES.get(text) or quantity(text, "rate")
    if not found:
        raise ValueError(f'"{text}" is out of range: above 0')
    return found


def _hop(text: str) -> tuple[Hop, Hop, int]:
    forward: dict[str, float] = {}
    reverse: dict[str, float] = {}
    count = 1
    for part in re.split(r"[,\s]+", text.strip()):
        key, equals, value = part.partition("=")
        if not equals or not value:
            raise ParameterError("hop", f'"{part}": write KEY=VALUE, e.g. "rate=10Mbit/s delay=5ms"')
        into, name = (reverse, key.removeprefix("reverse.")) if key.startswith("reverse.") else (forward, key)
        if key != "count" and name not in _KEYS:
            known = ", ".join((*_KEYS, "reverse.KEY", "count"))
            raise ParameterError("hop", f"{key}: unknown key; allowed: {known}")
        try:
            if key == "count":
                count = _count(value)
            else:
                into[name] = rate(value) if name == "rate" else quantity(value, _KEYS[name])
        except ValueError as error:
            raise ParameterError("hop", f"{key}: {error}") from None
    for keys in (forward, reverse):
        if keys.get("loss", 0.0) >= 1:
            raise ParameterError("hop", "loss: must be below 100%")
    return Hop(**forward), Hop(**{**forward, **reverse}), count


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= _MOST:
        raise ValueError(f'"{text}" is out of range: 1 to {_MOST}')
    return int(text)
