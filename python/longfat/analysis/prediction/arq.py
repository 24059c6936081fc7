"""The goodput that theory expects of an ARQ protocol that sends a file over a path.

Held against the simulator (10 and 100 Mbit/s, 0 to 5 ms, windows of 1 to 36 packets, 2 to 10 % loss): the
exact forms agree within 1 %, the others within 7 %.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from longfat.analysis.prediction import links
from longfat.analysis.prediction.model import NoClosedFormError, Prediction, nothing
from longfat.analysis.theory import arq
from longfat.analysis.theory.capacity import deliverable
from longfat.study.vocabulary import vocabulary

KINDS = ("stop-and-wait", "go-back-n", "selective-repeat")
"""The protocols that these forms are of."""

ARQ_HEADER = 32
"""Bytes of the fixed header of every ARQ frame."""
SACK_RANGE = 8
"""Bytes of one selective-acknowledgement range in an ACK."""
UDP_IPV4 = 28
"""Bytes of the UDP and IPv4 headers, which take up a link's time too."""

MOST_LOSSES, MOST_EARLY_LOSSES = 5.0, 0.75
"""Losses a window beyond which the approximations of selective repeat on a full path, and of detection by
later arrivals, are too coarse (more than a tenth off the simulator)."""

FAST_THRESHOLD = 3
"""Later arrivals that stand for a loss (RFC 5681, section 3.2)."""


@dataclass(frozen=True)
class Setting:
    """The numbers behind a specification: times in s, sizes in bytes, losses as probabilities.

    `round_trip` includes the time to send one data and one ACK frame; `timeout` is the mean cost of the first
    expiry, `backs_off` whether further ones double; `links` is how many stand behind one another, and `most`
    the packets per second that they deliver at most.
    """

    kind: str
    payload: float
    window: int
    frame_time: float
    round_trip: float
    loss: float
    ack_loss: float
    timeout: float
    backs_off: bool
    early: bool
    links: int = 1
    most: float = math.inf


def predict(spec: Mapping[str, Any]) -> Prediction:
    """The goodput, in bit/s, of a trial specification (`path`, `protocol`, `workload`)."""
    try:
        found = setting(spec)
    except NoClosedFormError as reason:
        return nothing(reason)
    try:
        return _predict(found)
    except NoClosedFormError as reason:
        rate = min(found.window / found.round_trip, found.most)
        note = f"at most window and link, min(W / R, 1 / t_f); no closed form: {reason}"
        return Prediction(None, exact=False, note=note, bound=rate * found.payload * 8)


def _predict(of: Setting) -> Prediction:
    if of.kind == "stop-and-wait":
        if of.timeout < of.round_trip:
            raise NoClosedFormError("the timeout is shorter than the round trip: it fires in vain")
        form = arq.stop_and_wait_backoff if of.backs_off else arq.stop_and_wait
        rate = form(of.round_trip, of.loss, of.ack_loss, of.timeout)
        exact = not of.backs_off or (of.loss == 0 and of.ack_loss == 0)
        note = "stop-and-wait: R + T q / (1 - q) a packet"
        if of.backs_off:
            note = "stop-and-wait: R + T q / (1 - 2q) a packet, the adaptive timer taken as settled"
        return Prediction(rate * of.payload * 8, exact, note)
    if not of.backs_off and of.timeout < of.round_trip + (of.window - 1) * of.frame_time:
        raise NoClosedFormError("the timeout is shorter than a whole window's round trip: it fires in vain")
    if of.loss == 0 and of.ack_loss == 0:
        rate = arq.lossless(of.window, of.frame_time, of.round_trip)
        return Prediction(rate * of.payload * 8, exact=True, note="no loss: min(W / R, 1 / t_f)")
    _check_limits(of)
    timeout = _recovery(of)
    left = arq.window_with_ack_loss(of.window, of.ack_loss) / of.window
    if of.kind == "go-back-n":
        rate = arq.go_back_n(of.window, of.frame_time, of.round_trip, of.loss, timeout)
        # Behind the first of several links, what was lost no longer takes its time.
        exact = not of.early and not of.backs_off and of.ack_loss == 0 and of.links == 1
        note = "Go-Back-N: renewal at each return"
    else:
        rate = arq.selective_repeat(
            of.window,
            of.frame_time,
            of.round_trip,
            of.loss,
            timeout,
            ack_loss=of.ack_loss,
            backs_off=of.backs_off,
        )
        exact = False
        note = "selective repeat: a loss stalls the window until it is made good"
    parts = [note]
    if of.ack_loss:
        parts.append("lost ACKs shorten the window")
    if of.early:
        parts.append(f"losses are found by {FAST_THRESHOLD} later arrivals")
    if of.backs_off:
        parts.append("the adaptive timer is taken as settled")
    return Prediction(rate * left * of.payload * 8, exact, "; ".join(parts))


def _check_limits(of: Setting) -> None:
    """Under loss the forms hold within limits; beyond them no line is better than a wrong one."""
    queue = of.window * of.frame_time
    burst = of.round_trip + (of.window - 1) * of.frame_time
    full = queue > of.round_trip and of.window > 1
    if of.early and (full or of.window * of.loss > MOST_EARLY_LOSSES):
        raise NoClosedFormError("too much happens in a window for early detection to have a simple form")
    if full and of.kind == "selective-repeat" and of.window * of.loss > MOST_LOSSES:
        raise NoClosedFormError("too many losses in a window that fills the path")
    # Three times the spread of a window's round trips is what the estimator adds at worst.
    settled = of.round_trip + 3 * (burst - of.round_trip) <= of.timeout or queue <= of.round_trip / 4
    if of.backs_off and of.window > 1 and not settled:
        raise NoClosedFormError("the adaptive timer follows the queue that the window builds")


