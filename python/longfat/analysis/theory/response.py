"""The steady-state rate of a TCP sender whose losses are independent of its queue.

The response function of a controller depends on RTT and loss (`longfat.analysis.theory.tcp`); this module
selects the applicable one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from longfat.analysis.theory import tcp

RENO, CUBIC = "reno", "cubic"
Rules = Literal["linux", "rfc"]
"""Rules of CUBIC's Reno-friendly region."""

_OF_RENO = "Mathis with recovery: RTT (sqrt(p) / 1.31 + p) per packet, and timeouts"
_OF_CUBIC = {
    "linux": "CUBIC at random losses: Linux's Reno-friendly region, the curve, and timeouts",
    "rfc": "CUBIC at random losses: Reno's window (RFC 9438, section 4.3), the curve, and timeouts",
}


@dataclass(frozen=True)
class Response:
    """Packets per second, the selected form, and all forms by name if there are several."""

    rate: float
    note: str
    forms: Mapping[str, float] = field(default_factory=dict)


def response(
    controller: str,
    round_trip: float,
    loss: float,
    timeout: float,
    *,
    window: float,
    loss_of_acks: float = 0.0,
    settings: Mapping[str, float] | None = None,
    rules: Rules = "linux",
) -> Response:
    """Returns the rate that loss allows; continuous in all arguments.

    `round_trip` and the first `timeout` are in s, `window` is the maximum number of unacknowledged packets,
    `settings` are c and beta of CUBIC, and `rules` those of CUBIC. Raises ValueError for a controller without
    a closed form.

    >>> round(response("reno", 0.1, 0.0001, 0.3, window=1e9).rate)
    1293
    """
    if controller == CUBIC:
        given = settings or {}
        beta = given.get("beta", tcp.CUBIC_BETA)
        curve = tcp.CUBIC_RANDOM * tcp.cubic(round_trip, loss, **given) * round_trip
        friendly = tcp.mean_reno_friendly(loss, beta=beta) if rules == "linux" else tcp.mean_reno(loss)
        mean, note = tcp.larger(curve, friendly), _OF_CUBIC[rules]
    elif controller == RENO:
        mean, note = tcp.mean_reno(loss), _OF_RENO
    else:
        raise ValueError("the controller responds to losses by other rules than Reno and CUBIC")
    rate = tcp.with_timeouts(mean, round_trip, loss, timeout, loss_of_acks=loss_of_acks)
    if controller == CUBIC:
        return Response(rate, note)
    forms = {
        "mathis": tcp.mathis(round_trip, loss),
        "recovery": rate,
        "pftk": tcp.pftk(round_trip, loss, timeout, most=window),
    }
    return Response(rate, note, forms)
