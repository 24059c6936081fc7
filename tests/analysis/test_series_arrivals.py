"""The rate of arriving data, which never exceeds that of the link."""

from __future__ import annotations

import math
from itertools import pairwise

import polars as pl
import pytest

import longfat as lf
from longfat.analysis.series_arrivals import rates

PAYLOAD = 20e6 * 1448 / 1500
"""Payload in bit/s of full segments at 20 Mbit/s."""


@pytest.mark.parametrize("interval", ["1ms", "10ms"])
def test_arrivals_stay_below_the_link_rate_and_goodput_does_not(interval: str) -> None:
    traced = lf.trace(
        "reno", {"rate": "20Mbit/s", "delay": "10ms", "queue": "60pkt"}, duration="1s", interval=interval
    )
    samples, events = traced.samples, traced.events
    assert max(samples["goodput_bps"]) > 2 * PAYLOAD
    assert max(samples["received_bps"]) == pytest.approx(PAYLOAD, rel=1e-6)
    arrivals = events.filter(what="receive", host="receiver").filter(pl.col("time") <= samples["time"][-1])
    arrived = sum(arrivals["length"].to_list()) * 8
    received = math.fsum(samples["received_bps"]) * float(interval.removesuffix("ms")) / 1e3
    # The last packet can be under way.
    assert 0 <= received - arrived < 1448 * 8


def test_all_bytes_are_counted_once_at_any_sampling_times() -> None:
    arrivals = [(0.013, 60), (0.5, 1000), (0.5, 1000), (0.501, 500), (2.0, 1448)]
    times = [0.1, 0.5, 0.7, 1.9, 2.0, 3.0]
    found = rates(arrivals, times, 0.1)
    spans = [0.1, *(after - before for before, after in pairwise(times))]
    assert math.fsum(rate * span for rate, span in zip(found, spans, strict=True)) == pytest.approx(
        8 * (1000 + 1000 + 500 + 1448 + 60)
    )
    assert min(found) >= 0
    assert found[-1] == 0


def test_datagrams_and_numbered_packets_arrive_too() -> None:
    window = {"kind": "go-back-n", "window": 8}
    traced = lf.trace(window, {"rate": "20Mbit/s", "delay": "10ms", "loss": "5%"}, "100kB")
    assert max(traced.samples["received_bps"]) == pytest.approx(20e6 * 1024 / 1084, rel=1e-6)
