"""How fast a TCP sender goes in steady state where losses do not come from its own queue.

Each controller has a response function of round trip and loss (`longfat.analysis.theory.tcp`); this module
selects the one that applies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from longfat.analysis.theory import tcp

RENO, CUBIC = "reno", "cubic"
CONTROLLERS = (CUBIC, RENO)
"""Controllers whose response to loss has a closed form."""

FEW_TIMEOUTS = 0.01
"""Loss up to which Mathis' form, which knows no timeouts, says more than PFTK."""

_ROUNDING = 1 + 1e-9
_NOTES = {
    "mathis": "Mathis: 1.31 / (RTT sqrt(p)), without timeouts",
    "pftk": "PFTK: with timeouts, without SACK",
}
_OF_CUBIC = "CUBIC's response to loss, or Reno's where that is more"


@dataclass(frozen=True)
class Response:
    """Packets per second, the form they follow from, and all forms by name where there are several."""

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
    """The rate that loss allows; ValueError for a controller without a closed form.

    `round_trip` and `timeout` (the first one) in s, `window` the most packets that may be unacknowledged.
    `settings` are c and beta of CUBIC.

    >>> round(response("reno", 0.1, 0.0001, 0.3, window=1e9).rate)
    1310
    """
    if controller == CUBIC:
        # Where its own form is slower it goes as fast as Reno (RFC 9438, section 4.3), with Reno's timeouts.
        reno = response(RENO, round_trip, loss, timeout, window=window)
        rate = max(tcp.cubic(round_trip, loss, **(settings or {})), reno.rate)
        return Response(rate, _OF_CUBIC)
    if controller != RENO:
        raise ValueError(f"{controller} answers losses by other rules than Reno and CUBIC")
    forms = {
        "mathis": tcp.mathis(round_trip, loss),
        "pftk": tcp.pftk(round_trip, loss, timeout, most=window),
    }
    chosen = "pftk" if has_timeouts(loss) else "mathis"
    return Response(forms[chosen], _NOTES[chosen], forms)


def has_timeouts(loss: float) -> bool:
    """Whether the form of Reno that applies counts retransmission timeouts."""
    return loss > FEW_TIMEOUTS * _ROUNDING
