"""TCP's closed forms, compared with values from RFCs and papers, and with their definitions."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longfat.analysis.theory import tcp

LOSSES = st.floats(1e-6, 0.4)
WINDOWS = st.floats(3.5, 500)


@pytest.mark.parametrize(
    ("loss", "window"),
    [(1e-2, 12), (1e-3, 38), (1e-4, 120), (1e-5, 379), (1e-6, 1200), (1e-7, 3795), (1e-8, 12000)],
)
def test_mathis_gives_the_response_of_standard_tcp(loss: float, window: float) -> None:
    """RFC 9438, table 1, column AIMD (and RFC 3649, section 5): 1.2 / sqrt(p), 1.2 being 1.22 rounded."""
    rate = tcp.mathis(0.1, loss, constant=tcp.PERIODIC)
    assert rate * 0.1 == pytest.approx(window, rel=0.026)


def test_mathis_constants_are_those_of_its_paper() -> None:
    """Mathis et al., section 2: 1.22 and 0.87 for periodic, 1.31 and 0.93 for random losses."""
    for constant, each, delayed in ((tcp.PERIODIC, 1.22, 0.87), (tcp.RANDOM, 1.31, 0.93)):
        assert tcp.mathis(1, 1, constant=constant) == pytest.approx(each, abs=0.005)
        assert tcp.mathis(1, 1, constant=constant, packets_per_ack=2) == pytest.approx(delayed, abs=0.005)


@pytest.mark.parametrize(
    ("c", "loss", "window"),
    [
        (0.04, 1e-5, 593),
        (0.04, 1e-6, 3332),
        (0.04, 1e-8, 105383),
        (0.4, 1e-4, 187),
        (0.4, 1e-5, 1054),
        (0.4, 1e-7, 33325),
        (4, 1e-4, 333),
        (4, 1e-5, 1874),
        (4, 1e-8, 333250),
    ],
)
def test_cubic_gives_the_response_that_its_rfc_prints(c: float, loss: float, window: float) -> None:
    """RFC 9438, section 5.1, table of mean windows at an RTT of 0.1 s, CUBIC region only."""
    assert tcp.cubic(0.1, loss, c=c) * 0.1 == pytest.approx(window, abs=0.5, rel=1e-4)


@pytest.mark.parametrize(("loss", "printed"), [(0.0001, 0.008172), (0.002, 0.037172)])
def test_the_simple_form_matches_tfrc(loss: float, printed: float) -> None:
    """Values of sqrt(2p/3) + 12 sqrt(3p/8) (p + 32p^3), the form of RFC 3448 with t_RTO = 4 R.

    The values are from the tables of Linux's net/dccp/ccids/lib/tfrc_equation.c, in millionths.
    """
    assert 1 / tcp.pftk_simple(1.0, loss, 4.0) == pytest.approx(printed, abs=1e-6)


def test_pftk_is_mathis_where_losses_are_rare() -> None:
    for packets_per_ack in (1, 2):
        model = tcp.pftk(0.1, 1e-6, 0.4, packets_per_ack=packets_per_ack)
        rare = tcp.mathis(0.1, 1e-6, constant=tcp.PERIODIC, packets_per_ack=packets_per_ack)
        assert model == pytest.approx(rare, rel=0.01)


@given(st.floats(1e-6, 0.1), st.floats(0.2, 3.0))
def test_the_simple_form_approximates_the_full_one(loss: float, timeout: float) -> None:
    """The forms agree within 20 % up to 5 % loss, within 50 % up to 10 %; Padhye et al. call them close."""
    full, simple = tcp.pftk(0.2, loss, timeout), tcp.pftk_simple(0.2, loss, timeout)
    assert full / simple == pytest.approx(1, abs=0.2 if loss <= 0.05 else 0.5)


@given(LOSSES, st.integers(4, 400))
def test_the_timeout_probability_matches_its_definition(loss: float, window: int) -> None:
    """Padhye et al., equation 23: the sum over the number of arrivals in a window's last round."""
    kept = 1 - loss
    whole = 1 - kept**window

    def before(k: int) -> float:
        return kept**k * loss / whole

    def few_duplicates(k: int) -> float:
        return sum(kept**m * loss for m in range(3) if m < k) + (kept**k if k < 3 else 0)

    summed = sum(before(k) for k in range(3))
    summed += sum(before(k) * few_duplicates(k) for k in range(3, window))
    assert tcp.timeout_probability(loss, window) == pytest.approx(min(1, summed), rel=1e-6, abs=1e-9)


@given(LOSSES, WINDOWS, st.floats(0.2, 3.0))
def test_a_largest_window_never_makes_it_faster(loss: float, most: float, timeout: float) -> None:
    limited = tcp.pftk(0.1, loss, timeout, most=most)
    assert limited <= most / 0.1 * 1.0001
    assert limited <= tcp.pftk(0.1, loss, timeout) * 1.12  # the two branches of the model meet within this


@given(st.floats(2, 5000), st.floats(0, 5000), st.floats(0.3, 0.9))
def test_the_sawtooth_matches_an_explicit_sum(pipe: float, buffer: float, factor: float) -> None:
    top = pipe + buffer
    steps = 2000
    windows = [top * (factor + (1 - factor) * (i + 0.5) / steps) for i in range(steps)]
    lasted = [max(1.0, window / pipe) for window in windows]
    queued = [max(0.0, window - pipe) for window in windows]
    used = sum(windows) / sum(lasted) / pipe
    queue = sum(h * t for h, t in zip(queued, lasted, strict=True)) / sum(lasted)
    assert tcp.sawtooth_utilisation(pipe, buffer, factor) == pytest.approx(used, rel=1e-3)
    assert tcp.sawtooth_queue(pipe, buffer, factor) == pytest.approx(queue, rel=1e-2, abs=1e-2 + 1e-4 * pipe)


def test_a_buffer_of_one_bdp_fills_the_link() -> None:
    """A buffer of one BDP fills the link, none 75 % (Villamizar and Song; Appenzeller et al., section 2)."""
    assert tcp.sawtooth_utilisation(100, 100) == 1.0
    assert tcp.sawtooth_utilisation(100, 99) < 1.0
    assert tcp.sawtooth_utilisation(100, 0) == 0.75


def test_a_window_limit_gives_its_rate() -> None:
    """RFC 7323, section 1.1: a window of 64 KB over 100 ms allows about 5.2 Mbit/s."""
    assert tcp.window_limited(65535 * 8, 0.1) == pytest.approx(5.24e6, rel=1e-3)
    assert tcp.bandwidth_delay_product(10e9, 0.1) == 1e9
    assert math.isclose(tcp.vegas_queue(1, 2, 4)[1], 4)
