"""What a testbed is and did, for people."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from longfat.presentation.formatting import DASH, label, quantity

if TYPE_CHECKING:
    from rich.table import Table

_WIDTH_ELSEWHERE = 140
# More pairs than these are shown as a list of who reaches whom.
_MOST_ROWS = 30
# An outcome less probable than this is not what the links say.
_IMPROBABLE = 1e-3


def show(shown: Table | str) -> None:
    """Prints it on standard output."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else _WIDTH_ELSEWHERE
    Console(highlight=False, markup=False, width=width).print(shown)


def _table(*columns: str) -> Table:
    from rich.table import Table

    made = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        made.add_column(column.lstrip(">"), justify="right" if column.startswith(">") else "left")
    return made


def hosts(found: Sequence[Mapping[str, str]], routers: Sequence[Mapping[str, str]] = ()) -> Table:
    """Names and addresses of hosts, and of routers that have some."""
    made = _table("host", "address", "at node")
    for host in found:
        made.add_row(host["name"], host["address"], host["node"])
    for router in routers:
        made.add_row(router["name"], router["address"], "(router)")
    return made


def links(found: Sequence[Mapping[str, Any]]) -> Table:
    """What each link was asked to do and has done."""
    made = _table(
        "link",
        "from",
        "to",
        ">rate",
        ">delay",
        ">loss",
        ">queue",
        ">entered",
        ">delivered",
        ">lost",
        ">dropped",
        ">in queue",
        ">most",
    )
    for link in found:
        jitter = f" ± {quantity(link['jitter_s'], 's')}" if link["jitter_s"] else ""
        counts = ("packets", "delivered", "lost", "queue_dropped", "waiting", "max_waiting")
        made.add_row(
            link["name"],
            link["from"],
            link["to"],
            _rate(link),
            quantity(link["delay_s"], "s") + jitter,
            percent(link["loss"]),
            label(link["queue"]),
            *(f"{link[key]:,}" for key in counts),
        )
    return made


def _rate(link: Mapping[str, Any]) -> str:
    if link["rate_bps"] is None:
        return "unlimited"
    return quantity(link["rate_bps"], "bit/s") + (" (trace)" if link["is_trace"] else "")


def percent(part: float) -> str:
    """A share of the whole.

    >>> percent(0.0), percent(0.02), percent(1 / 3)
    ('0 %', '2 %', '33.3 %')
    """
    return f"{part * 100:.3g} %"


def net(found: Sequence[Mapping[str, str]], joined: Sequence[Mapping[str, Any]]) -> Table:
    """Which node leads where."""
    made = _table("node", "hosts", "links")
    nodes = dict.fromkeys(
        [node for link in joined for node in (link["from"], link["to"])] + [host["node"] for host in found]
    )
    for node in nodes:
        at = ", ".join(host["name"] for host in found if host["node"] == node)
        ways = (f"{link['name']} to {link['to']}" for link in joined if link["from"] == node)
        made.add_row(node, at or DASH, ", ".join(ways))
    return made


def unreachable(pings: Sequence[Mapping[str, Any]]) -> list[str]:
    """The pairs of which one cannot reach the other."""
    return [f"{ping['from']} to {ping['to']}" for ping in pings if not ping["answered"]]


def ping_all(pings: Sequence[Mapping[str, Any]]) -> Table | str:
    """Round trips and losses beside what the links say."""
    if len(pings) > _MOST_ROWS:
        return _reached(pings)
    made = _table("from", "to", ">RTT min", ">median", ">links say", ">lost", ">links say", "")
    for ping in pings:
        asked = ping["expected"]
        lost = ping["sent"] - ping["answered"]
        made.add_row(
            ping["from"],
            ping["to"],
            _seconds(ping["min_s"]),
            _seconds(ping["median_s"]),
            DASH if asked is None else quantity(asked["rtt_s"], "s"),
            f"{lost} of {ping['sent']}",
            DASH if asked is None else percent(asked["loss"]),
            _remark(ping, lost),
        )
    return made


def _reached(pings: Sequence[Mapping[str, Any]]) -> str:
    lines: dict[str, list[str]] = {}
    for ping in pings:
        lines.setdefault(ping["from"], []).append(ping["to"] if ping["answered"] else f"({ping['to']})")
    told = [f"{host} reaches {' '.join(others)}" for host, others in lines.items()]
    return "\n".join([*told, "In parentheses: no answer."])


def _remark(ping: Mapping[str, Any], lost: int) -> str:
    if not ping["answered"]:
        return "unreachable"
    asked = ping["expected"]
    if asked is not None and _at_least(lost, ping["sent"], asked["loss"]) < _IMPROBABLE:
        return "more lost than the links say"
    return ""


def _at_least(lost: int, sent: int, loss: float) -> float:
    """The probability that so many or more of so many are lost.

    >>> round(_at_least(1, 10, 0.1), 4), _at_least(1, 10, 0.0), _at_least(0, 10, 0.5)
    (0.6513, 0.0, 1.0)
    """
    fewer = (math.comb(sent, k) * loss**k * (1 - loss) ** (sent - k) for k in range(lost))
    return max(0.0, 1.0 - sum(fewer))


def _seconds(value: float | None) -> str:
    return DASH if value is None else quantity(value, "s")


def dropped(hosts: Sequence[Mapping[str, Any]]) -> str:
    """A line about packets that hosts' kernels dropped; empty where there are none.

    >>> none = {"socket": 0, "sent": 0, "received": 0}
    >>> dropped([{"name": "h1", **none}, {"name": "h2", **none, "socket": 12}])
    "The hosts' kernels have dropped packets, which no link lost: h2 12 at sockets"
    >>> dropped([{"name": "h1", **none}])
    ''
    """
    places = (("socket", "at sockets"), ("sent", "on their way out"), ("received", "on their way in"))
    told = [f"{host['name']} {host[key]:,} {where}" for host in hosts for key, where in places if host[key]]
    return f"The hosts' kernels have dropped packets, which no link lost: {', '.join(told)}" if told else ""


def goodput(measured: Mapping[str, Any]) -> str:
    """One line about a connection."""
    slowest = measured["slowest_bps"]
    limit = (
        "no link on the way has a limit" if slowest is None else f"slowest link {quantity(slowest, 'bit/s')}"
    )
    return (
        f"{measured['from']} to {measured['to']}: {quantity(measured['goodput_bps'], 'bit/s')} of goodput "
        f"over one TCP connection in {quantity(measured['seconds'], 's')} ({limit})"
    )