def _recovery(of: Setting) -> float:
    """From a packet's transmission to its retransmission.

    The timer's doubling does not matter beyond a window of one: ACKs of other packets end it. Detection by
    later arrivals takes a round trip and the sending of those; the last packets of a window wait for the next
    one to show the gap. Go-Back-N uses it once a window: a loss among what it sends again awaits the timer.
    """
    if not of.early or of.window <= FAST_THRESHOLD:
        return of.timeout
    wait = of.round_trip * (1 + FAST_THRESHOLD / of.window) + FAST_THRESHOLD * of.frame_time
    early = min(of.timeout, wait)
    if of.kind != "go-back-n":
        return early
    clean = (1 - of.loss) ** of.window
    return early * clean + of.timeout * (1 - clean)


def setting(spec: Mapping[str, Any]) -> Setting:
    """The numbers of a specification; raises where theory has no form for what it asks for."""
    protocol, path = dict(spec.get("protocol", {})), links.directions(spec.get("path", {}))
    forward, reverse = [there for there, _ in path], [back for _, back in path]
    if spec.get("workload", {}).get("from") == "receiver":
        # The data goes the other way: over the last link first.
        forward, reverse = reverse[::-1], forward[::-1]
    kind = str(protocol.get("kind"))
    if kind not in KINDS:
        raise NoClosedFormError(f"{kind} is no ARQ protocol of fixed window")
    if spec.get("workload", {}).get("kind", "file") != "file":
        raise NoClosedFormError("the workload is no bulk transfer")
    if int(protocol.get("acknowledge_every", 1)) != 1:
        raise NoClosedFormError("ACKs are delayed")
    window = _window(kind, protocol)
    payload = links.number(_setting(protocol, "mss"), "mss")
    frame = payload + ARQ_HEADER + UDP_IPV4
    ack = ARQ_HEADER + UDP_IPV4
    # Each link sends a whole packet before the next one does; the slowest sets the pace.
    frame_times = [links.sending_time(link, frame) for link in forward]
    frame_time, ack_time = max(frame_times), sum(links.sending_time(link, ack) for link in reverse)
    round_trip = sum(frame_times) + ack_time + sum(links.delay(link) for link in (*forward, *reverse))
    if round_trip <= 0:
        raise NoClosedFormError("the path takes no time: only the computer's own speed limits it")
    for link in forward:
        _check_queue(link, window, frame, frame_time)
    loss, ack_loss = (1 - math.prod(1 - links.loss(link) for link in way) for way in (forward, reverse))
    rto = _setting(protocol, "rto")
    backs_off = rto == "adaptive"
    if backs_off:
        floor = links.number(_setting(protocol, "min_rto"), "min_rto")
        timeout = arq.settled_timeout(window, frame_time, round_trip, loss, floor)
    else:
        timeout = links.number(rto, "rto")
    return Setting(
        kind=kind,
        payload=payload,
        window=window,
        frame_time=frame_time,
        round_trip=round_trip,
        loss=loss,
        ack_loss=ack_loss,
        timeout=timeout,
        backs_off=backs_off,
        early=bool(protocol.get("fast_retransmit") or protocol.get("gap_retransmit")),
        links=len(path),
        most=deliverable(
            (1 / time if time > 0 else math.inf, links.loss(link))
            for time, link in zip(frame_times, forward, strict=True)
        ),
    )


def _setting(protocol: Mapping[str, Any], key: str) -> Any:
    """A key of a protocol, with the default that its family declares: others have keys of the same name."""
    if key in protocol:
        return protocol[key]
    schema = vocabulary()["protocol"]
    families = (one["properties"] for one in schema["anyOf"])
    own = next(keys for keys in families if protocol["kind"] in _words(keys["kind"], schema["$defs"]))
    return own[key].get("default")


def _words(kind: Mapping[str, Any], definitions: Mapping[str, Any]) -> set[str]:
    """The words that a family's key `kind` takes."""
    if "$ref" in kind:
        kind = definitions[kind["$ref"].rpartition("/")[2]]
    return {one["const"] for one in kind.get("oneOf", [kind])}


def _window(kind: str, protocol: Mapping[str, Any]) -> int:
    if kind == "stop-and-wait":
        return 1
    window = protocol.get("window", "auto")
    if window == "auto":
        raise NoClosedFormError("the window follows a congestion controller")
    return int(links.number(window, "window"))


def _check_queue(link: Mapping[str, Any], window: int, frame: float, frame_time: float) -> None:
    """A window that a queue cannot hold loses packets to it, which no form here counts."""
    if frame_time > 0 and window > 1 and window > links.queue_room(link, frame):
        raise NoClosedFormError(f"a window of {window} packets overflows the queue of {link['queue']}")


def numbers(spec: Mapping[str, Any]) -> Setting | None:
    """As `setting`, and None where theory has no form for what the specification asks for."""
    try:
        return setting(spec)
    except NoClosedFormError:
        return None
