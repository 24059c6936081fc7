"""The causes and the conclusions of `longfat diagnose`."""

from __future__ import annotations

from typing import Any

import pytest

from longfat.analysis.diagnosis import PathFigures, ceilings, decisive
from longfat.presentation.measured.diagnosis_text import conclusion, queue, reasons, table
from longfat.results.run import Interval

FAST: dict[str, Any] = {"rate": 100e6, "round_trip": 0.02}


@pytest.mark.parametrize(
    ("figures", "cause"),
    [
        (PathFigures(**FAST), "bandwidth"),
        (PathFigures(**FAST, window=4e6), "bandwidth"),
        (PathFigures(**FAST, window=64e3), "window"),
        (PathFigures(**FAST, loss=0.01), "loss"),
        (PathFigures(**FAST, loss=1e-6), "bandwidth"),
        (PathFigures(**FAST, loss=0.01, window=3000), "window"),
        (PathFigures(**FAST, size=20e3), "latency"),
        (PathFigures(**FAST, size=100e6), "bandwidth"),
        (PathFigures(rate=1e6, round_trip=0.02, size=100e3), "bandwidth"),
        (PathFigures(rate=1e6, round_trip=0.02, loss=0.005), "bandwidth"),
    ],
)
def test_the_smallest_rate_decides(figures: PathFigures, cause: str) -> None:
    assert decisive(figures).cause == cause


def test_a_rate_near_the_bandwidth_does_not_decide() -> None:
    bandwidth = ceilings(PathFigures(**FAST))[0].rate
    near, below = (share * bandwidth * FAST["round_trip"] / 8 for share in (0.81, 0.79))
    assert decisive(PathFigures(**FAST, window=near)).cause == "bandwidth"
    assert decisive(PathFigures(**FAST, window=below)).cause == "window"


@pytest.mark.parametrize(
    ("round_trip", "queueing", "is_long"),
    [(0.02, None, False), (0.02, 0.029, False), (0.02, 0.031, True), (0.2, 0.09, False), (0.2, 0.11, True)],
)
def test_a_queue_is_long_by_time_and_by_share_of_the_rtt(
    round_trip: float, queueing: float | None, is_long: bool
) -> None:
    figures = PathFigures(rate=1e7, round_trip=round_trip, queueing=queueing)
    assert figures.has_long_queue is is_long
    assert ("not measured" in queue(figures)) is (queueing is None)


def test_the_conclusion_names_cubic_and_a_faster_controller() -> None:
    figures = PathFigures(rate=20e6, round_trip=0.04, loss=0.02)
    text = conclusion(figures, {"cubic": 2.3e6, "bbr": 18e6, "reno": 2.4e6}, None)
    assert text == "Limit of the path: loss; CUBIC 2.30 Mbit/s, BBRv3 18.0 Mbit/s (of 20.0 Mbit/s)."
    decides = [line for line in reasons(figures) if line.endswith("(decides)")]
    assert len(decides) == 1
    assert decides[0].startswith("Loss: 2.00 % at an RTT of 40.0 ms")


def test_the_conclusion_names_a_long_queue_and_its_remedy() -> None:
    figures = PathFigures(rate=20e6, round_trip=0.04, queueing=0.18)
    text = conclusion(figures, {"cubic": 19.2e6, "bbr": 19.3e6}, 0.0051)
    assert text == (
        "Limit of the path: bandwidth; CUBIC 19.2 Mbit/s (of 20.0 Mbit/s). The queue adds 180 ms under load; "
        "with FQ-CoDel at the bottleneck, 99 % of packets would wait for at most 5.10 ms."
    )


def test_the_conclusion_names_the_window_that_fills_the_path() -> None:
    text = conclusion(PathFigures(rate=100e6, round_trip=0.2, window=64e3), {"cubic": 2.5e6}, None)
    assert text.startswith("Limit on the path: window; CUBIC 2.50 Mbit/s")
    assert "a window of 2.50 MB would fill the path" in text


def test_a_queue_that_load_did_not_fill_is_a_lower_limit() -> None:
    figures = PathFigures(rate=20e6, round_trip=0.04, queueing=0.599, queue_limit="lower limit")
    assert "The queue adds at least 599 ms under load" in conclusion(figures, {"cubic": 19.3e6}, None)
    assert "at least 639 ms under load" in queue(figures)


def test_a_queue_whose_limit_is_unknown_is_named() -> None:
    figures = PathFigures(rate=20e6, round_trip=0.04, queueing=0.001, queue_limit="assumed")
    assert "its limit is unknown, because load did not fill it" in queue(figures)


def test_the_conclusion_without_simulations_has_the_allowed_rate() -> None:
    text = conclusion(PathFigures(rate=20e6, round_trip=0.04), {}, None)
    assert text == "Limit of the path: bandwidth; it allows 19.3 Mbit/s (of 20.0 Mbit/s)."


def test_a_value_between_kernels_outside_of_the_interval_is_marked() -> None:
    cells = [(Interval(8e6, 6e6, 10e6), [5e6], False), (Interval(0.04, 0.04, 0.05), [0.045], True)]
    shown = table([("cubic", cells)])
    assert shown.rows == [["CUBIC", "8.00 [6.00, 10.0]", "5.00 outside", "40.0 [40.0, 50.0]", "45.0"]]
    assert len(shown.head) == 5
    assert len(table([("cubic", [(cell[0], [], None) for cell in cells])]).head) == 3
