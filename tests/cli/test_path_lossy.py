"""A lossy path between real kernels is measured; its model is simulated and predicted."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Cli, command, document

import longfat as lf
from longfat.study.path_model import read
from longfat.study.units import parse

pytestmark = pytest.mark.slow

TRUTH: dict[str, Any] = {"rate": "20Mbit/s", "delay": "20ms", "loss": "2%", "queue": "100pkt"}
OPTIONS = [word for key, value in TRUTH.items() for word in (f"--{key}", value)]
SIZE = "2MB"


def _mean(path: lf.Path, controller: str, *, trials: int = 10) -> float:
    """Returns the mean duration of simulated transfers in s."""
    runs = [lf.simulate(lf.Tcp(controller), path, SIZE, seed=seed) for seed in range(1, trials + 1)]
    return statistics.fmean(run.metrics["completion_s"] for run in runs)


@pytest.mark.usefixtures("emulated")
def test_the_model_of_a_path_reproduces_transfer_times(cli: Cli, cli_process: Cli, tmp_path: Path) -> None:
    model = tmp_path / "model.toml"
    measure = command("path", "$LONGFAT_PEER", "--rounds", 40, "--window", 8, "--model", model)
    line = " ".join(str(word) for word in measure)
    cli_process("shell", *OPTIONS, "--seed", 3, "--", "sh", "-c", line)
    (hop,) = read(model).path["hops"]
    # About 560 probes: a standard deviation of 0.4 percentage points each way.
    assert 0.008 < float(parse(hop["loss"]).value) < 0.035
    assert "queue" in hop

    measured, true = lf.Path(**read(model).path), lf.Path(**TRUTH)
    cubic, bbr = (_mean(measured, controller) for controller in ("cubic", "bbr"))
    assert cubic > 2.5 * bbr
    assert cubic == pytest.approx(_mean(true, "cubic"), rel=0.5)
    predicted = document(cli("predict", "--path", model, "--protocol", "tcp", "--size", SIZE, "--json"))
    assert predicted["dominant"] == "loss"
    assert predicted["total_s"] == pytest.approx(cubic, rel=0.5)
