"""The steady-state rate of a TCP sender whose losses are independent of its queue.

The response function of a controller depends on RTT and loss (`longfat.analysis.theory.tcp`); this module
selects the applicable one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from longfat.analysis.theory import tcp

RENO, CUBIC = "reno", "cubic"

FEW_TIMEOUTS = 0.01
"""Loss up to which the Mathis form, which ignores timeouts, is more accurate than PFTK."""

_ROUNDING = 1 + 1e-9
_NOTES = {
    "mathis": "Mathis: 1.31 / (RTT sqrt(p)), without timeouts",
    "pftk": "PFTK: with timeouts, without SACK",
}
_OF_CUBIC = "CUBIC: RFC 9438, section 5.1"


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
    settings: Mapping[str, float] | None = None,
) -> Response:
    """Returns the rate that loss allows.

    `round_trip` and the first `timeout` are in s, `window` is the maximum number of unacknowledged packets,
    and `settings` are c and beta of CUBIC. Raises ValueError for a controller without a closed form.

    >>> round(response("reno", 0.1, 0.0001, 0.3, window=1e9).rate)
    1310
    """
    if controller == CUBIC:
        # CUBIC is at least as fast as Reno (RFC 9438, section 4.3), with Reno's timeouts.
        reno = response(RENO, round_trip, loss, timeout, window=window)
        rate = tcp.cubic(round_trip, loss, **(settings or {}))
        if rate > reno.rate:
            return Response(rate, _OF_CUBIC)
        return Response(reno.rate, f"{reno.note}: CUBIC is not slower than Reno")
    if controller != RENO:
        raise ValueError(f"{controller} responds to losses by other rules than Reno and CUBIC")
    forms = {
        "mathis": tcp.mathis(round_trip, loss),
        "pftk": tcp.pftk(round_trip, loss, timeout, most=window),
    }
    chosen = "pftk" if has_timeouts(loss) else "mathis"
    return Response(forms[chosen], _NOTES[chosen], forms)


def has_timeouts(loss: float) -> bool:
    """Whether the applicable form for Reno includes retransmission timeouts."""
    return loss > FEW_TIMEOUTS * _ROUNDING
