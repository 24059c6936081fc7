"""Closed forms for a TCP flow in steady state.

Rates are packets per second, windows and queues packets, times seconds, losses probabilities of a packet.

Sources: Mathis, Semke, Mahdavi and Ott, The macroscopic behavior of the TCP congestion avoidance algorithm
(CCR 27(3), 1997); Ott, Kemperman and Mathis, The stationary behavior of ideal TCP congestion avoidance
(1996); Padhye, Firoiu, Towsley and Kurose, Modeling TCP throughput (SIGCOMM 1998); Villamizar and Song,
High performance TCP in ANSNET (CCR 24(5), 1994) and Appenzeller, Keslassy and McKeown, Sizing router buffers
(SIGCOMM 2004); Brakmo and Peterson, TCP Vegas (JSAC 13(8), 1995); Poojary and Sharma, An asymptotic
approximation of TCP CUBIC (arXiv 1510.08496).
"""

from __future__ import annotations

import math

PERIODIC = math.sqrt(3 / 2)
"""The Mathis constant for equally spaced losses and an ACK per packet: 1.22."""
RANDOM = 1.3098
"""The Mathis constant for independent losses (Ott, Kemperman and Mathis): 1.31."""
CUBIC_RANDOM = 1.134
"""Mean window of CUBIC under independent losses, relative to equally spaced ones.

Computed for this project from the Markov chain of windows at losses, as Poojary and Sharma model CUBIC, with
fast convergence and beta = 0.7; 1.07 with beta = 0.5, 1.23 with beta = 0.9, 1.23 without fast convergence.
"""
CUBIC_BETA = 0.7
"""CUBIC's default multiplicative decrease factor (RFC 9438, section 4.6)."""
ROUNDS_PER_LOSS = 1.0
"""Round trips that a loss costs besides the smaller window, for recovery and whole packets: fitted."""
_ROUNDED_OFF = 0.5
"""Mean part of a packet that Linux removes when it rounds a reduced window down to whole packets."""
_TIMEOUTS = 2.0
"""Share of losses with a timeout, divided by the squared loss probability of a packet and its ACK: fitted."""
_LARGER = 4
"""Exponent of the smooth maximum of CUBIC's two windows: fitted."""
_AIMD_TERMS = 200
"""Terms of the infinite product of `random_aimd`; they converge for factors up to 0.99 within 1 %."""


def window_limited(window: float, round_trip: float) -> float:
    """Returns the packets per second of a constant window that does not fill the path: W / RTT.

    >>> window_limited(64, 0.1)
    640.0
    """
    return window / round_trip


def bandwidth_delay_product(rate: float, round_trip: float) -> float:
    """Returns the window that fills a path without a queue: rate (packets per second) times RTT (s).

    >>> bandwidth_delay_product(1000, 0.05)
    50.0
    """
    return rate * round_trip


def mathis(
    round_trip: float, loss: float, *, packets_per_ack: float = 1.0, constant: float = RANDOM
) -> float:
    """Returns the packets per second of Reno if only loss limits its window: C / (RTT sqrt(b p)).

    `packets_per_ack` is b: 2 with delayed ACKs and growth per ACK (C is then 0.93, or 0.87 for periodic
    losses), 1 with growth by acknowledged bytes. Accurate while timeouts are rare, up to about 1 % loss.

    >>> round(mathis(0.1, 0.0001, constant=PERIODIC), 1)
    1224.7
    """
    return constant / (round_trip * math.sqrt(packets_per_ack * loss))


def random_aimd(growth: float, factor: float) -> float:
    """Returns C of C / (RTT sqrt(p)) for independent losses and additive increase, multiplicative decrease.

    The window grows by `growth` packets per round trip, and a loss multiplies it by `factor`. Ott, Kemperman
    and Mathis derive C for growth 1 and factor 1/2. In general, with time in packets, W^2 / (2 growth) grows
    by 1 per packet, and a loss multiplies it by factor^2; 1 / C is the mean of 1 / W with p = 1.

    >>> round(random_aimd(1, 0.5), 4), round(random_aimd(3 * 0.3 / 1.7, 0.7), 3)
    (1.3098, 1.274)
    """
    constant = math.sqrt(2 * growth / math.pi)
    for k in range(1, _AIMD_TERMS):
        constant *= (1 - factor ** (2 * k)) / (1 - factor ** (2 * k - 1))
    return constant


