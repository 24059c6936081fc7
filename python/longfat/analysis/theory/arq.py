"""Closed forms for automatic repeat request (ARQ): what a protocol should reach on a path.

All are rates of packets per second of an endless stream in steady state; times are in seconds, losses are
probabilities of independent (Bernoulli) loss a packet.

Symbols, as in the textbooks: t_f the time to put one data frame on the link, t_a one ACK frame, R the round
trip t_f + t_a + both one-way delays, W the window in packets, p the loss of data frames, s = 1 - p, T the
retransmission timeout counted from a packet's (last) transmission.

Sources: Bertsekas and Gallager, Data Networks (2nd ed.), section 2.4; Tanenbaum, Computer Networks, section
3.4; Stallings, Data and Computer Communications, appendix 7A (performance issues of ARQ). Where a form goes
beyond these, its derivation is in its docstring.
"""

from __future__ import annotations

GRANULARITY = 0.004
"""The least margin of an adaptive timeout over the round trip, in s (RFC 6298, section 2.3: its G)."""


def bandwidth_delay_product(rate: float, round_trip: float) -> float:
    """Bits that fill a path: rate (bit/s) times round-trip time (s).

    >>> bandwidth_delay_product(100e6, 0.01)
    1000000.0
    """
    return rate * round_trip


def lossless(window: float, frame_time: float, round_trip: float) -> float:
    """Packets per second without loss: W / R while the window limits, else 1 / t_f.

    Exact. The window limits below W = R / t_f (Tanenbaum's 2 BD + 1 packets with BD the one-way product).

    >>> lossless(4, 0.0001, 0.01), lossless(200, 0.0001, 0.01)
    (400.0, 10000.0)
    """
    by_window = window / round_trip
    return min(by_window, 1 / frame_time) if frame_time > 0 else by_window


def stop_and_wait(round_trip: float, loss: float, ack_loss: float, timeout: float) -> float:
    """Packets per second of stop-and-wait with a fixed timer.

    Exact for T >= R. A packet is delivered and acknowledged in one attempt with probability 1 - q, where
    q = 1 - (1 - p)(1 - p_a); each failed attempt costs T, the last one R: R + T q / (1 - q) a packet
    (Bertsekas and Gallager, section 2.4.1).

    >>> round(stop_and_wait(0.010, 0.02, 0.0, 0.010) * 8000 / 1e6, 3)
    0.784
    """
    failed = 1 - (1 - loss) * (1 - ack_loss)
    return 1 / (round_trip + timeout * failed / (1 - failed))


def stop_and_wait_backoff(round_trip: float, loss: float, ack_loss: float, timeout: float) -> float:
    """As `stop_and_wait`, with a timer that doubles on each expiry until an ACK arrives (RFC 6298, 5.5).

    k failures in a row cost T (2^k - 1); their mean is T q / (1 - 2 q), which grows beyond all bounds as q
    nears 1/2: the rate is 0 from there on. Exact for a timer that returns to T with each ACK.

    >>> stop_and_wait_backoff(0.010, 0.0, 0.0, 0.2)
    100.0
    """
    failed = 1 - (1 - loss) * (1 - ack_loss)
    if failed >= 0.5:
        return 0.0
    return 1 / (round_trip + timeout * failed / (1 - 2 * failed))


def go_back_n_textbook(window: int, round_trip: float, loss: float) -> float:
    """Go-Back-N as textbooks simplify it: no frame time, T = R, a loss costs one window: W s / (R (s + W p)).

    >>> [round(go_back_n_textbook(w, 0.010, 0.02) * 8000 / 1e6, 2) for w in (4, 8, 16, 32)]
    [2.96, 5.5, 9.65, 15.49]
    """
    success = 1 - loss
    return window * success / (round_trip * (success + window * loss))


def selective_repeat_textbook(window: int, round_trip: float, loss: float) -> float:
    """Selective repeat as textbooks simplify it: every loss costs one slot, and never stalls the window.

    W s / R: an upper bound, since a real window does stop at its oldest missing packet.

    >>> [round(selective_repeat_textbook(w, 0.010, 0.02) * 8000 / 1e6, 2) for w in (4, 8, 16, 32)]
    [3.14, 6.27, 12.54, 25.09]
    """
    return window * (1 - loss) / round_trip


