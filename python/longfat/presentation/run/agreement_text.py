"""Agreement of worlds as text: limits, differences, possible causes and a summary."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from longfat.analysis import agreement
from longfat.presentation import formatting, names
from longfat.presentation.formatting import digits, quantity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longfat.analysis.agreement import Agreement, Difference, Measure
    from longfat.analysis.agreement_causes import Cause

_COUNTERS = {
    "timeouts": "timeouts",
    "retransmissions": "retransmissions",
    "queue_mean_packets": "mean queue in packets",
}


def limit(measure: Measure) -> str:
    """The limit of a difference: "10 % or 1 ms"; empty without one."""
    parts = [f"{measure.part * 100:g} %"] if measure.part is not None else []
    if measure.amount is not None:
        scale, unit = formatting.scale_for([measure.amount], names.unit_of(measure.metric))
        parts.append(f"{measure.amount / scale:g} {unit}".strip())
    return " or ".join(parts)


def change(difference: Difference) -> str:
    """A difference: relative if its limit is, else in the metric's unit."""
    unit = names.unit_of(difference.measure.metric)
    amount = f"{'+' if difference.change.mean >= 0 else '-'}{quantity(abs(difference.change.mean), unit)}"
    if difference.measure.part is None or not math.isfinite(difference.ratio.mean):
        return amount
    part = f"{(difference.ratio.mean - 1) * 100:+.1f} %"
    return part if difference.measure.amount is None else f"{part}, {amount}"


def bounds(difference: Difference) -> str:
    """The interval of a difference, in the unit of `change`; empty if it is unknown."""
    if difference.measure.part is not None and not math.isnan(difference.ratio.low):
        low, high = (difference.ratio.low - 1) * 100, (difference.ratio.high - 1) * 100
        end = f"{high:+.1f}]" if math.isfinite(high) else f"+{formatting.UNBOUNDED}"
        return f"[{low:+.1f}, {end} %"
    low, high = difference.change.low, difference.change.high
    if difference.measure.part is not None or not (math.isfinite(low) and math.isfinite(high)):
        return ""
    return f"[{digits(low)}, {digits(high)}]"


def with_bounds(difference: Difference) -> str:
    """A difference with its interval."""
    return f"{change(difference)} {bounds(difference)}".rstrip()


def place(cell: Agreement) -> str:
    """The cell: "vegas at path.rate = 20Mbit/s"."""
    point = formatting.place(cell.cell.params)
    return f"{cell.cell.display_name}{f' at {point}' if point else ''}"


def summary(found: Sequence[Agreement]) -> list[str]:
    """For each pair of worlds, the number of cells that agree in each metric, and the largest difference.

    >>> summary([])
    []
    """
    lines = []
    for cells in agreement.by_world(found):
        counts = "; ".join(_count(cells, one) for one in agreement.measured(cells) if one.is_limited)
        lines.append(f"{cells[0].cell.world} and {cells[0].other_world}: {counts}")
        lines.append(f"largest difference: {_named(*agreement.furthest(cells))}")
    return lines


def _count(cells: Sequence[Agreement], measure: Measure) -> str:
    all_of = agreement.differences(cells, measure.metric)
    close = sum(not one.misses for one in all_of)
    unsure = sum(one.unsure for one in all_of)
    phrase = names.metric_phrase(measure.metric)
    open_ = f" (uncertain in {unsure}; add repeats)" if unsure else ""
    return f"{phrase} within {limit(measure)} in {close} of {len(all_of)} cells{open_}"


def _named(cell: Agreement, difference: Difference) -> str:
    return f"{place(cell)}, {names.metric_phrase(difference.measure.metric)} {with_bounds(difference)}"


def misses(cell: Agreement) -> str:
    """A cell that misses, with the differences beyond the limit."""
    beyond = (f"{names.metric_phrase(one.measure.metric)} {with_bounds(one)}" for one in cell.misses)
    return f"{place(cell)}: {', '.join(beyond)}"


def causes(cell: Agreement) -> str:
    """Possible causes of a miss, in a line."""
    return "; ".join(map(_cause, cell.causes))


def _cause(cause: Cause) -> str:
    figures = cause.figures
    match cause.kind:
        case "uncertain":
            return "too uncertain to decide; add repeats"
        case "short-path":
            trip = quantity(figures["rtt"], "s") if figures["rtt"] > 0 else "no time"
            return f"the path's round trip takes {trip}: the computer's scheduler may add more than that"
        case "late":
            return (
                f"the emulator was late by {quantity(figures['late'], 's')} or more in 1 of 100 cases, "
                f"{figures['share'] * 100:.0f} % of a round trip; the worlds differ by "
                f"{figures['apart'] * 100:.0f} %"
            )
        case "stalled-timeouts":
            return (
                f"the emulator stalled for up to {quantity(figures['most'], 's')}, which may cause timeouts"
            )
        case "stalled":
            stalled, trial = quantity(figures["most"], "s"), quantity(figures["trial"], "s")
            return f"the emulator stalled for up to {stalled} of a trial's {trial}"
        case "counter":
            text = f"{_COUNTERS[cause.name]}: {digits(figures['first'])} and {digits(figures['other'])}"
            if "each" in figures:
                text += f" per trial, about {quantity(figures['each'], 's')} each"
            return text
        case "smallest-rtt":
            return f"the smallest RTT was {_both(cause)}: the queue drained further in {cause.name}"
        case "median-rtt":
            ratio = f"{formatting.TIMES}{digits(figures['first'] / figures['other'], 2)}"
            return f"the median RTT was {_both(cause)} ({ratio} in goodput if a window limits)"
        case "fast":
            return f"{figures['rate']:,.0f} packets/s may exceed what processes on one computer can handle"
        case "failures":
            return f"{figures['count']:.0f} trials failed in the world {cause.name}"
        case _:
            return "RTT, losses and queues are similar: the records show no cause"


def _both(cause: Cause) -> str:
    return f"{quantity(cause.figures['first'], 's')} and {quantity(cause.figures['other'], 's')}"