def reno_friendly_growth(beta: float) -> float:
    """Returns the packets per round trip by which CUBIC grows in its Reno-friendly region (RFC 9438, 4.3)."""
    return 3 * (1 - beta) / (1 + beta)


def mean_reno(loss: float) -> float:
    """Returns Reno's mean window with SACK under independent losses: 1 / (sqrt(p) / 1.31 + p).

    This is the form of Mathis with `ROUNDS_PER_LOSS` for each loss: the window does not grow during recovery.

    >>> round(mean_reno(0.0001)), round(mean_reno(0.01), 1)
    (129, 11.6)
    """
    return 1 / (math.sqrt(loss) / RANDOM + ROUNDS_PER_LOSS * loss)


def mean_reno_friendly(loss: float, *, beta: float = CUBIC_BETA) -> float:
    """Returns the mean window of CUBIC in its Reno-friendly region as Linux implements it.

    Under equally spaced losses, growth by 3 (1 - beta) / (1 + beta) gives Reno's mean window. Under
    independent ones it gives 3 % less. RFC 9438 grows by 1 from the window of the last loss on; Linux does
    not. The growth also needs `_ROUNDED_OFF` / growth round trips for the part of a packet that rounding
    removes at each loss.

    >>> round(mean_reno_friendly(0.0001)), round(mean_reno_friendly(0.01), 1)
    (124, 10.2)
    """
    growth = reno_friendly_growth(beta)
    rounds = ROUNDS_PER_LOSS + _ROUNDED_OFF / growth
    return 1 / (math.sqrt(loss) / random_aimd(growth, beta) + rounds * loss)


def larger(*windows: float) -> float:
    """Returns a smooth maximum of mean windows: CUBIC's window is the larger of two at each time.

    >>> larger(10.0, 1.0), larger(10.0, 10.0)  # doctest: +ELLIPSIS
    (10.0002..., 11.89...)
    """
    return float(math.fsum(window**_LARGER for window in windows) ** (1 / _LARGER))


def with_timeouts(
    window: float, round_trip: float, loss: float, timeout: float, *, loss_of_acks: float = 0.0
) -> float:
    """Returns the packets per second of a sender with SACK and RACK-TLP and this mean window.

    Some losses end in timeouts, which double as in the model of Padhye et al. (eq. 28): 2 u^2 of them, where
    u is the probability that a packet or its ACK is lost. This share is fitted to the simulator (profile
    linux, 5 to 30 % loss of packets, or 5 and 10 % of packets and ACKs).

    >>> round(with_timeouts(10, 0.1, 0.1, 0.3) * 0.1, 2)
    9.3
    """
    unanswered = 1 - (1 - loss) * (1 - loss_of_acks)
    waited = min(1.0, _TIMEOUTS * unanswered**2) * timeout * _backoffs(unanswered) / (1 - unanswered)
    return 1 / (round_trip / window + loss * waited)


def cubic(round_trip: float, loss: float, *, c: float = 0.4, beta: float = CUBIC_BETA) -> float:
    """Returns the packets per second of CUBIC outside its Reno-friendly region (RFC 9438, eq. 6).

    Assumes equally spaced losses; `CUBIC_RANDOM` times as much under independent ones.

    >>> round(cubic(0.1, 1e-6) * 0.1)
    5926
    """
    window = (c * (3 + beta) / (4 * (1 - beta))) ** 0.25 * (round_trip / loss) ** 0.75
    return float(window / round_trip)


def pftk(
    round_trip: float,
    loss: float,
    timeout: float,
    *,
    packets_per_ack: float = 1.0,
    most: float = math.inf,
) -> float:
    """Returns the packets per second of Reno including timeouts: the full model of Padhye et al. (eq. 32).

    `timeout` is T0, the first retransmission timeout, `most` the largest window. In the model, a loss implies
    that the rest of its round is lost, and there is no SACK: a TCP with SACK and independent losses has fewer
    timeouts and is faster.
    """
    p, b = loss, packets_per_ack
    tail = timeout * _backoffs(p) / (1 - p)
    unlimited = mean_window(p, b)
    if unlimited < most:
        window, rounds = unlimited, b / 2 * unlimited + 1
    else:
        window, rounds = most, b / 8 * most + (1 - p) / (p * most) + 2
    ends = timeout_probability(p, window)
    sent = (1 - p) / p + window + ends / (1 - p)
    return sent / (round_trip * rounds + ends * tail)


