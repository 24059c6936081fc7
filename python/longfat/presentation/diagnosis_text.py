"""The conclusion of a diagnosis in one or two sentences, and the numbers that decide."""

from __future__ import annotations

from collections.abc import Mapping

from longfat.analysis import diagnosis
from longfat.analysis.diagnosis import BANDWIDTH, LATENCY, LOSS, WINDOW, PathFigures
from longfat.presentation import names
from longfat.presentation.formatting import digits, quantity

REFERENCE = "cubic"
"""The controller that the conclusion compares the fastest one with: the default of most systems."""
CLEARLY_FASTER = 1.1
_NAMES = {"westwood": "Westwood+", "bbr": "BBR", "bbr1": "BBRv1", "bbr-tolerant": "BBR, loss-tolerant"}


def controller(kind: str) -> str:
    """Returns the name of a controller.

    >>> controller("bbr1"), controller("cubic")
    ('BBRv1', 'CUBIC')
    """
    return _NAMES.get(kind, names.protocol(kind))


def conclusion(path: PathFigures, goodputs: Mapping[str, float], relieved: float | None) -> str:
    """Returns the cause with goodputs (bit/s by controller), and a sentence about a long queue.

    `relieved` is the queueing delay in s with FQ-CoDel at the bottleneck, from a simulation.
    """
    cause = diagnosis.decisive(path).cause
    found = [f"{cause.capitalize()}-limited: {_goodputs(goodputs)} (of {quantity(path.rate, 'bit/s')})"]
    if cause == WINDOW:
        needed = quantity(path.rate * path.round_trip / 8, "B")
        found.append(f"a window of {needed} would fill the path")
    text = "; ".join(found) + "."
    if path.has_long_queue and path.queueing is not None:
        text += f" The queue adds {quantity(path.queueing, 's')} under load"
        if relieved is not None:
            text += f"; FQ-CoDel at the bottleneck would reduce this to {quantity(relieved, 's')}"
        text += "."
    return text


def _goodputs(goodputs: Mapping[str, float]) -> str:
    """Returns the goodput of CUBIC, and of the fastest controller if it is clearly faster."""
    fastest = max(goodputs, key=lambda name: goodputs[name])
    shown = [REFERENCE] if REFERENCE in goodputs else [fastest]
    if goodputs[fastest] > CLEARLY_FASTER * goodputs[shown[0]]:
        shown.append(fastest)
    return ", ".join(f"{controller(name)} {quantity(goodputs[name], 'bit/s')}" for name in shown)


def reasons(path: PathFigures) -> list[str]:
    """Returns a line for each cause with the rate that it alone allows; the one that decides is marked."""
    decisive = diagnosis.decisive(path)
    return [
        f"{_reason(path, one.cause)} allows {quantity(one.rate, 'bit/s')}"
        + (" (decides)" if one == decisive else "")
        for one in diagnosis.ceilings(path)
    ]


def _reason(path: PathFigures, cause: str) -> str:
    rtt = f"an RTT of {quantity(path.round_trip, 's')}"
    if cause == BANDWIDTH:
        return f"Bandwidth: a bottleneck of {quantity(path.rate, 'bit/s')}"
    if cause == WINDOW:
        return f"Window: {quantity(path.window, 'B')} per {rtt.removeprefix('an ')}"
    if cause == LOSS:
        return f"Loss: {digits(path.loss * 100)} % at {rtt}, with CUBIC,"
    size, rounds = path.size or 0.0, diagnosis.round_trips(path.size or 0.0)
    assert cause == LATENCY
    return f"Latency: {quantity(size, 'B')} in {digits(rounds, 2)} RTTs of {quantity(path.round_trip, 's')}"


def queue(path: PathFigures) -> str:
    """Returns the line about the queue under load."""
    if path.queueing is None:
        return "Queue under load: not measured"
    loaded = path.round_trip + path.queueing
    judged = "long" if path.has_long_queue else "short"
    before, after = quantity(path.round_trip, "s"), quantity(loaded, "s")
    return f"Queue under load: {judged}, RTT {before} idle, {after} under load"
