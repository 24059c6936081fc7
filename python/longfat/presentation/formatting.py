"""Numbers as text: quantities with fitting units and three significant digits, intervals, sweep points."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from longfat.study.labels import label as label  # noqa: PLC0414 - re-exported

if TYPE_CHECKING:
    from longfat.analysis.metric_range import Range
    from longfat.results.run import Interval

DASH = "\N{EN DASH}"
"""Replaces a missing number."""

DETERMINISTIC = "deterministic"
"""A cell whose trials agree exactly in every metric. Its mean has no interval; a note explains that."""

UNBOUNDED = "\N{INFINITY})"
"""The end of an interval without an upper bound."""

TIMES = "\N{MULTIPLICATION SIGN}"
"""Precedes a ratio."""

# Not from the vocabulary of studies, which takes longer to read than most commands to start.
_LADDERS = {
    "bit/s": ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")),
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")),
    "B": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")),
}


def scale_for(values: Iterable[float], unit: str) -> tuple[float, str]:
    """The scale and the unit for a whole column or axis.

    The unit fits the largest value: no number has more than three digits before the point.

    >>> scale_for([2.5e6, 4e5], "bit/s"), scale_for([0.0004], "s"), scale_for([7], "packets")
    ((1000000.0, 'Mbit/s'), (1e-06, 'µs'), (1.0, 'packets'))
    """
    largest = max((abs(v) for v in values if math.isfinite(v)), default=0.0)
    ladder = _LADDERS.get(unit)
    if ladder is None or largest == 0:
        return 1.0, unit
    return next((one for one in ladder if largest >= one[0] * 0.9995), ladder[-1])


def digits(value: float, significant: int = 3) -> str:
    """A number with `significant` digits and without exponent.

    >>> digits(3.14159), digits(1234.5), digits(0.00123), digits(0)
    ('3.14', '1234', '0.00123', '0')
    """
    if not math.isfinite(value):
        return DASH
    if value == 0:
        return "0"
    decimals = max(0, significant - 1 - math.floor(math.log10(abs(value)) + 1e-12))
    return f"{value:.{min(decimals, 12)}f}"


def rounded(count: float) -> str:
    """An estimated count, with two digits.

    >>> rounded(1234)
    '1,200'
    """
    return f"{float(f'{count:.2g}'):,.0f}"


def quantity(value: float, unit: str) -> str:
    """A value with the unit that fits it.

    >>> quantity(2.964e6, "bit/s"), quantity(0.0105, "s"), quantity(12, "packets"), quantity(0.5, "")
    ('2.96 Mbit/s', '10.5 ms', '12.0 packets', '0.500')
    """
    scale, name = scale_for([value], unit)
    return f"{digits(value / scale)} {name}".strip()


def plus_minus(
    interval: Interval, scale: float = 1.0, within: Range | None = None, resolution: float = 0.0
) -> str:
    """A mean ± the half-width of its interval, rounded to the precision of the half-width.

    The half-width is the larger distance from the mean to a bound. If it leaves the range of possible values,
    the bounds are there instead. Equal values that are only known within a `resolution` have this half-width.

    >>> from longfat.analysis.metric_range import Range
    >>> from longfat.results.run import Interval
    >>> plus_minus(Interval(2.964e6, 2.85e6, 3.07e6), 1e6), plus_minus(Interval(5.0, 5.0, 5.0))
    ('2.96 ±0.11', '5.00 ±0')
    >>> plus_minus(Interval(4.0, float("nan"), float("nan")))
    '4.00 ±?'
    >>> plus_minus(Interval(5.5e6, 0.0, 1.53e7), 1e6, Range(0.0))
    '5.5 [0, 15.3]'
    >>> plus_minus(Interval(0.0127, 0.0127, 0.0127), 1e-3, resolution=8.2e-6)
    '12.7 ±<0.1'
    """
    if not math.isfinite(interval.mean):
        return DASH
    mean = interval.mean / scale
    if not ends(interval):
        return f"{digits(mean)} ±?"
    half = max(interval.mean - interval.low, interval.high - interval.mean) / scale
    is_zero = half <= abs(mean) * 1e-9
    if is_zero and not resolution:
        return f"{digits(mean)} ±0"
    half = max(half, resolution / scale)
    decimals = max(0, 1 - math.floor(math.log10(half)))
    most = max(0, 2 - math.floor(math.log10(abs(mean)))) if mean else decimals
    decimals = min(decimals, max(most, 0), 12)
    shown = f"{half:.{decimals}f}"
    if float(shown) == 0:
        shown = f"<{10.0**-decimals:.{decimals}f}"
    elif is_zero:
        shown = f"<{shown}"
    elif within is not None and within.excludes_half_width(interval):
        low, high = (f"{bound:.{decimals}f}" if bound else "0" for bound in ends(interval, scale).values())
        return f"{mean:.{decimals}f} [{low}, {high}]"
    return f"{mean:.{decimals}f} ±{shown}"


def bounds(interval: Interval, scale: float = 1.0, significant: int = 3) -> str:
    """An interval in brackets, with `significant` digits; empty if it is unknown.

    >>> from longfat.results.run import Interval
    >>> bounds(Interval(1.3, 1.25, 1.352)), bounds(Interval(1.4, 0.8, math.inf))
    ('[1.25, 1.35]', '[0.800, ∞)')
    """
    if math.isnan(interval.low) or math.isnan(interval.high):
        return ""
    low, high = (digits(one / scale, significant) for one in (interval.low, interval.high))
    return f"[{low}, {f'{high}]' if math.isfinite(interval.high) else UNBOUNDED}"


def ends(interval: Interval, scale: float = 1.0) -> dict[str, float]:
    """The bounds of an interval as `low` and `high` of a chart; empty if one is unknown.

    >>> from longfat.results.run import Interval
    >>> ends(Interval(1.5, 1.0, 2.0)), ends(Interval(1.4, 0.8, math.inf))
    ({'low': 1.0, 'high': 2.0}, {})
    """
    known = math.isfinite(interval.low) and math.isfinite(interval.high)
    return {"low": interval.low / scale, "high": interval.high / scale} if known else {}


def place(params: Mapping[str, Any]) -> str:
    """A point of a sweep as the study file writes it.

    >>> place({"path.loss": "2%", "path.delay": "5ms"})
    'path.loss = 2%, path.delay = 5ms'
    """
    return ", ".join(f"{key} = {label(value)}" for key, value in params.items())