def pftk_simple(
    round_trip: float,
    loss: float,
    timeout: float,
    *,
    packets_per_ack: float = 1.0,
    most: float = math.inf,
) -> float:
    """Returns the authors' approximation of `pftk` (eq. 33), the basis of RFC 5348 (section 3.1)."""
    p, b = loss, packets_per_ack
    per_packet = round_trip * math.sqrt(2 * b * p / 3)
    per_packet += timeout * min(1.0, 3 * math.sqrt(3 * b * p / 8)) * p * (1 + 32 * p * p)
    return min(most / round_trip, 1 / per_packet)


def mean_window(loss: float, packets_per_ack: float = 1.0) -> float:
    """Returns the mean window when a loss is detected (Padhye et al., eq. 13).

    >>> round(mean_window(0.0001), 1), round(mean_window(0.01, 2), 1)
    (164.3, 12.2)
    """
    b = packets_per_ack
    start = (2 + b) / (3 * b)
    return start + math.sqrt(8 * (1 - loss) / (3 * b * loss) + start * start)


def timeout_probability(loss: float, window: float) -> float:
    """Returns Q, the probability that a loss at this window causes a timeout (Padhye et al., eq. 24)."""
    if window <= 3:
        return 1.0
    kept = 1 - loss
    by_chance = (
        (1 - kept**3) * (1 + kept**3 * (1 - math.pow(kept, window - 3))) / (1 - math.pow(kept, window))
    )
    return min(1.0, by_chance)


def _backoffs(p: float) -> float:
    """The mean duration of a series of timeouts that double six times, in units of T0 / (1 - p) (eq. 28)."""
    return 1 + p * (1 + p * (2 + p * (4 + p * (8 + p * (16 + p * 32)))))


def sawtooth_utilisation(pipe: float, buffer: float, factor: float = 0.5) -> float:
    """Returns the utilisation of a link by one additive-increase flow that loses packets at its queue only.

    `pipe` is the bandwidth-delay product and `buffer` the limit of the drop-tail queue, in packets. The
    window grows by one per round trip from `factor` (pipe + buffer) to pipe + buffer, and falls back: below
    the pipe the link idles, above it the queue lengthens the round trip. For Reno, 75 % without a buffer and
    100 % from a buffer of one bandwidth-delay product (Villamizar and Song; Appenzeller et al., section 2).

    >>> sawtooth_utilisation(100, 0), sawtooth_utilisation(100, 100), round(sawtooth_utilisation(100, 25), 3)
    (0.75, 1.0, 0.893)
    """
    top = pipe + buffer
    bottom = factor * top
    if bottom >= pipe:
        return 1.0
    # Sums over a cycle with W packets per round trip, which lasts the pipe's RTT below it and W / pipe above.
    sent = (top**2 - bottom**2) / 2
    possible = pipe * (pipe - bottom) + (top**2 - pipe**2) / 2
    return sent / possible


def sawtooth_queue(pipe: float, buffer: float, factor: float = 0.5) -> float:
    """Returns the mean queue over time of the flow of `sawtooth_utilisation`, in packets.

    >>> sawtooth_queue(100, 0), round(sawtooth_queue(100, 100), 1)
    (0.0, 55.6)
    """
    top = pipe + buffer
    bottom = max(factor * top, pipe)
    idle = max(0.0, pipe - factor * top)
    # A round trip at window W lasts W / pipe, with a queue of W - pipe.
    queued = ((top**3 - bottom**3) / 3 - pipe * (top**2 - bottom**2) / 2) / pipe
    lasted = (top**2 - bottom**2) / 2 / pipe + idle
    return queued / lasted if lasted > 0 else 0.0


def vegas_queue(flows: float, alpha: float, beta: float) -> tuple[float, float]:
    """Returns the minimum and maximum number of packets that Vegas flows keep queued: alpha to beta each.

    >>> vegas_queue(3, 2, 4)
    (6, 12)
    """
    return flows * alpha, flows * beta
