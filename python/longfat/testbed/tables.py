"""Tables of a testbed's hosts, links and measurements."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from longfat.presentation.formatting import DASH, label, quantity
from longfat.presentation.link_titles import narrow_title
from longfat.presentation.tables import show as show  # noqa: PLC0414 - offered here too
from longfat.presentation.tables import table

if TYPE_CHECKING:
    from rich.table import Table

# More pairs than these are shown as a list of reachable hosts.
_MOST_ROWS = 30
# A less probable number of losses contradicts the links.
_IMPROBABLE = 1e-3


def hosts(found: Sequence[Mapping[str, str]], routers: Sequence[Mapping[str, str]] = ()) -> Table:
    """Returns names and addresses of hosts, and of routers with an address."""
    made = table("host", "address", "at node")
    for host in found:
        made.add_row(host["name"], host["address"], host["node"])
    for router in routers:
        made.add_row(router["name"], router["address"], "(router)")
    return made


def links(found: Sequence[Mapping[str, Any]]) -> Table:
    """Returns settings and counters of each link."""
    settings = ("link", "from", "to", "rate", "delay", "loss", "queue")
    counters = ("packets", "delivered", "lost", "queue_dropped", "waiting", "max_waiting")
    made = table(*settings, *map(narrow_title, counters), right=range(3, 13))
    for link in found:
        jitter = f" ± {quantity(link['jitter_s'], 's')}" if link["jitter_s"] else ""
        made.add_row(
            link["name"],
            link["from"],
            link["to"],
            _rate(link),
            quantity(link["delay_s"], "s") + jitter,
            percent(link["loss"]),
            label(link["queue"]),
            *(f"{link[counter]:,}" for counter in counters),
        )
    return made


def _rate(link: Mapping[str, Any]) -> str:
    if link["is_down"]:
        return "down"
    if link["rate_bps"] is None:
        return "unlimited"
    return quantity(link["rate_bps"], "bit/s") + (" (trace)" if link["is_trace"] else "")


def percent(part: float) -> str:
    """Returns a share in percent.

    >>> percent(0.0), percent(0.02), percent(1 / 3)
    ('0 %', '2 %', '33.3 %')
    """
    return f"{part * 100:.3g} %"


def net(found: Sequence[Mapping[str, str]], joined: Sequence[Mapping[str, Any]]) -> Table:
    """Returns nodes with their hosts and links."""
    made = table("node", "hosts", "links")
    nodes = dict.fromkeys(
        [node for link in joined for node in (link["from"], link["to"])] + [host["node"] for host in found]
    )
    for node in nodes:
        at = ", ".join(host["name"] for host in found if host["node"] == node)
        ways = (f"{link['name']} to {link['to']}" for link in joined if link["from"] == node)
        made.add_row(node, at or DASH, ", ".join(ways))
    return made


def unreachable(pings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Returns the pairs without any reply."""
    return [f"{ping['from']} to {ping['to']}" for ping in pings if not ping["answered"]]


def ping_all(pings: Sequence[Mapping[str, Any]]) -> Table | str:
    """Returns RTTs and losses next to those expected from the links."""
    if len(pings) > _MOST_ROWS:
        return _reached(pings)
    names = ("from", "to", "RTT min", "median", "expected", "lost", "expected", "")
    made = table(*names, right=range(2, 7))
    for ping in pings:
        expected = ping["expected"]
        lost = ping["sent"] - ping["answered"]
        made.add_row(
            ping["from"],
            ping["to"],
            _seconds(ping["min_s"]),
            _seconds(ping["median_s"]),
            DASH if expected is None else quantity(expected["rtt_s"], "s"),
            f"{lost} of {ping['sent']}",
            DASH if expected is None else percent(expected["loss"]),
            _remark(ping, lost),
        )
    return made


def _reached(pings: Sequence[Mapping[str, Any]]) -> str:
    lines: dict[str, list[str]] = {}
    for ping in pings:
        lines.setdefault(ping["from"], []).append(ping["to"] if ping["answered"] else f"({ping['to']})")
    reached = [f"{host} reaches {' '.join(others)}" for host, others in lines.items()]
    return "\n".join([*reached, "In parentheses: no reply."])


def _remark(ping: Mapping[str, Any], lost: int) -> str:
    if not ping["answered"]:
        return "unreachable"
    expected = ping["expected"]
    if expected is not None and _at_least(lost, ping["sent"], expected["loss"]) < _IMPROBABLE:
        return "more loss than expected"
    return ""


def _at_least(lost: int, sent: int, loss: float) -> float:
    """Returns the probability of `lost` or more losses among `sent` packets.

    >>> round(_at_least(1, 10, 0.1), 4), _at_least(1, 10, 0.0), _at_least(0, 10, 0.5)
    (0.6513, 0.0, 1.0)
    """
    fewer = (math.comb(sent, k) * loss**k * (1 - loss) ** (sent - k) for k in range(lost))
    return max(0.0, 1.0 - sum(fewer))


def _seconds(value: float | None) -> str:
    return DASH if value is None else quantity(value, "s")


def dropped(hosts: Sequence[Mapping[str, Any]]) -> str:
    """Returns a line about packets that hosts' kernels dropped, empty for none.

    >>> none = {"socket": 0, "sent": 0, "received": 0}
    >>> dropped([{"name": "h1", **none}, {"name": "h2", **none, "socket": 12}])
    "The hosts' kernels dropped packets outside of the links: h2 12 at sockets"
    >>> dropped([{"name": "h1", **none}])
    ''
    """
    places = (("socket", "at sockets"), ("sent", "on their way out"), ("received", "on their way in"))
    counts = [f"{host['name']} {host[key]:,} {where}" for host in hosts for key, where in places if host[key]]
    return f"The hosts' kernels dropped packets outside of the links: {', '.join(counts)}" if counts else ""


def goodput(measured: Mapping[str, Any]) -> str:
    """Returns a line about a measured connection."""
    slowest = measured["slowest_bps"]
    limit = "no link limits the rate" if slowest is None else f"slowest link {quantity(slowest, 'bit/s')}"
    way = f"{measured['from']} to {measured['to']}"
    if measured["goodput_bps"] is None:
        return f"{way}: too few bytes arrived over one TCP connection to measure goodput ({limit})"
    return (
        f"{way}: {quantity(measured['goodput_bps'], 'bit/s')} of goodput "
        f"over one TCP connection in {quantity(measured['seconds'], 's')} ({limit})"
    )
