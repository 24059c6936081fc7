"""Prague after a loss: its window falls by a packet per ACK, so the ACKs decide how far a queue drains."""

from __future__ import annotations

from typing import Any

import pytest

import longfat as lf

PATH = lf.Path(rate="100Mbit/s", delay="5ms", queue="500000B")


def _after_losses(*, sack_compression: bool) -> tuple[float, float]:
    """Returns the lowest RTT in ms and the least packets in flight after slow start."""
    protocol = lf.Tcp("prague", sack_compression=sack_compression)
    samples: Any = lf.trace(protocol, PATH, duration="12s", interval="2ms").samples
    later = samples.filter(samples["time"] > 5)
    return float(later["rtt_s"].min()) * 1e3, float(later["in_flight_bytes"].min()) / 1448


def test_compressed_acks_keep_more_in_flight() -> None:
    """docs/l4s.md: a rival's minimum RTT follows the shortest queue, which an ACK per packet empties more."""
    rtt, in_flight = _after_losses(sack_compression=False)
    compressed_rtt, compressed_in_flight = _after_losses(sack_compression=True)
    # Half of the window at the loss is 208 packets.
    assert rtt == pytest.approx(12.8, abs=1)
    assert in_flight == pytest.approx(105, abs=10)
    assert compressed_rtt == pytest.approx(20.1, abs=1)
    assert compressed_in_flight == pytest.approx(165, abs=10)
