"""The conclusion of a diagnosis in one or two sentences, and the numbers that decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from longfat.analysis import diagnosis
from longfat.analysis.diagnosis import BANDWIDTH, LATENCY, LOSS, WINDOW, PathFigures
from longfat.presentation import names
from longfat.presentation.formatting import DASH, digits, quantity
from longfat.presentation.measured.estimates import with_bounds
from longfat.presentation.text_table import TextTable
from longfat.results.run import Interval

REFERENCE = "cubic"
"""The controller that the conclusion compares the fastest one with: the default of most systems."""
CLEARLY_FASTER = 1.1
SCOPE = (
    "Scope: the path, not a program's connection; its own windows and pauses can limit it further "
    "(ss -ti: rwnd_limited, sndbuf_limited, app_limited)"
)
"""What a diagnosis does not examine."""


def conclusion(path: PathFigures, goodputs: Mapping[str, float], relieved: float | None) -> str:
    """Returns the cause with goodputs (bit/s by controller), and a sentence about a long queue.

    `relieved` is the 99th percentile of the queueing delay in s with FQ-CoDel at the bottleneck, simulated.
    """
    decisive = diagnosis.decisive(path)
    shown = _goodputs(goodputs) if goodputs else f"it allows {quantity(decisive.rate, 'bit/s')}"
    found = [f"Limit of the path: {decisive.cause}; {shown} (of {quantity(path.rate, 'bit/s')})"]
    if decisive.cause == WINDOW:
        needed = quantity(path.rate * path.round_trip / 8, "B")
        found = [f"Limit on the path: window; {shown} (of {quantity(path.rate, 'bit/s')})"]
        found.append(f"a window of {needed} would fill the path")
    text = "; ".join(found) + "."
    if path.has_long_queue and path.queueing is not None:
        text += f" The queue adds {_at_least(path)}{quantity(path.queueing, 's')} under load"
        if relieved is not None:
            text += "; with FQ-CoDel at the bottleneck, 99 % of packets would wait for at most "
            text += quantity(relieved, "s")
        text += "."
    return text


def _at_least(path: PathFigures) -> str:
    return "at least " if path.queue_limit == "lower limit" else ""


def _goodputs(goodputs: Mapping[str, float]) -> str:
    """Returns the goodput of CUBIC, and of the fastest controller if it is clearly faster."""
    fastest = max(goodputs, key=lambda name: goodputs[name])
    shown = [REFERENCE] if REFERENCE in goodputs else [fastest]
    if goodputs[fastest] > CLEARLY_FASTER * goodputs[shown[0]]:
        shown.append(fastest)
    return ", ".join(f"{names.protocol(name)} {quantity(goodputs[name], 'bit/s')}" for name in shown)


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
    text = f"Queue under load: {judged}, RTT {before} idle, {_at_least(path)}{after} under load"
    if path.queue_limit == "lower limit":
        text += "; predicted with queues of one to two times the measured wait"
    if path.queue_limit == "assumed":
        text += "; its limit is unknown, because load did not fill it: predicted with queues of 0.5 to 2 RTT"
    return text


Cell = tuple[Interval | None, Sequence[float], bool | None]
"""A metric of a controller: its interval, values between kernels, and whether the interval contains them."""


def table(rows: Sequence[tuple[str, Sequence[Cell]]]) -> TextTable:
    """Returns a row for each controller with goodput (bit/s) and RTT (s): means and intervals.

    The means between kernels follow, if there are any; "outside" marks those outside of the interval.
    """
    verified = any(values for _, cells in rows for _, values, _ in cells)
    titles = ("Goodput (Mbit/s)", "RTT, median (ms)")
    head = ["Controller", *(column for title in titles for column in _columns(title, verified=verified))]
    body = [
        [
            names.protocol(name),
            *(
                text
                for cell, scale in zip(cells, (1e6, 1e-3), strict=True)
                for text in _cell(cell, scale, verified=verified)
            ),
        ]
        for name, cells in rows
    ]
    return TextTable(head, body, right=range(1, len(head)))


def _columns(title: str, *, verified: bool) -> list[str]:
    return [title, "between kernels"] if verified else [title]


def _cell(cell: Cell, scale: float, *, verified: bool) -> list[str]:
    interval, values, is_covered = cell
    found = [DASH if interval is None else with_bounds(interval, scale)]
    if verified:
        mean = digits(sum(values) / len(values) / scale) if values else DASH
        found.append(f"{mean} outside" if is_covered is False else mean)
    return found
