"""Numbers for people: a unit that fits, three significant digits, the same everywhere."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from longfat.study import units
from longfat.study.labels import label as label  # noqa: PLC0414 - offered here too
from longfat.study.vocabulary import AT_HOST, metrics, short_metric, whole_metric

if TYPE_CHECKING:
    from longfat.results import CellResult, Interval

DASH = "\N{EN DASH}"
"""Stands where there is no number."""

DETERMINISTIC = "deterministic"
"""Stands in place of an interval where several trials agree exactly in every metric."""

UNBOUNDED = "\N{INFINITY})"
"""The end of an interval without an upper bound."""

TIMES = "\N{MULTIPLICATION SIGN}"
"""Before a ratio."""

_LADDERS: dict[str, tuple[tuple[float, str], ...]] = {
    "bit/s": ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1, "bit/s")),
    "s": ((1, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")),
    "B": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B")),
}

_KEY_TITLES = {
    "path.loss": "Packet loss",
    "path.delay": "One-way delay",
    "path.rate": "Link rate",
    "path.queue": "Queue",
    "path.jitter": "Jitter",
    "path.reorder": "Reordering",
    "path.duplicate": "Duplication",
    "path.corrupt": "Corruption",
    "protocol.window": "Window",
    "protocol.rto": "Retransmission timeout",
    "protocol.mss": "Payload per packet",
    "protocol.congestion": "Controller",
    "workload.size": "Size",
    "workload.request_size": "Size of a request",
    "workload.response_size": "Size of a response",
    "workload.flows": "Flows",
    "workload.arrivals": "Flows that arrive",
    "workload.sizes": "Sizes of flows",
    "topology.paths": "Paths",
    "topology.path.queue": "Queue",
    "topology.path.loss": "Packet loss",
    "protocol.subflows": "Subflows, most",
    "topology.bottleneck.rate": "Bottleneck rate",
    "topology.bottleneck.delay": "Bottleneck delay",
    "topology.bottleneck.queue": "Bottleneck queue",
    "topology.bottleneck.loss": "Bottleneck loss",
}
_METRIC_TITLES = {
    "rtt_min": "RTT, least",
    "rtt_mean": "RTT, mean",
    "rtt_p50": "RTT, median",
    "rtt_p99": "RTT, 99th percentile",
    "queueing_delay_mean": "Queueing delay, mean",
    "queueing_delay_p50": "Queueing delay, median",
    "queueing_delay_p99": "Queueing delay, 99th percentile",
    "queue_mean_packets": "Queue, mean",
    "queue_max_packets": "Queue, longest",
    "fct_min": "Flow completion time, least",
    "wire_min": "Time on the wire, least",
    "wire_p50": "Time on the wire, median",
    "stack_p50": "Time in the stack, median",
    "packets_per_request": "Packets a request",
    "fct_mean": "Flow completion time, mean",
    "fct_p50": "Flow completion time, median",
    "fct_p95": "Flow completion time, 95th percentile",
    "fct_p99": "Flow completion time, 99th percentile",
    "flow_throughput": "Size over completion time, mean",
    "jain": "Jain's index",
    "share": "Share of all goodput",
    "max_min_distance": "Distance from max-min shares",
    "traffic_goodput": "Goodput of the other traffic",
}
_COLUMN_TITLES = {
    "retransmissions": "sent again",
    "queue_mean_packets": "queue",
    "queue_max_packets": "longest queue",
    "traffic_goodput": "others' goodput",
    "max_min_distance": "off max-min",
}
_BARE_UNITS = {"protocol.window": "packets"}
_AXES: dict[str, tuple[Fraction, str]] = {
    "proportion": (Fraction(1, 100), "%"),
    "duration": (Fraction(1, 1000), "ms"),
    "rate": (Fraction(10**6), "Mbit/s"),
    "frequency": (Fraction(1), "/s"),
    "size": (Fraction(1000), "kB"),
    "packets": (Fraction(1), "packets"),
}


def unit_of(metric: str) -> str:
    """The base unit of a metric's column, as the vocabulary declares it; empty for a plain number."""
    declared = str(metrics().get(whole_metric(metric), {}).get("unit", ""))
    return "" if declared in ("1", "ratio") else declared


