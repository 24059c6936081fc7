"""The model of transfers over lossy paths, compared with simulated TCP."""

from __future__ import annotations

import statistics

import pytest

import longfat as lf
from longfat.analysis.theory.latency import Hop
from longfat.analysis.theory.lossy_transfer import before_loss, handshake_delay, lossy_transfer, way_loss
from longfat.analysis.theory.slow_start import Rules, transfer

RULES = Rules(ack_every=2)


def _hop(loss: float) -> Hop:
    return Hop(20e6, 0.02, loss=loss)


@pytest.mark.parametrize("loss", [0.001, 0.01, 0.02])
@pytest.mark.parametrize("controller", ["reno", "cubic"])
def test_simulated_transfer_times_are_near_the_model(loss: float, controller: str) -> None:
    path = lf.Path(rate="20Mbit/s", delay="20ms", queue="1000pkt", loss=f"{loss:%}", reverse={"loss": "0%"})
    seconds = statistics.fmean(
        lf.simulate(lf.Tcp(controller), path, "5MB", seed=seed).metrics["fct_mean_s"] for seed in range(1, 31)
    )
    hop = _hop(loss)
    modelled = 0.04 + lossy_transfer([hop], [Hop(20e6, 0.02)], 5_000_000, RULES, controller).seconds
    assert modelled == pytest.approx(seconds, rel=0.15)
    # A model without loss is far off, except where loss has little effect.
    if loss >= 0.01:
        assert transfer([hop], [hop], 5_000_000, RULES).seconds < 0.6 * seconds


def test_the_model_without_loss_equals_slow_start() -> None:
    hop = _hop(0.0)
    assert before_loss(100, 0.0) == 100
    assert handshake_delay(0.0, 0.0) == 0
    with pytest.raises(ValueError, match="no mean time"):
        handshake_delay(0.5, 0.0)
    tiny = lossy_transfer([Hop(20e6, 0.02, loss=1e-9)], [hop], 10**6, RULES, "reno").seconds
    assert tiny == pytest.approx(transfer([hop], [hop], 10**6, RULES).seconds, rel=1e-3)


def test_losses_of_a_direction_combine() -> None:
    assert way_loss([_hop(0.01), _hop(0.02)]) == pytest.approx(1 - 0.99 * 0.98)
    with pytest.raises(ValueError, match="loss"):
        Hop(loss=1.0)
    with pytest.raises(ValueError, match="other rules"):
        lossy_transfer([_hop(0.01)], [_hop(0.0)], 1000, RULES, "bbr")
