"""The result of a path measurement: as a document, and as a path model for other commands."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from longfat.analysis.inference import losses, queues
from longfat.analysis.inference.links import BITS, Link
from longfat.analysis.inference.losses import LinkLoss
from longfat.analysis.inference.samples import REACHED, Router
from longfat.measurement.path import Progress
from longfat.results.run import Interval


def document(progress: Progress, about: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the whole result, after the keys of `about`. Times in s, rates in bit/s."""
    samples, path = progress.samples, progress.path
    routers = samples.path()
    usable = losses.usable(routers, progress.limited)
    found = losses.losses(usable)
    by_last = {
        link.ttls[-1]: _link(link, loss, wait)
        for link, loss, wait in zip(
            path.links,
            losses.by_link(path.links, found),
            queues.waits(routers, path.links),
            strict=True,
        )
    }
    reached = routers[-1].kinds[REACHED] > 0 if routers else False
    return {
        **about,
        "reached": reached,
        "clock": "kernel" if samples.clock.is_kernel else "application",
        "probes": samples.count,
        "rounds": progress.rounds,
        "ended_by": progress.ended_by,
        "largest_packet_bytes": max((size for router in routers for size in router.seconds()), default=None),
        "seconds_per_byte": path.seconds_per_byte,
        "latency_s": math.fsum(max(link.latency.value, 0.0) for link in path.links),
        "hops": [
            _hop(router, by_last.get(router.ttl), path.slow, is_limited=router not in usable)
            for router in routers
        ],
        "loss_round_trip": 1 - math.prod(1 - loss.value for loss in found) if found else None,
        "assumptions": _assumptions(progress, found, usable),
    }


def _assumptions(progress: Progress, found: Sequence[LinkLoss], usable: Sequence[Router]) -> list[str]:
    """Returns assumptions that round trips cannot confirm, one sentence each."""
    links = progress.path.links
    if not links:
        return []
    remarks = []
    if any(loss.value > 0 for loss in found):
        remarks.append(
            "Loss: round trips do not show the direction; assumed equal in both directions, and independent "
            "of earlier losses, of packet size and of the queue."
        )
    known = usable[-1].ttl if usable else 0
    if known < links[-1].ttls[-1]:
        remarks.append(
            f"Loss: unknown after hop {known}, because hosts limit such answers; "
            "unanswered probes there are not counted."
        )
    remarks.append(_last_link(progress))
    if any(link.rate is not None for link in links):
        remarks.append(
            "Queues: assumed limit of one path RTT at the link's rate, or the longest measured wait "
            "if that is more."
        )
    return remarks


def _last_link(progress: Progress) -> str:
    last, link = progress.last, progress.path.links[-1]
    if last is not None and last.is_asymmetric:
        return "Last link: answers to UDP show different forward and reverse rates."
    if last is not None and last.is_decided:
        return "Last link: answers to UDP show equal forward and reverse rates."
    router = progress.samples.routers.get(link.ttls[-1])
    if router is not None and not router.is_echo:
        differs = "differ" if link.reverse_rate is not None else "do not differ measurably"
        return f"Last link: by the sizes of answers, its forward and reverse rates {differs}."
    return "Last link: echoes cannot separate its forward and reverse rates; assumed equal."


def _hop(
    router: Router, link: dict[str, Any] | None, slow: tuple[int, ...], *, is_limited: bool
) -> dict[str, Any]:
    least = min((min(values) for values in router.seconds().values()), default=None)
    return {
        "ttl": router.ttl,
        "address": router.address,
        "addresses": dict(router.addresses),
        "answers": dict(router.kinds),
        "unanswered": router.loss,
        "limits_answers": is_limited and router.answered > 0,
        "least_rtt_s": least,
        "answers_slowly": router.ttl in slow,
        "link": link,
    }


def _link(link: Link, loss: LinkLoss | None, wait: float) -> dict[str, Any]:
    occupied = None if link.rate is None else queues.queued_bytes(wait, link.rate.value)
    return {
        "ttls": list(link.ttls),
        "latency_s": _at_least_zero(_interval(link.latency)),
        "rate_bps": None if link.rate is None else _interval(link.rate),
        "rate_at_least_bps": link.rate_at_least,
        "reverse_rate_bps": link.reverse_rate,
        "seconds_per_byte": _interval(link.slope),
        "loss_round_trip": None if loss is None else _interval(loss),
        "loss_each_way": None if loss is None else loss.each_way,
        "loss_ttls": None if loss is None else [loss.before + 1, loss.ttl],
        "longest_wait_s": wait,
        "queue_at_least_bytes": occupied,
    }


def _at_least_zero(interval: dict[str, float]) -> dict[str, float]:
    """Truncates an interval at zero: noise can make the estimate of a small latency negative."""
    return {end: max(value, 0.0) for end, value in interval.items()}


