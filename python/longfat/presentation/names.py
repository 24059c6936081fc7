"""Names of metrics, swept keys and classes of flows, for headings, axes and sentences."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from longfat.study import sweep, units
from longfat.study.expressions.evaluation import RELATIVE
from longfat.study.labels import is_class_of_flows, label
from longfat.study.vocabulary import AT_HOST, short_metric, unit, whole_metric

_KEY_TITLES = {
    "path.loss": "Packet loss",
    "path.delay": "One-way delay",
    "path.rate": "Link rate",
    "path.reorder": "Reordering",
    "path.duplicate": "Duplication",
    "path.corrupt": "Corruption",
    "protocol.rto": "Retransmission timeout",
    "protocol.mss": "Payload per packet",
    "protocol.congestion": "Controller",
    "workload.arrivals": "Flow arrival rate",
    "workload.sizes": "Flow sizes",
    "topology.path.queue": "Queue",
    "topology.path.loss": "Packet loss",
    "protocol.subflows": "Maximum subflows",
}
_METRIC_TITLES = {
    "rtt_min": "RTT, minimum",
    "rtt_mean": "RTT, mean",
    "rtt_p50": "RTT, median",
    "rtt_p99": "RTT, 99th percentile",
    "queueing_delay_mean": "Queueing delay, mean",
    "queueing_delay_p50": "Queueing delay, median",
    "queueing_delay_p99": "Queueing delay, 99th percentile",
    "queue_mean_packets": "Queue, mean",
    "queue_max_packets": "Queue, maximum",
    "fct_min": "Flow completion time, minimum",
    "wire_min": "Time on the wire, minimum",
    "wire_p50": "Time on the wire, median",
    "stack_p50": "Time in the stack, median",
    "fct_mean": "Flow completion time, mean",
    "fct_p50": "Flow completion time, median",
    "fct_p95": "Flow completion time, 95th percentile",
    "fct_p99": "Flow completion time, 99th percentile",
    "flow_throughput": "Flow size over completion time, mean",
    "jain": "Jain's index",
    "share": "Share of all goodput",
    "max_min_distance": "Distance from max-min shares",
    "traffic_goodput": "Goodput of other traffic",
}
_COLUMN_TITLES = {
    "queue_mean_packets": "queue",
    "queue_max_packets": "queue max",
    "traffic_goodput": "other goodput",
    "max_min_distance": "off max-min",
}
_PROTOCOLS = {
    "stop-and-wait": "Stop-and-wait",
    "go-back-n": "Go-Back-N",
    "selective-repeat": "Selective repeat",
    **{name: name.upper() for name in ("tcp", "mptcp", "quic", "udp", "icmp")},
    **{name: name.upper() for name in ("cubic", "lia", "olia", "balia")},
    **{name: name.capitalize() for name in ("reno", "vegas")},
    "westwood": "Westwood+",
    "copa": "Copa",
    "vivace": "PCC Vivace",
    "ledbat++": "LEDBAT++",
    "dctcp": "DCTCP",
    "prague": "Prague",
    "wvegas": "wVegas",
    "bbr": "BBRv3",
    "bbr-tolerant": "BBRv3, loss-tolerant",
    "bbr1": "BBRv1",
    "fixed": "fixed window",
    "quic-cubic": "CUBIC of noq",
    "quic-reno": "Reno of noq",
}
"""Display names of protocols and controllers. A test compares those of the explorer with them."""
_BARE_UNITS = {"protocol.window": "packets"}
_MULTIPLE = re.compile(rf"(?P<factor>\d+(?:\.\d+)?)? *(?P<unit>{'|'.join(RELATIVE)})")
_AXES = {
    "proportion": "%",
    "duration": "ms",
    "rate": "Mbit/s",
    "frequency": "/s",
    "size": "kB",
    "packets": "packets",
}
"""The units of axes by dimension."""


def unit_of(metric: str) -> str:
    """The base unit of a metric, as the vocabulary or the column's name declares it; empty for a count.

    >>> unit_of("rtt_p50_s"), unit_of("queue_mean_packets@forward"), unit_of("drops")
    ('s', 'packets', '')
    """
    declared = unit(metric)
    if not declared and whole_metric(metric).endswith("_packets"):
        return "packets"
    return "" if declared in ("1", "ratio") else declared


def metric_title(metric: str) -> str:
    """A metric as a heading.

    >>> metric_title("goodput_bps"), metric_title("goodput_bps@s1"), metric_title("fct_mean_s@G0")
    ('Goodput', 'Goodput of s1', 'Flow completion time, mean, class G0')
    """
    short, _, host = short_metric(metric).partition(AT_HOST)
    title = _METRIC_TITLES.get(short, short.replace("_", " ").capitalize())
    if is_class_of_flows(host):
        return f"{title}, class {host}"
    return f"{title} of {host}" if host else title


def metric_phrase(metric: str) -> str:
    """A metric inside a sentence.

    >>> metric_phrase("goodput_bps"), metric_phrase("rtt_min_s"), metric_phrase("goodput_bps@s1")
    ('goodput', 'RTT, minimum', 'goodput of s1')
    """
    return lower_first(metric_title(metric))


def lower_first(title: str) -> str:
    """A heading inside a sentence."""
    return title if title.startswith(("RTT", "Jain")) else title[:1].lower() + title[1:]


def with_unit(title: str, unit: str) -> str:
    """A heading with its unit in parentheses.

    >>> with_unit("Goodput", "Mbit/s"), with_unit("Jain's index", "")
    ('Goodput (Mbit/s)', "Jain's index")
    """
    return f"{title} ({unit})" if unit else title


def class_bounds(classes: Sequence[str]) -> list[str]:
    """The size classes of flows with their bounds.

    >>> class_bounds(["100kB", "300kB"])
    ['G0: up to 100kB', 'G1: up to 300kB', 'G2: above']
    """
    bounds = [f"up to {label(bound)}" for bound in classes] + ["above"]
    return [f"G{number}: {bound}" for number, bound in enumerate(bounds)]


def column_title(metric: str) -> str:
    """A metric as the heading of a narrow column.

    >>> column_title("retransmissions"), column_title("rtt_p50_s"), column_title("goodput_bps@s1")
    ('retransmissions', 'rtt p50', 'goodput s1')
    """
    short = short_metric(metric)
    return _COLUMN_TITLES.get(short, short.replace("_", " ").replace(AT_HOST, " "))


def key_title(key: str) -> str:
    """A swept key as a heading: `path.loss` is "Packet loss"; a key of a single protocol names it."""
    if len(several := sweep.parts(key)) > 1:
        return ", ".join(map(key_title, several))
    root, _, rest = key.partition(".")
    if root in ("protocols", "traffic"):
        name, _, rest = rest.partition(".")
        title = key_title(f"protocol.{rest}") if root == "protocols" else _capitalised(rest)
        return f"{title} of {name}"
    return _KEY_TITLES.get(key) or _capitalised(rest)


def point(params: Mapping[str, Any]) -> str:
    """A point of a sweep as a title.

    >>> point({"path.loss": "2%", "path.delay": "5ms"})
    'Packet loss 2%, One-way delay 5ms'
    """
    return ", ".join(f"{key_title(key)} {label(value)}" for key, value in params.items())


def protocol(kind: str) -> str:
    """The name of a kind of protocol or controller.

    >>> protocol("go-back-n"), protocol("tcp"), protocol("bbr"), protocol("bbr1"), protocol("other")
    ('Go-Back-N', 'TCP', 'BBRv3', 'BBRv1', 'other')
    """
    return _PROTOCOLS.get(kind, kind)


def protocol_of(settings: Mapping[str, Any]) -> str:
    """The name of a protocol with its controller and its window.

    >>> protocol_of({"kind": "tcp", "congestion": "vegas"}), protocol_of({"kind": "go-back-n", "window": 8})
    ('TCP Vegas', 'Go-Back-N, window 8')
    """
    kinds = filter(None, (str(settings.get("kind")), controller_of(settings)))
    window = settings.get("window")
    return " ".join(map(protocol, kinds)) + (f", window {window}" if window is not None else "")


def controller_of(settings: Mapping[str, Any]) -> str:
    """The kind of a protocol's controller; empty without one."""
    control = settings.get("congestion")
    control = control.get("kind") if isinstance(control, dict) else control
    return label(control) if control else ""


