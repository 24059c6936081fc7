"""Slices and bands of captures: exact sums, a bounded number, pauses apart."""

from __future__ import annotations

from itertools import pairwise

import pytest
from tests.presentation.captured import interval, point, shown

from longfat.analysis.captures import bounded


def test_middles_without_gaps_give_the_ends_of_slices() -> None:
    one = shown([point(0.1), point(0.2), point(0.4)], [])
    found = bounded.slices(one, 100)
    assert [part.start for part in found] == pytest.approx([0.05, 0.15, 0.25])
    assert [part.end for part in found] == pytest.approx([0.15, 0.25, 0.55])


def test_neighbours_shorter_than_a_round_trip_have_one_mean_rate() -> None:
    one = shown(
        [
            point(0.055, rate_bps=50e6, flight=30_000, rtt_s=None, repeated=1),  # 10 ms
            point(0.080, rate_bps=1e6, rtt_s=0.07, repeated=2),  # 40 ms
            point(0.125, rate_bps=3e6),
        ],
        [],
    )
    first, second = bounded.slices(one, 100)
    assert (first.start, first.end) == pytest.approx((0.05, 0.1))
    assert first.rate == pytest.approx((50e6 * 0.01 + 1e6 * 0.04) / 0.05)
    assert (first.flight, first.rtt, first.retransmissions) == (30_000, 0.07, 3)
    assert second.rate == 3e6


def test_the_last_short_slice_belongs_to_the_one_before() -> None:
    one = shown([point(0.075, rate_bps=1e6), point(0.1005, rate_bps=48e6)], [])
    (only,) = bounded.slices(one, 100)
    assert only.rate == pytest.approx((1e6 * 0.05 + 48e6 * 0.001) / 0.051)


def test_a_pause_stays_apart_from_short_bursts_around_it() -> None:
    pause = point(0.56, flight=0, window=0, rtt_s=None, rate_bps=0.0)
    one = shown([point(0.055), pause, point(1.065, rate_bps=90e6)], [interval(0.06, 1.06, "application")])
    found = bounded.slices(one, 100)
    assert [part.end - part.start for part in found] == pytest.approx([0.01, 1.0, 0.01])
    assert [part.rate for part in found] == [8e6, 0, 90e6]


def test_a_pause_has_no_window_and_a_stall_one_of_zero() -> None:
    silent = point(0.6, flight=0, window=0, rtt_s=None, rate_bps=0.0)
    for cause, window in (("application", None), ("receiver-stall", 0)):
        one = shown([point(0.075), silent], [interval(0.1, 1.1, cause)])
        assert [part.window for part in bounded.slices(one, 100)] == [64_000, window]


def test_many_slices_are_joined_without_loss_of_bytes() -> None:
    series = [point(0.075 + 0.05 * step, rate_bps=1e6 + step, repeated=step % 3) for step in range(4096)]
    series[3000]["flight"] = 99_000
    found = bounded.slices(shown(series, []), 600)
    assert 300 < len(found) <= 600
    bits = sum(part.rate * (part.end - part.start) for part in found)
    assert bits == pytest.approx(sum(row["rate_bps"] * 0.05 for row in series))
    assert sum(part.retransmissions for part in found) == sum(row["repeated"] for row in series)
    assert max(part.flight for part in found) == 99_000
    assert all(before.end == after.start for before, after in pairwise(found))


def test_few_intervals_stay_as_they_are() -> None:
    intervals = [interval(0.0, 0.05, "handshake"), interval(0.05, 0.5, "bandwidth", 4, 70)]
    found = bounded.bands(shown([], intervals), 2)
    assert found == [
        bounded.Band(0.0, 0.05, "handshake", (0, 0)),
        bounded.Band(0.05, 0.5, "bandwidth", (4, 70)),
    ]


def test_many_intervals_have_the_cause_of_most_of_their_time() -> None:
    intervals = []
    for step in range(1000):
        intervals += [
            interval(step, step + 0.7, "bandwidth", 10 * step + 1, 10 * step + 5),
            interval(step + 0.7, step + 1, "random-loss", 0, 0),
        ]
    intervals.append(interval(1000, 1500, "application", 10_001, 10_002))
    found = bounded.bands(shown([], intervals), 100)
    assert [band.cause for band in found] == ["bandwidth", "application"]
    assert len(found) <= 100
    assert found[0].frames == (1, 9995 if found[0].end == 1000 else found[0].frames[1])
    assert found[-1].end == 1500