def _interval(interval: Interval) -> dict[str, float]:
    return {"value": interval.value, "low": interval.low, "high": interval.high}


def hops(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the keys of each hop of a path model: rate, delay, loss, queue, and differences in reverse.

    Inseparable links are one hop. A link without a measured rate has no rate and no queue. Loss is the same
    in both directions; that of several links together is at the last of them. The queue is the largest
    measured one, or the assumed one if that is more.
    """
    found = []
    round_trip = _round_trip(result)
    for hop in result["hops"]:
        link = hop["link"]
        if link is None:
            continue
        keys: dict[str, Any] = {"delay": duration(link["latency_s"]["value"])}
        if link["rate_bps"] is not None:
            bps = link["rate_bps"]["value"]
            seen = link["queue_at_least_bytes"] or 0.0
            keys |= {"rate": rate(bps), "queue": size(max(seen, queues.assumed(bps, round_trip)))}
        if link["reverse_rate_bps"] is not None:
            bps = link["reverse_rate_bps"]
            keys["reverse"] = {"rate": rate(bps), "queue": size(queues.assumed(bps, round_trip))}
        if link["loss_each_way"]:
            keys["loss"] = percentage(link["loss_each_way"])
        found.append(keys)
    return found


def _round_trip(result: Mapping[str, Any]) -> float:
    """Returns the RTT in s of the largest packet, with a reply of the same size."""
    links = [hop["link"] for hop in result["hops"] if hop["link"] is not None]
    per_byte = math.fsum(
        link["seconds_per_byte"]["value"]
        + (
            BITS / link["reverse_rate_bps"]
            if link["reverse_rate_bps"] is not None
            else link["seconds_per_byte"]["value"]
        )
        for link in links
    )
    return 2 * max(float(result["latency_s"]), 0.0) + per_byte * float(result["largest_packet_bytes"])


def measured(result: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the table `[measured]` of a path model: its origin and intervals."""
    links = [hop for hop in result["hops"] if hop["link"] is not None]
    return {
        **{key: result[key] for key in ("host", "address", "protocol", "when", "clock", "probes", "reached")},
        "hops": [
            {
                "address": hop["address"],
                "ttls": hop["link"]["ttls"],
                "unanswered": hop["unanswered"],
                "least_rtt": duration(hop["least_rtt_s"]),
                "delay": [duration(hop["link"]["latency_s"][end]) for end in ("low", "high")],
                **_rates(hop["link"]),
                **_loss(hop["link"]),
                **_queue(hop["link"]),
            }
            for hop in links
        ],
        "assumptions": result["assumptions"],
    }


def _loss(link: Mapping[str, Any]) -> dict[str, Any]:
    found = link["loss_round_trip"]
    if found is None:
        return {}
    together = {"loss_ttls": link["loss_ttls"]} if losses.is_shared(link) else {}
    return {"loss_round_trip": [percentage(found[end]) for end in ("low", "high")], **together}


def _queue(link: Mapping[str, Any]) -> dict[str, Any]:
    seen = link["queue_at_least_bytes"]
    return {} if seen is None else {"queue_at_least": size(seen)}


def _rates(link: Mapping[str, Any]) -> dict[str, Any]:
    if link["rate_bps"] is None:
        return {"rate_at_least": rate(link["rate_at_least_bps"])}
    return {"rate": [rate(link["rate_bps"][end]) for end in ("low", "high")]}


def duration(seconds: float) -> str:
    """Returns a time as in study files, to the nanosecond; negative times are 0.

    >>> duration(0.0020031), duration(-1e-6), duration(0.25)
    ('2.0031ms', '0ms', '250ms')
    """
    return f"{max(seconds, 0.0) * 1e3:.6f}".rstrip("0").rstrip(".") + "ms"


def percentage(share: float) -> str:
    """Returns a probability as in study files, to four digits.

    >>> percentage(0.0202041), percentage(0.0), percentage(0.00012345)
    ('2.02%', '0%', '0.01234%')
    """
    return f"{float(f'{share * 100:.4g}'):.12f}".rstrip("0").rstrip(".") + "%"


def size(found: float) -> str:
    """Returns bytes as in study files, rounded up.

    >>> size(100000.2)
    '100001B'
    """
    return f"{math.ceil(found)}B"


def rate(bps: float) -> str:
    """Returns a rate as in study files, to six digits.

    >>> rate(9.98e6), rate(1234567.8)
    ('9.98Mbit/s', '1.23457Mbit/s')
    """
    digits = f"{bps / 1e6:.{max(0, 5 - math.floor(math.log10(bps / 1e6)))}f}"
    return (digits.rstrip("0").rstrip(".") if "." in digits else digits) + "Mbit/s"
