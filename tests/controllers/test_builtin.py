"""The built-in controllers of TCP on one bottleneck, with each profile's delayed ACKs."""

from __future__ import annotations

from typing import Literal

import polars as pl
import pytest

import longfat

ETHERNET = 0.965
"""Part of a link's rate that is left for TCP's payload in frames of 1500 bytes."""
PIPE = 166
"""Packets of 1500 bytes that 100 Mbit/s hold in 20 ms."""


def _bulk(congestion: str, profile: Literal["linux", "rfc", "ns3"], queue: int) -> longfat.Trial:
    return longfat.simulate(
        longfat.Protocol("tcp", congestion=congestion, profile=profile),
        longfat.Path(rate="100Mbit/s", delay="10ms", queue=f"{queue}pkt"),
        workload={"kind": "bulk", "duration": "30s", "warm_up": "10s"},
    )


@pytest.mark.parametrize("profile", ["linux", "rfc"])
@pytest.mark.parametrize("congestion", ["reno", "cubic", "vegas", "westwood", "bbr", "bbr-tolerant", "bbr1"])
def test_a_queue_as_long_as_the_pipe_keeps_the_link_busy(congestion: str, profile: str) -> None:
    trial = _bulk(congestion, profile, PIPE)  # type: ignore[arg-type]
    # BBR paces slightly below the rate and probes the RTT of the empty path for 2 % of the time.
    assert trial.goodput_bps >= (0.96 if "bbr" in congestion else 0.99) * ETHERNET * 100e6


@pytest.mark.parametrize(("rules", "factor"), [("draft", 1.0), ("linux", 0.99)])
def test_bbr1_paces_at_the_bandwidth_or_slightly_below(rules: str, factor: float) -> None:
    """Linux leaves a margin of 1 % (`bbr_pacing_margin_percent`), and its windows are even."""
    traces = longfat.trace(
        {"kind": "tcp", "congestion": {"kind": "bbr1", "rules": rules}},
        {"rate": "10Mbit/s", "delay": "20ms", "queue": "100pkt"},
        workload={"kind": "bulk", "duration": "5s"},
        interval="10ms",
    )
    cruising = traces.samples.filter(pl.col("time") > 3)
    bandwidth = cruising["controller_bandwidth_bps"].median()
    assert bandwidth == pytest.approx(10e6 * 1448 / 1500, rel=1e-4)
    gains = {round(rate / bandwidth / factor, 2) for rate in cruising["pacing_bps"]}
    assert gains == {0.75, 1.0, 1.25}
    if rules == "linux":
        assert {window / 1448 % 2 for window in cruising["cwnd_bytes"]} == {0.0}


def test_random_loss_counts_as_congestion_to_bbr_alone() -> None:
    """The draft treats more than 2 % loss as congestion; bbr-tolerant attributes it to the path."""
    path = longfat.Path(rate="50Mbit/s", delay="20ms", queue="100pkt", loss="5%")
    workload = {"kind": "bulk", "duration": "20s", "warm_up": "2s"}
    draft, tolerant = (
        longfat.simulate(longfat.Protocol("tcp", congestion=name), path, workload=workload).goodput_bps
        for name in ("bbr", "bbr-tolerant")
    )
    assert draft <= 0.25 * 50e6
    assert tolerant >= 0.85 * 50e6


@pytest.mark.parametrize("profile", ["linux", "rfc"])
@pytest.mark.parametrize("queue", [40, 640])
def test_vegas_needs_no_more_than_a_few_packets(profile: str, queue: int) -> None:
    """Alpha to beta packets wait (Brakmo and Peterson, 1995), plus bursts of two due to delayed ACKs."""
    trial = _bulk("vegas", profile, queue)  # type: ignore[arg-type]
    assert trial.goodput_bps >= 0.99 * ETHERNET * 100e6
    if profile == "rfc" or queue == 40:
        assert 1 <= trial.queue_mean_packets <= 6
    assert trial.metrics["retransmissions"] == 0


def test_the_sawtooth_is_as_deep_as_the_controllers_cut() -> None:
    """In a short queue, Reno (factor 0.5) leaves more capacity idle than CUBIC (factor 0.7)."""
    parts = [
        _bulk(name, "linux", 40).goodput_bps / ETHERNET / 100e6 for name in ("reno", "cubic", "westwood")
    ]
    assert parts == sorted(parts)
    # Reno's window grows from half of pipe plus queue to all of it; below the pipe, utilisation is W / pipe.
    low = (PIPE + 40) / 2 / PIPE
    assert parts[0] == pytest.approx(1 - (1 - low) ** 2 / (2 * (1 + 40 / PIPE - low)), abs=0.03)
    assert parts[1] > 0.97
    assert parts[2] > 0.99
