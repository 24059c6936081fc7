"""Predictions of the goodput of an ARQ protocol that sends a file over a path.

Compared with the simulator (10 and 100 Mbit/s, 0 to 5 ms, windows of 1 to 36 packets, 2 to 10 % loss), the
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
"""The protocols with closed forms."""

ARQ_HEADER = 32
"""Bytes of the fixed header of every ARQ frame."""
UDP_IPV4 = 28
"""Bytes of the UDP and IPv4 headers, which count for transmission times."""

MOST_LOSSES, MOST_EARLY_LOSSES = 5.0, 0.75
"""Maximum losses per window for the approximations of selective repeat on a full path, and of early loss
detection; beyond these they differ from the simulator by more than 10 %."""

FAST_THRESHOLD = 3
"""Later arrivals that indicate a loss (RFC 5681, section 3.2)."""


@dataclass(frozen=True)
class Setting:
    """A specification as numbers: times in s, sizes in bytes, losses as probabilities.

    `round_trip` includes the transmission of one data and one ACK frame; `timeout` is the first timeout, and
    `backs_off` whether further ones double. `links` is the number of links in series, and `most` the maximum
    packets per second that they deliver.
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
    """Predicts the goodput in bit/s of a trial specification (`path`, `protocol`, `workload`)."""
    try:
        found = setting(spec)
    except NoClosedFormError as reason:
        return nothing(reason)
    try:
        return _predict(found)
    except NoClosedFormError as reason:
        rate = min(found.window / found.round_trip, found.most)
        note = f"upper bound by window and link, min(W / R, 1 / t_f); no closed form: {reason}"
        return Prediction(None, exact=False, note=note, bound=rate * found.payload * 8)


def _predict(of: Setting) -> Prediction:
    # A window of one packet is stop-and-wait.
    if of.kind == "stop-and-wait" or of.window == 1:
        if of.timeout < of.round_trip:
            raise NoClosedFormError("the timeout is shorter than the RTT: it always fires")
        form = arq.stop_and_wait_backoff if of.backs_off else arq.stop_and_wait
        rate = form(of.round_trip, of.loss, of.ack_loss, of.timeout)
        exact = not of.backs_off or (of.loss == 0 and of.ack_loss == 0)
        note = "stop-and-wait: R + T q / (1 - q) per packet"
        if of.backs_off:
            note = "stop-and-wait: R + T q / (1 - 2q) per packet, with a settled adaptive timer"
        return Prediction(rate * of.payload * 8, exact, note)
    if not of.backs_off and of.timeout < of.round_trip + (of.window - 1) * of.frame_time:
        raise NoClosedFormError("the timeout is shorter than the RTT of a whole window: it always fires")
    if of.loss == 0 and of.ack_loss == 0:
        rate = arq.lossless(of.window, of.frame_time, of.round_trip)
        return Prediction(rate * of.payload * 8, exact=True, note="min(W / R, 1 / t_f): no loss")
    _check_limits(of)
    timeout = _recovery(of)
    left = arq.window_with_ack_loss(of.window, of.ack_loss) / of.window
    if of.kind == "go-back-n":
        rate = arq.go_back_n(of.window, of.frame_time, of.round_trip, of.loss, timeout)
        # Lost packets take no transmission time on later links.
        exact = not of.early and not of.backs_off and of.ack_loss == 0 and of.links == 1
        note = "Go-Back-N: renewal at each return to a lost packet"
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
        note = "selective repeat: a loss stalls the window until its repair"
    parts = [note]
    if of.ack_loss:
        parts.append("lost ACKs shorten the window")
    if of.early:
        parts.append(f"losses are detected by {FAST_THRESHOLD} later arrivals")
    if of.backs_off:
        parts.append("with a settled adaptive timer")
    return Prediction(rate * left * of.payload * 8, exact, "; ".join(parts))


def _check_limits(of: Setting) -> None:
    """Raises NoClosedFormError outside the limits within which the forms are accurate under loss."""
    queue = of.window * of.frame_time
    burst = of.round_trip + (of.window - 1) * of.frame_time
    full = queue > of.round_trip and of.window > 1
    if of.early and (full or of.window * of.loss > MOST_EARLY_LOSSES):
        raise NoClosedFormError("early detection with several losses per window")
    if full and of.kind == "selective-repeat" and of.window * of.loss > MOST_LOSSES:
        raise NoClosedFormError("too many losses in a window that fills the path")
    # The estimator adds at most three times the spread of a window's round trips.
    settled = of.round_trip + 3 * (burst - of.round_trip) <= of.timeout or queue <= of.round_trip / 4
    if of.backs_off and of.window > 1 and not settled:
        raise NoClosedFormError(
            "the adaptive timer depends on the queue of the window (a fixed rto has one, if it is longer "
            "than the RTT of a whole window)"
        )


def _recovery(of: Setting) -> float:
    """The time from a packet's transmission to its retransmission, in s.

    With windows above one, ACKs of other packets reset the timer's backoff. Detection by later arrivals takes
    a round trip and the transmission of these; the last packets of a window wait for the next window to show
    the gap. Go-Back-N uses it once per window: a loss among its retransmissions waits for the timer.
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
    """Returns a specification as numbers; raises NoClosedFormError if no form applies to it."""
    protocol, path = dict(spec.get("protocol", {})), links.directions(spec.get("path", {}))
    forward, reverse = [there for there, _ in path], [back for _, back in path]
    if spec.get("workload", {}).get("from") == "receiver":
        # The data flows in the reverse direction, over the last link first.
        forward, reverse = reverse[::-1], forward[::-1]
    kind = str(protocol.get("kind"))
    if kind not in KINDS:
        raise NoClosedFormError(f"{kind} is not an ARQ protocol with fixed window")
    if spec.get("workload", {}).get("kind", "file") != "file":
        raise NoClosedFormError("the workload is not a file transfer")
    if int(protocol.get("acknowledge_every", 1)) != 1:
        raise NoClosedFormError("ACKs are delayed")
    window = _window(kind, protocol)
    payload = links.number(_setting(protocol, "mss"), "mss")
    frame = payload + ARQ_HEADER + UDP_IPV4
    ack = ARQ_HEADER + UDP_IPV4
    # Links store and forward whole packets; the slowest link determines the rate.
    frame_times = [links.sending_time(link, frame) for link in forward]
    frame_time, ack_time = max(frame_times), sum(links.sending_time(link, ack) for link in reverse)
    round_trip = sum(frame_times) + ack_time + sum(links.delay(link) for link in (*forward, *reverse))
    if round_trip <= 0:
        raise NoClosedFormError("the path takes no time: only the computer limits")
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
    """A key of a protocol, or the default of its family; other families have keys with the same name."""
    if key in protocol:
        return protocol[key]
    schema = vocabulary()["protocol"]
    families = (one["properties"] for one in schema["anyOf"])
    own = next(keys for keys in families if protocol["kind"] in _kinds(keys["kind"], schema["$defs"]))
    return own[key].get("default")


def _kinds(kind: Mapping[str, Any], definitions: Mapping[str, Any]) -> set[str]:
    """The values of a family's key `kind`."""
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
    """Raises NoClosedFormError if the window overflows the queue."""
    if frame_time > 0 and window > 1 and window > links.queue_room(link, frame):
        queue = link.get("queue", links.DEFAULT_QUEUE)
        raise NoClosedFormError(f"a window of {window} packets overflows the queue of {queue}")


def numbers(spec: Mapping[str, Any]) -> Setting | None:
    """Like `setting`; None if no form applies to the specification."""
    try:
        return setting(spec)
    except NoClosedFormError:
        return None
