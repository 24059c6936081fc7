"""What a measurement of a path found: as a document, and as a model that other commands run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from longfat.analysis.inference.links import Interval, Link
from longfat.analysis.inference.samples import REACHED, Router
from longfat.measurement.path import Progress


def document(progress: Progress, about: Mapping[str, Any]) -> dict[str, Any]:
    """All that was found; times in s, rates in bit/s. `about` comes first."""
    samples, path = progress.samples, progress.path
    by_last = {link.ttls[-1]: link for link in path.links}
    routers = samples.path()
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
        "latency_s": math.fsum(link.latency.value for link in path.links),
        "hops": [_hop(router, by_last.get(router.ttl), path.slow) for router in routers],
    }


def _hop(router: Router, link: Link | None, slow: tuple[int, ...]) -> dict[str, Any]:
    least = min((min(values) for values in router.seconds().values()), default=None)
    return {
        "ttl": router.ttl,
        "address": router.address,
        "addresses": dict(router.addresses),
        "answers": dict(router.kinds),
        "loss": router.loss,
        "least_rtt_s": least,
        "answers_slowly": router.ttl in slow,
        "link": None if link is None else _link(link),
    }


def _link(link: Link) -> dict[str, Any]:
    return {
        "ttls": list(link.ttls),
        "latency_s": _interval(link.latency),
        "rate_bps": None if link.rate is None else _interval(link.rate),
        "rate_at_least_bps": link.rate_at_least,
        "reverse_rate_bps": link.reverse_rate,
        "seconds_per_byte": _interval(link.slope),
    }


def _interval(interval: Interval) -> dict[str, float]:
    return {"value": interval.value, "low": interval.low, "high": interval.high}


def hops(told: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The keys of each hop of a model: rate and delay, and those of the way back where they are others.

    Links that cannot be told apart are one; a link without a rate is one that sends in no time.
    """
    found = []
    for hop in told["hops"]:
        link = hop["link"]
        if link is None:
            continue
        keys: dict[str, Any] = {"delay": duration(link["latency_s"]["value"])}
        if link["rate_bps"] is not None:
            keys["rate"] = rate(link["rate_bps"]["value"])
        if link["reverse_rate_bps"] is not None:
            keys["reverse"] = {"rate": rate(link["reverse_rate_bps"])}
        found.append(keys)
    return found


def measured(told: Mapping[str, Any]) -> dict[str, Any]:
    """What a model says of its origin, for people and for comparisons."""
    links = [hop for hop in told["hops"] if hop["link"] is not None]
    return {
        **{key: told[key] for key in ("host", "address", "protocol", "when", "clock", "probes", "reached")},
        "hops": [
            {
                "address": hop["address"],
                "ttls": hop["link"]["ttls"],
                "loss": hop["loss"],
                "least_rtt": duration(hop["least_rtt_s"]),
                "delay": [duration(hop["link"]["latency_s"][end]) for end in ("low", "high")],
                **_rates(hop["link"]),
            }
            for hop in links
        ],
    }


def _rates(link: Mapping[str, Any]) -> dict[str, Any]:
    if link["rate_bps"] is None:
        return {"rate_at_least": rate(link["rate_at_least_bps"])}
    return {"rate": [rate(link["rate_bps"][end]) for end in ("low", "high")]}


def duration(seconds: float) -> str:
    """A time as study files have it, to the nanosecond; nothing is below zero.

    >>> duration(0.0020031), duration(-1e-6), duration(0.25)
    ('2.0031ms', '0ms', '250ms')
    """
    return f"{max(seconds, 0.0) * 1e3:.6f}".rstrip("0").rstrip(".") + "ms"


def rate(bps: float) -> str:
    """A rate as study files have it, to six digits.

    >>> rate(9.98e6), rate(1234567.8)
    ('9.98Mbit/s', '1.23457Mbit/s')
    """
    digits = f"{bps / 1e6:.{max(0, 5 - math.floor(math.log10(bps / 1e6)))}f}"
    return (digits.rstrip("0").rstrip(".") if "." in digits else digits) + "Mbit/s"
