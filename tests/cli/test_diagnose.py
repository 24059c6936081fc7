"""`longfat diagnose` between real kernels, on paths with known properties."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Cli, command
from tests.waiting import undisturbed

from longfat.study.units import number

pytestmark = pytest.mark.usefixtures("emulated")


def _found(cli: Cli, *path: object) -> dict[str, Any]:
    words = ["--time", "20s", "--repeats", 2, "--json"]
    line = " ".join(command("diagnose", "$LONGFAT_PEER", *words))
    document = json.loads(cli("shell", *path, "--", "sh", "-c", line).stdout)
    assert isinstance(document, dict)
    return document


@pytest.mark.slow
def test_a_long_queue_is_measured_under_load(cli: Cli) -> None:
    """300 packets at 20 Mbit/s delay by 180 ms."""
    path = ("--rate", "20Mbit/s", "--delay", "20ms", "--queue", "300pkt")
    found = undisturbed(
        lambda: _found(cli, *path),
        lambda found: found["load"]["overflows"] and 0.15 < (found["queueing_s"] or 0) < 0.21,
    )
    assert found["cause"] == "bandwidth"
    assert found["rate_bps"] == pytest.approx(20e6, rel=0.1)
    assert found["queueing_s"] == pytest.approx(0.18, abs=0.03)
    (hop,) = found["path"]["hops"]
    queue = number(hop["queue"])
    assert queue is not None
    assert float(queue) == pytest.approx(450e3, rel=0.2)
    assert "FQ-CoDel at the bottleneck" in found["conclusion"]
    assert found["queueing_relieved_s"] < 0.02


@pytest.mark.slow
def test_random_loss_limits_cubic_and_not_bbr(cli: Cli) -> None:
    path = ("--rate", "20Mbit/s", "--delay", "20ms", "--queue", "100pkt", "--loss", "2%")
    found = undisturbed(lambda: _found(cli, *path), lambda found: found["cause"] == "loss")
    assert found["cause"] == "loss"
    assert 0.01 < found["loss_each_way"] < 0.03
    goodputs = {one["name"]: one["goodput_bps"]["value"] for one in found["controllers"]}
    assert goodputs["bbr1"] > 3 * goodputs["cubic"]
    assert all(one["rtt_p50_s"]["value"] >= 0.04 for one in found["controllers"])


@pytest.mark.slow
def test_verify_compares_with_linux_kernels(cli: Cli, tmp_path: Path) -> None:
    """CUBIC between kernels is as predicted on a path with loss; the machine may disturb other values."""
    model = tmp_path / "model.toml"
    model.write_text('[path]\nrate = "10Mbit/s"\ndelay = "10ms"\nloss = "1%"\nqueue = "100pkt"\n')

    def measured() -> dict[str, Any]:
        words = ("--from", model, "--size", "2MB", "--repeats", 10, "--verify", "--json")
        listed = json.loads(cli("diagnose", *words).stdout)["controllers"]
        return {one["name"]: one["between_kernels"] for one in listed}

    found = undisturbed(measured, lambda found: found["cubic"]["is_covered"]["goodput_bps"])
    assert found["cubic"]["is_covered"]["goodput_bps"]
    assert all(one["problem"] is None and len(one["goodput_bps"]) == 2 for one in found.values())


@pytest.mark.slow
def test_a_deep_queue_that_load_does_not_fill_is_a_lower_limit(cli: Cli) -> None:
    path = ("--rate", "5Mbit/s", "--delay", "10ms", "--queue", "1000pkt")
    found = undisturbed(
        lambda: _found(cli, *path),
        lambda found: found["queue_limit"] == "lower limit" and found["queueing_s"] > 0.5,
    )
    assert found["queue_limit"] == "lower limit"
    assert "The queue adds at least" in found["conclusion"]
    (hop,) = found["path"]["hops"]
    assert 5e6 / 8 * found["queueing_s"] <= (number(hop["queue"]) or 0) <= 1000 * 1500 * 1.1
    cubic = next(one for one in found["controllers"] if one["name"] == "cubic")
    assert cubic["rtt_p50_s"]["value"] > 0.3


@pytest.mark.slow
def test_signals_keep_what_was_measured(cli_process: Cli) -> None:
    line = "timeout --signal=TERM 14 " + " ".join(command("diagnose", "$LONGFAT_PEER", "--time", "5s"))
    out = undisturbed(
        lambda: (
            cli_process(
                "shell", "--rate", "5Mbit/s", "--delay", "5ms", "--", "sh", "-c", line, ok=False
            ).stdout
        ),
        lambda out: "SIGTERM" in out,
    )
    assert out.startswith("Limit of the path: bandwidth; ")
    assert "Ctrl-C or SIGTERM stopped " in out