def metric_title(metric: str) -> str:
    """A metric as a heading: `goodput_bps` is "Goodput", `goodput_bps@s1` is "Goodput of s1".

    One of a class of flows names the class: `fct_mean_s@G0` is "Flow completion time, mean, class G0".
    """
    short, _, host = short_metric(metric).partition(AT_HOST)
    title = _METRIC_TITLES.get(short, short.replace("_", " ").capitalize())
    if is_class_of_flows(host):
        return f"{title}, class {host}"
    return f"{title} of {host}" if host else title


def metric_phrase(metric: str) -> str:
    """A metric inside a sentence.

    >>> metric_phrase("goodput_bps"), metric_phrase("rtt_min_s"), metric_phrase("goodput_bps@s1")
    ('goodput', 'RTT, least', 'goodput of s1')
    """
    title = metric_title(metric)
    return title if title.startswith(("RTT", "Jain")) else title[:1].lower() + title[1:]


def is_class_of_flows(name: str) -> bool:
    """Whether what stands after a metric's @ is a class of flows by size, rather than a host.

    >>> is_class_of_flows("G0"), is_class_of_flows("s1")
    (True, False)
    """
    return re.fullmatch(r"G\d+", name) is not None


def class_bounds(classes: Sequence[str]) -> list[str]:
    """What each class of a workload's bounds holds.

    >>> class_bounds(["100kB", "300kB"])
    ['G0: up to 100kB', 'G1: up to 300kB', 'G2: above']
    """
    held = [f"up to {label(bound)}" for bound in classes] + ["above"]
    return [f"G{number}: {told}" for number, told in enumerate(held)]


def column_title(metric: str) -> str:
    """A metric as the heading of a narrow column.

    >>> column_title("retransmissions"), column_title("rtt_p50_s"), column_title("goodput_bps@s1")
    ('sent again', 'rtt p50', 'goodput s1')
    """
    short = short_metric(metric)
    return _COLUMN_TITLES.get(short, short.replace("_", " ").replace(AT_HOST, " "))


def key_title(key: str) -> str:
    """A swept key as a heading: `path.loss` is "Packet loss"; one of a protocol alone says which."""
    root, _, rest = key.partition(".")
    if root in ("protocols", "traffic"):
        name, _, rest = rest.partition(".")
        title = key_title(f"protocol.{rest}") if root == "protocols" else _words(rest)
        return f"{title} of {name}"
    return _KEY_TITLES.get(key) or _words(rest)


def _words(key: str) -> str:
    return key.replace(".", " ").replace("_", " ").capitalize()


def scale_for(values: Iterable[float], unit: str) -> tuple[float, str]:
    """One unit for a whole column or axis: what to divide by, and its name.

    It fits the largest value, so that no number has more than three digits before the point.

    >>> scale_for([2.5e6, 4e5], "bit/s"), scale_for([0.0004], "s"), scale_for([7], "packets")
    ((1000000.0, 'Mbit/s'), (1e-06, 'µs'), (1.0, 'packets'))
    """
    largest = max((abs(v) for v in values if math.isfinite(v)), default=0.0)
    ladder = _LADDERS.get(unit)
    if ladder is None:
        return 1.0, unit
    if largest == 0:
        return next((float(s), name) for s, name in ladder if s == 1)
    for scale, name in ladder:
        if largest >= scale * 0.9995:
            return float(scale), name
    return float(ladder[-1][0]), ladder[-1][1]


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


