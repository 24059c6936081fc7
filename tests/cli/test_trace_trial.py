"""`longfat trace` compares its trial with the mean of the study's run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tomli_w
from tests.conftest import Cli

import longfat as lf

STUDY: dict[str, Any] = {
    "title": "Reno with random losses",
    "repeats": 5,
    "path": {"rate": "20Mbit/s", "delay": "10ms", "queue": "40pkt", "loss": "2%"},
    "workload": {"kind": "bulk", "duration": "2s"},
    "protocols": ["reno", "cubic"],
}


@pytest.fixture
def reno(tmp_path: Path) -> Path:
    path = tmp_path / "reno.toml"
    path.write_text(tomli_w.dumps(STUDY))
    return path


def test_a_traced_trial_is_compared_with_the_run(cli: Cli, reno: Path, tmp_path: Path) -> None:
    before = cli("trace", reno, "--protocol", "reno")
    assert before.stderr.strip() == "trial 0 of 5; --trial N traces another one"
    cli("run", reno)
    result = lf.load_run(tmp_path / "runs" / "reno")
    (cell,) = (one for one in result.cells if one.cell.protocol == "reno")
    values, mean = cell.samples["goodput_bps"], cell.metrics["goodput_bps"].mean
    nearest = min(range(5), key=lambda trial: abs(values[trial] - mean))
    other = (nearest + 1) % 5
    done = cli("trace", reno, "--protocol", "reno", "--trial", other)
    assert done.stderr.strip() == (
        f"reno, goodput: {values[other] / 1e6:.2f} Mbit/s in trial {other}, "
        f"mean of the run {mean / 1e6:.2f} Mbit/s (n = 5; nearest: --trial {nearest})"
    )
    done = cli("trace", reno, "--protocol", "reno", "--trial", nearest)
    assert "this trial is the nearest" in done.stderr


def test_a_trial_of_another_study_is_not_compared(cli: Cli, reno: Path) -> None:
    cli("run", reno)
    reno.write_text(reno.read_text().replace("2%", "1%"))
    assert cli("trace", reno, "--protocol", "reno").stderr == ""


def test_equal_trials_are_not_compared(cli: Cli, reno: Path) -> None:
    reno.write_text(tomli_w.dumps(STUDY | {"path": {"rate": "20Mbit/s", "delay": "10ms", "queue": "40pkt"}}))
    cli("run", reno)
    assert cli("trace", reno, "--protocol", "reno").stderr == ""