def _capitalised(key: str) -> str:
    return key.replace(".", " ").replace("_", " ").capitalize()


def axis_value(key: str, value: Any) -> tuple[float, str] | None:
    """A swept value as a number and the unit of its axis; None if it is not a quantity.

    Proportions are in %, durations in ms, rates in Mbit/s, sizes in kB. Multiples of the bandwidth-delay
    product and of the round-trip time keep these as units.

    >>> axis_value("path.loss", "2%"), axis_value("path.delay", "0.02s"), axis_value("protocol.window", 4)
    ((2.0, '%'), (20.0, 'ms'), (4.0, 'packets'))
    >>> axis_value("path.queue", "0.5BDP"), axis_value("path.queue", "max(1BDP, 64kB)")
    ((0.5, 'BDP'), None)
    """
    if isinstance(value, str) and (multiple := _MULTIPLE.fullmatch(value.strip())):
        return float(multiple["factor"] or 1), multiple["unit"]
    try:
        parsed = units.parse(value)
    except ValueError:
        return None
    unit = _AXES.get(parsed.dimension, "")
    scale = units.known()[unit].scale
    if parsed.dimension == "number":
        tail = "protocol." + key.split(".", 2)[-1] if key.startswith("protocols.") else key
        unit = _BARE_UNITS.get(tail, "")
    return float(parsed.value / scale), unit
