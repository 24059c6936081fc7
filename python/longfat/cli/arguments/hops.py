"""Hops as a person writes them on the command line: "rate=T1 delay=5ms processing=1ms"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from longfat.analysis.theory.latency import Hop
from longfat.study import units

if TYPE_CHECKING:
    from longfat.analysis.prediction.layout import Link

NAMED_RATES = {"56k": 56e3, "T1": 1.544e6, "E1": 2.048e6, "E3": 34.368e6, "T3": 45e6}
"""Lines by their names, in bit/s; T3 as it is rounded in speech (44.736 Mbit/s)."""

_KEYS = {"rate": "rate", "delay": "duration", "processing": "duration", "loss": "proportion"}
_MOST = 255
"""As many as a packet's time to live allows."""

Ways = tuple[tuple[Hop, ...], tuple[Hop, ...]]
"""The hops of the way there and those of the way back, each in the order in which a packet meets them."""


def read(texts: Sequence[str]) -> Ways:
    """Hops from near to far; ValueError says what is wrong.

    Keys are rate, delay, processing and loss, each with `reverse.` before it for the way back, which is else
    alike, and count for several hops that are alike.

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
        raise ValueError(f"--hop: {len(there)} hops are too many: at most {_MOST}")
    return tuple(there), tuple(reversed(back))


def of_model(path: Path) -> tuple[Ways, list[str]]:
    """The hops of a path model file, and what the file says of them that has no part in the time."""
    from longfat.analysis.prediction.layout import layout
    from longfat.analysis.prediction.model import NoClosedFormError
    from longfat.study.path_model import read as read_model

    spec = {
        "path": read_model(path).path,
        "protocol": {"kind": "udp"},
        "workload": {"kind": "bulk", "rate": "1Mbit/s", "duration": "1s"},
    }
    try:
        (flow,) = layout(spec).flows
    except NoClosedFormError as error:
        raise ValueError(f"{path}: {error}") from None
    ways = (flow.forward, flow.reverse)
    left_out = [] if all(link.steady for way in ways for link in way) else ["what varies with time"]
    there, back = (tuple(Hop(link.rate, link.delay, loss=_loss(link)) for link in way) for way in ways)
    if any(_is_bursty(link) for way in ways for link in way):
        left_out.append("losses in bursts, or of half of all packets")
    return (there, back), left_out


def _loss(link: Link) -> float:
    return 0.0 if _is_bursty(link) else link.loss


def _is_bursty(link: Link) -> bool:
    """Whether losses have no probability of their own."""
    from longfat.analysis.prediction.model import NoClosedFormError

    try:
        return link.loss < 0
    except NoClosedFormError:
        return True


def with_processing(ways: Ways, seconds: float) -> Ways:
    """The same hops, each of whose senders takes so much longer."""
    there, back = (tuple(replace(hop, processing=hop.processing + seconds) for hop in way) for way in ways)
    return there, back


def rate(text: str) -> float:
    """A rate with its unit, or the name of a line.

    >>> rate("T1"), rate("10Mbit/s")
    (1544000.0, 10000000.0)
    """
    found = NAMED_RATES.get(text) or quantity(text, "rate")
    if not found:
        raise ValueError(f'"{text}" is not above 0')
    return found


def quantity(text: str, dimension: str) -> float:
    """A text as a number in its base unit; ValueError where it is of another kind or below zero."""
    found = units.parse(text)
    if found.dimension != dimension:
        raise ValueError(f'"{text}" is no {dimension}: write it like {_EXAMPLES[dimension]}')
    if found.value < 0:
        raise ValueError(f'"{text}" is below 0')
    return float(found.value)


_EXAMPLES = {"rate": '"10Mbit/s" or T1', "duration": '"5ms"', "size": '"1428B"', "proportion": '"2%"'}


def _hop(text: str) -> tuple[Hop, Hop, int]:
    forward: dict[str, float] = {}
    reverse: dict[str, float] = {}
    count = 1
    for word in re.split(r"[,\s]+", text.strip()):
        key, equals, value = word.partition("=")
        if not equals or not value:
            raise ValueError(f'--hop: "{word}": write KEY=VALUE, e.g. "rate=10Mbit/s delay=5ms"')
        into, name = (reverse, key.removeprefix("reverse.")) if key.startswith("reverse.") else (forward, key)
        if key != "count" and name not in _KEYS:
            known = ", ".join((*_KEYS, "reverse.KEY", "count"))
            raise ValueError(f'--hop: "{key}" is not known: allowed: {known}')
        try:
            if key == "count":
                count = _count(value)
            else:
                into[name] = rate(value) if name == "rate" else quantity(value, _KEYS[name])
        except ValueError as error:
            raise ValueError(f"--hop: {key}: {error}") from None
    return Hop(**forward), Hop(**{**forward, **reverse}), count


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= _MOST:
        raise ValueError(f'"{text}" is no number from 1 to {_MOST}')
    return int(text)