def quantity(value: float, unit: str) -> str:
    """A value with the unit that fits it.

    >>> quantity(2.964e6, "bit/s"), quantity(0.0105, "s"), quantity(12, "packets"), quantity(0.5, "")
    ('2.96 Mbit/s', '10.5 ms', '12.0 packets', '0.500')
    """
    scale, name = scale_for([value], unit)
    return f"{digits(value / scale)} {name}".strip()


def half_width(interval: Interval) -> float:
    """Half an interval's width, NaN where it is unknown: the larger side where it is lopsided."""
    if not (math.isfinite(interval.low) and math.isfinite(interval.high)):
        return math.nan
    return max(interval.mean - interval.low, interval.high - interval.mean)


def plus_minus(interval: Interval, scale: float = 1.0) -> str:
    """A mean and the half-width of its interval, to the digit that the half-width reaches.

    >>> from longfat.results import Interval
    >>> plus_minus(Interval(2.964e6, 2.85e6, 3.07e6), 1e6), plus_minus(Interval(5.0, 5.0, 5.0))
    ('2.96 ±0.11', '5.00 ±0')
    >>> plus_minus(Interval(4.0, float("nan"), float("nan")))
    '4.00 ±?'
    """
    if not math.isfinite(interval.mean):
        return DASH
    half = half_width(interval) / scale
    mean = interval.mean / scale
    if not math.isfinite(half):
        return f"{digits(mean)} ±?"
    if half <= abs(mean) * 1e-9:
        return f"{digits(mean)} ±0"
    decimals = max(0, 1 - math.floor(math.log10(half)))
    most = max(0, 2 - math.floor(math.log10(abs(mean)))) if mean else decimals
    decimals = min(decimals, max(most, 0), 12)
    shown = f"{half:.{decimals}f}"
    if float(shown) == 0:
        shown = f"<{10.0**-decimals:.{decimals}f}"
    return f"{mean:.{decimals}f} ±{shown}"


def measured(cell: CellResult, metric: str, scale: float = 1.0) -> str:
    """A cell's mean with the half-width of its interval, or the word where its trials agree exactly."""
    interval = cell.metrics[metric]
    if cell.deterministic:
        return f"{digits(interval.mean / scale)} {DETERMINISTIC}"
    return plus_minus(interval, scale)


def bounds(interval: Interval, scale: float = 1.0) -> str:
    """An interval in brackets, empty where it is unknown.

    >>> from longfat.results import Interval
    >>> bounds(Interval(1.3, 1.25, 1.352)), bounds(Interval(1.4, 0.8, math.inf))
    ('[1.25, 1.35]', '[0.800, ∞)')
    """
    if math.isnan(interval.low) or math.isnan(interval.high):
        return ""
    high = f"{digits(interval.high / scale)}]" if math.isfinite(interval.high) else UNBOUNDED
    return f"[{digits(interval.low / scale)}, {high}"


def place(params: Mapping[str, Any]) -> str:
    """The point of a sweep in words that a study's author knows.

    >>> place({"path.loss": "2%", "path.delay": "5ms"})
    'path.loss = 2%, path.delay = 5ms'
    """
    return ", ".join(f"{key} = {label(value)}" for key, value in params.items())


def axis_value(key: str, value: Any) -> tuple[float, str] | None:
    """A swept value as a number on an axis and the unit of that axis; None for what is no quantity.

    Proportions are in %, durations in ms, rates in Mbit/s, sizes in kB.

    >>> axis_value("path.loss", "2%"), axis_value("path.delay", "0.02s"), axis_value("protocol.window", 4)
    ((2.0, '%'), (20.0, 'ms'), (4.0, 'packets'))
    """
    try:
        parsed = units.parse(value)
    except ValueError:
        return None
    scale, unit = _AXES.get(parsed.dimension, (Fraction(1), ""))
    if parsed.dimension == "number":
        tail = "protocol." + key.split(".", 2)[-1] if key.startswith("protocols.") else key
        unit = _BARE_UNITS.get(tail, "")
    return float(parsed.value / scale), unit