def go_back_n(window: int, frame_time: float, round_trip: float, loss: float, timeout: float) -> float:
    """Packets per second of Go-Back-N with a fixed timer and no fast retransmission.

    Exact for Bernoulli loss of data frames, no loss of ACKs, T at least R + (W - 1) t_f.

    After each return the window leaves at once and the pipeline starts anew, so the process renews there.
    With J - 1 packets in order before the next loss (geometric: their mean is s / p), the lost packet number
    i = J - 1 (from 0) leaves when packet i - W is acknowledged, and T later the window is sent again. For
    i < W it leaves at 0. For i = a W + b with a >= 1 it leaves at a R + b t_f where the window limits, and at
    R + (i - W) t_f where the link does. Means over the geometric distribution give the cycle's length.

    >>> round(go_back_n(1, 0.0, 0.010, 0.02, 0.010) * 8000 / 1e6, 3)  # one packet: stop-and-wait
    0.784
    """
    if loss <= 0:
        return lossless(window, frame_time, round_trip)
    success = 1 - loss
    full = success**window
    if window * frame_time >= round_trip:
        departure = full * (round_trip + frame_time * success / loss)
    else:
        # b, the place within a window, is geometric cut off at W; it is independent of a, the windows before.
        place = sum(b * success**b for b in range(window)) * loss / (1 - full)
        departure = round_trip * full / (1 - full) + frame_time * place * full
    return success / loss / (timeout + departure)


def selective_repeat(
    window: int,
    frame_time: float,
    round_trip: float,
    loss: float,
    timeout: float,
    *,
    ack_loss: float = 0.0,
    backs_off: bool = False,
) -> float:
    """Packets per second of selective repeat in which a missing packet is sent again after T.

    Approximate (within 4 % of the exact recursion below for W <= 36, p <= 10 %, T >= R, t_f << R).

    The exact process has no closed form: packet i + W leaves when all up to i are acknowledged,
    S(i+W) = max over j <= i of S(j) + R + K(j) T, with K geometric. Approximation where the window
    limits: a cycle starts with W packets sent together. It lasts R + T E[max K] over them, and delivers these
    W and those that the packets before the first loss let out, which arrive while it is made good.

    Where the link limits (W t_f >= R) the cycle runs from one stop of the window to the next: the J packets
    before a loss and the W from there on, in J t_f + max(R + T E[max K given a loss], W t_f).

    `ack_loss` counts for a packet that alone is sent again, since no later ACK stands in for its own;
    `backs_off` says that the timer doubles then.

    >>> round(selective_repeat(1, 0.0, 0.010, 0.02, 0.010) * 8000 / 1e6, 3)  # one packet: stop-and-wait
    0.784
    """
    if loss <= 0:
        return lossless(window, frame_time, round_trip)
    success = 1 - loss
    alone = success ** (window - 1)
    again = 1 - success * (1 - ack_loss * alone)
    doubled = alone if backs_off else 0.0
    if window * frame_time >= round_trip:
        # The first of the W is lost at least once; what makes it good may be lost again, as may the others.
        repairs = 1 + _mean_of_maximum(1 + (window - 1) * loss, again, again, doubled)
        duration = frame_time * success / loss + max(round_trip + timeout * repairs, window * frame_time)
        return (success / loss + window) / duration
    before_loss = sum(j * success**j * loss for j in range(window))
    duration = round_trip + timeout * _mean_of_maximum(window, loss, again, doubled)
    return (window + before_loss) / duration


def _mean_of_maximum(count: float, first: float, again: float, alone: float) -> float:
    """The mean of the largest of `count` numbers of failures, in units of the timeout.

    The sum over k >= 1 of P(max >= k): a number is k or more with probability `first` * `again`^(k-1). With
    probability `alone` the k-th timeout is doubled k - 1 times.
    """
    total, tail, factor = 0.0, first, 1.0
    while (term := 1 - (1 - tail) ** count) > 1e-12:
        total += term * (1 + alone * (factor - 1))
        tail *= again
        factor *= 2
    return total


def settled_timeout(window: int, frame_time: float, round_trip: float, loss: float, floor: float) -> float:
    """The adaptive timeout (RFC 6298) that a sender of fixed window has when its next packet is lost, in s.

    The estimator is run over the round trips of mean cycles until it settles: after each loss the window
    leaves at once, so packet i waits for i frames before it and takes R + i t_f; the s / p packets up to the
    next loss then take max(R, W t_f). Approximate: real cycles vary in length. `floor` is the least timeout.

    >>> settled_timeout(4, 0.0001, 0.010, 0.02, 0.020)
    0.02
    """
    steady = max(round_trip, window * frame_time)
    until_loss = round((1 - loss) / loss) if loss > 0 else 1000
    cycle = [round_trip + i * frame_time for i in range(window)] + [steady] * until_loss
    smoothed, variation = round_trip, round_trip / 2
    for sample in cycle * 3:
        variation += (abs(sample - smoothed) - variation) / 4
        smoothed += (sample - smoothed) / 8
    return max(smoothed + max(4 * variation, GRANULARITY), floor)


def window_with_ack_loss(window: int, ack_loss: float) -> float:
    """The window that is left where ACKs are cumulative and some are lost.

    A lost ACK is made good by the next one, so only losses at the end of a window count: their mean number
    is p_a / (1 - p_a). Approximate; at least one packet is left.

    >>> round(window_with_ack_loss(4, 0.02), 3)
    3.98
    """
    return max(1.0, window - ack_loss / (1 - ack_loss))
