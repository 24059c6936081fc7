"""Closed forms for automatic repeat request (ARQ): the rate of a protocol on a path.

All rates are in packets per second, for an endless stream in steady state; times are in seconds, and losses
are probabilities of independent (Bernoulli) loss per packet.

Symbols, as in the textbooks: t_f the transmission time of a data frame, t_a that of an ACK frame, R the round
trip t_f + t_a + both one-way delays, W the window in packets, p the loss of data frames, s = 1 - p, T the
retransmission timeout counted from a packet's (last) transmission.

Sources: Bertsekas and Gallager, Data Networks (2nd ed.), section 2.4; Tanenbaum, Computer Networks, section
3.4; Stallings, Data and Computer Communications, appendix 7A (performance issues of ARQ). The docstring of
a form that goes beyond these contains its derivation.
"""

from __future__ import annotations

GRANULARITY = 0.004
"""The minimum margin of an adaptive timeout over the round trip, in s (G in RFC 6298, section 2.3)."""


def bandwidth_delay_product(rate: float, round_trip: float) -> float:
    """Returns the bits that fill a path: rate (bit/s) times round-trip time (s).

    >>> bandwidth_delay_product(100e6, 0.01)
    1000000.0
    """
    return rate * round_trip


def lossless(window: float, frame_time: float, round_trip: float) -> float:
    """Returns the packets per second without loss: W / R if the window limits, else 1 / t_f.

    Exact. The window limits below W = R / t_f (Tanenbaum's 2 BD + 1 packets with BD the one-way product).

    >>> lossless(4, 0.0001, 0.01), lossless(200, 0.0001, 0.01)
    (400.0, 10000.0)
    """
    by_window = window / round_trip
    return min(by_window, 1 / frame_time) if frame_time > 0 else by_window


def stop_and_wait(round_trip: float, loss: float, ack_loss: float, timeout: float) -> float:
    """Packets per second of stop-and-wait with a fixed timer.

    Exact for T >= R. A packet is delivered and acknowledged in one attempt with probability 1 - q, where
    q = 1 - (1 - p)(1 - p_a). Each failed attempt costs T, the last one R: R + T q / (1 - q) per packet
    (Bertsekas and Gallager, section 2.4.1).

    >>> round(stop_and_wait(0.010, 0.02, 0.0, 0.010) * 8000 / 1e6, 3)
    0.784
    """
    failed = 1 - (1 - loss) * (1 - ack_loss)
    return 1 / (round_trip + timeout * failed / (1 - failed))


def stop_and_wait_backoff(round_trip: float, loss: float, ack_loss: float, timeout: float) -> float:
    """As `stop_and_wait`, with a timer that doubles on each expiry until an ACK arrives (RFC 6298, 5.5).

    k failures in a row cost T (2^k - 1); their mean is T q / (1 - 2 q), which diverges at q = 1/2, where the
    rate becomes 0. Exact for a timer that returns to T with each ACK.

    >>> stop_and_wait_backoff(0.010, 0.0, 0.0, 0.2)
    100.0
    """
    failed = 1 - (1 - loss) * (1 - ack_loss)
    if failed >= 0.5:
        return 0.0
    return 1 / (round_trip + timeout * failed / (1 - 2 * failed))


def go_back_n_textbook(window: int, round_trip: float, loss: float) -> float:
    """The textbook simplification of Go-Back-N: W s / (R (s + W p)).

    It ignores the frame time, assumes T = R and charges one window per loss.

    >>> [round(go_back_n_textbook(w, 0.010, 0.02) * 8000 / 1e6, 2) for w in (4, 8, 16, 32)]
    [2.96, 5.5, 9.65, 15.49]
    """
    success = 1 - loss
    return window * success / (round_trip * (success + window * loss))


