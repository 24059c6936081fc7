"""A measured path as table, remarks, chart and HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from longfat.analysis.inference.losses import is_shared, one_way
from longfat.presentation.charts.vega import Spec, channel
from longfat.presentation.formatting import digits, quantity
from longfat.presentation.text_table import TextTable

if TYPE_CHECKING:
    from longfat.analysis.inference.samples import Router


def table(result: dict[str, Any]) -> TextTable:
    """Returns a row for each hop: RTT, and latency, bandwidth and loss of its link with intervals."""
    head = [
        *("hop", "address", "unanswered", "min RTT ms", "one-way latency ms", "bandwidth Mbit/s"),
        *("loss each way", ""),
    ]
    rows = []
    for hop in result["hops"]:
        link, rtt = hop["link"], hop["least_rtt_s"]
        rows.append(
            [
                str(hop["ttl"]),
                hop["address"] or "*",
                f"{hop['unanswered']:.1%}",
                "" if rtt is None else digits(rtt * 1e3, 4),
                *(("", "", "") if link is None else _figures(link, _with(link, result))),
                "; ".join(_remarks(hop)),
            ]
        )
    return TextTable(head, rows, right=(0, 2, 3))


def _with(link: dict[str, Any], result: dict[str, Any]) -> int | None:
    """Returns the hop of the later link whose loss includes that of a link; None for a link of its own."""
    later = (hop["link"] for hop in result["hops"] if hop["link"] is not None)
    return next((one["ttls"][-1] for one in later if is_shared(one) and _includes(one, link)), None)


def _includes(later: dict[str, Any], link: dict[str, Any]) -> bool:
    return bool(later["loss_ttls"][0] <= link["ttls"][-1] < later["ttls"][0])


def _figures(link: dict[str, Any], later: int | None) -> tuple[str, str, str]:
    """Returns latency, bandwidth and loss of a link with their intervals.

    `later` is the hop of a later link whose loss includes this one's.
    """

    def span(interval: dict[str, float], scale: float) -> str:
        value, low, high = (interval[key] / scale for key in ("value", "low", "high"))
        return f"{digits(value)} [{digits(low)}, {digits(high)}]"

    if link["rate_bps"] is not None:
        bandwidth = span(link["rate_bps"], 1e6)
    else:
        bandwidth = f"unknown, above {quantity(link['rate_at_least_bps'], 'bit/s')}"
    lost = _loss(link) if later is None else f"with link {later}"
    return span(link["latency_s"], 1e-3), bandwidth, lost


def _remarks(hop: dict[str, Any]) -> list[str]:
    """Returns remarks about a hop and its link."""
    found = []
    if len(hop["addresses"]) > 1:
        found.append(f"several routes: {', '.join(hop['addresses'])}")
    if hop["limits_answers"]:
        found.append("limits its answers")
    link = hop["link"]
    if link is not None:
        if link["reverse_rate_bps"] is not None:
            found.append(f"reverse {quantity(link['reverse_rate_bps'], 'bit/s')}")
        if len(link["ttls"]) > 1:
            found.append(f"hops {link['ttls'][0]} to {link['ttls'][-1]} as one")
        if is_shared(link):
            found.append("loss of links {} to {} together".format(*link["loss_ttls"]))
        if link["queue_at_least_bytes"] is not None:
            found.append(f"queue at least {quantity(link['queue_at_least_bytes'], 'B')}")
    elif hop["answers_slowly"]:
        found.append("answers too slowly to measure its link")
    elif hop["address"] is not None:
        found.append("too few answers")
    return found


def _loss(link: dict[str, Any]) -> str:
    found = link["loss_round_trip"]
    if found is None:
        return ""
    low, high = one_way(found["low"]), one_way(found["high"])
    return f"{link['loss_each_way']:.2%} [{low:.2%}, {high:.2%}]"


def lines(result: dict[str, Any]) -> list[str]:
    """Returns remarks about the whole path, one line each."""
    found = []
    if any(hop["link"] for hop in result["hops"]):
        slope, largest = result["seconds_per_byte"], result["largest_packet_bytes"]
        duration = quantity(slope * largest, "s") if slope > 0 else "too short to measure"
        sending = f"transmission of {largest} B over all links: {duration}"
        latency = f"One-way latency {quantity(result['latency_s'], 's')}"
        found.append(f"{latency}; {sending}; {result['probes']} probes, stopped by: {result['ended_by']}")
    found += result["assumptions"]
    if result["clock"] == "application":
        found.append("Times are on the application's clock: the kernel did not timestamp every packet")
    if result["hops"] and not result["reached"]:
        found.append(f"{result['host']} itself did not answer")
    return found


def failure(result: dict[str, Any]) -> str:
    """Returns why there is no result, as one line."""
    if not any(hop["address"] for hop in result["hops"]):
        other = "udp" if result["protocol"] == "icmp" else "icmp"
        if result["ended_by"] == "time":
            return f"no router answered in time: increase --time or try --protocol {other}"
        return f"no router answered: try --protocol {other}"
    return "too few sizes were answered to measure any link: increase --time or change --sizes"


def drawing(routers: Sequence[Router]) -> Spec:
    """Returns the smallest round trips by size for each router, as Vega-Lite."""
    from longfat.presentation.measured.page import by_size

    rows = [
        {"series": f"{router.ttl}: {router.address}", "size": size, "ms": min(values) * 1e3}
        for router in routers
        for size, values in sorted(router.seconds().items())
    ]
    sizes = channel("size:Q", title="Packet with IP header (B)", scale={"zero": False})
    return by_size(rows, "Smallest round trip (ms)", of="Hop", sizes=sizes)


def page(found: dict[str, Any], routers: Sequence[Router]) -> str:
    """Returns the HTML report."""
    from longfat.presentation.measured import page as measurement_report

    lines = [f"{found['when']}, {found['probes']} probes by {found['protocol'].upper()}"]
    chart = ("Round trips by size", drawing(routers))
    title = f"The path to {found['host']}"
    return measurement_report.page(title, lines, table(found), chart, found, heading="Links")