def selective_repeat_textbook(window: int, round_trip: float, loss: float) -> float:
    """The textbook simplification of selective repeat: a loss costs one slot and never stalls the window.

    W s / R: an upper bound, since a real window stops at its oldest missing packet.

    >>> [round(selective_repeat_textbook(w, 0.010, 0.02) * 8000 / 1e6, 2) for w in (4, 8, 16, 32)]
    [3.14, 6.27, 12.54, 25.09]
    """
    return window * (1 - loss) / round_trip


def go_back_n(window: int, frame_time: float, round_trip: float, loss: float, timeout: float) -> float:
    """Packets per second of Go-Back-N with a fixed timer and no fast retransmission.

    Exact for Bernoulli loss of data frames, no loss of ACKs, and T of at least R + (W - 1) t_f.

    After each return to the lost packet, the window leaves at once and the pipeline restarts, so the process
    renews there. With J - 1 packets in order before the next loss (geometric with mean s / p), the lost
    packet number i = J - 1 (from 0) leaves when packet i - W is acknowledged, and the window is retransmitted
    T later. For i < W it leaves at 0. For i = a W + b with a >= 1 it leaves at a R + b t_f if the window
    limits, and at R + (i - W) t_f if the link limits. Means over the geometric distribution give the cycle's
    length.

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
        # b, the place within a window, is geometric, truncated at W, and independent of a.
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
    """Packets per second of selective repeat that retransmits a missing packet after T.

    Approximate (within 4 % of the exact recursion below for W <= 36, p <= 10 %, T >= R, t_f << R).

    The exact process has no closed form: packet i + W leaves when all up to i are acknowledged, S(i+W) = max
    over j <= i of S(j) + R + K(j) T, with K geometric. Approximation if the window limits: a cycle starts
    with W packets sent together. It lasts R + T E[max K] over them, and delivers these W packets and those
    that the packets before the first loss release, which arrive during its repair.

    If the link limits (W t_f >= R), the cycle runs from one stall of the window to the next: the J packets
    before a loss and the following W, in J t_f + max(R + T E[max K given a loss], W t_f).

    `ack_loss` applies to a packet that is retransmitted alone, since no later ACK replaces its own;
    `backs_off` is whether the timer doubles in that case.

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
        # The first of the W packets is lost at least once; its retransmission and the others may be lost too.
        repairs = 1 + _mean_of_maximum(1 + (window - 1) * loss, again, again, doubled)
        duration = frame_time * success / loss + max(round_trip + timeout * repairs, window * frame_time)
        return (success / loss + window) / duration
    before_loss = sum(j * success**j * loss for j in range(window))
    duration = round_trip + timeout * _mean_of_maximum(window, loss, again, doubled)
    return (window + before_loss) / duration


def _mean_of_maximum(count: float, first: float, again: float, alone: float) -> float:
    """The mean of the maximum of `count` numbers of failures, in units of the timeout.

    The sum over k >= 1 of P(max >= k): a number is at least k with probability `first` * `again`^(k-1). With
    probability `alone`, the k-th timeout has doubled k - 1 times.
    """
    total, tail, factor = 0.0, first, 1.0
    while (term := 1 - (1 - tail) ** count) > 1e-12:
        total += term * (1 + alone * (factor - 1))
        tail *= again
        factor *= 2
    return total


def settled_timeout(window: int, frame_time: float, round_trip: float, loss: float, floor: float) -> float:
    """The adaptive timeout (RFC 6298) of a sender with fixed window when its next packet is lost, in s.

    The estimator runs over the round trips of mean cycles until it settles: after each loss the window leaves
    at once, so packet i waits for i frames and takes R + i t_f; the s / p packets up to the next loss take
    max(R, W t_f). Approximate: real cycles vary in length. `floor` is the minimum timeout.

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
    """The effective window with cumulative ACKs, some of which are lost.

    The next ACK replaces a lost one, so only losses at the end of a window count: their mean number is
    p_a / (1 - p_a). Approximate; at least one packet.

    >>> round(window_with_ack_loss(4, 0.02), 3)
    3.98
    """
    return max(1.0, window - ack_loss / (1 - ack_loss))
