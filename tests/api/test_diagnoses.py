"""`lf.diagnose` and `longfat diagnose` on saved models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Refused, refused  # noqa: F401 - a fixture
from tests.conftest import Cli

import longfat as lf
from longfat.api.diagnoses import CONTROLLERS
from longfat.api.path_figures import bottleneck, with_queue

COUPLED = {"lia", "olia", "balia", "wvegas"}


def test_a_lossy_path_is_limited_by_loss() -> None:
    found = lf.diagnose(model=lf.Path(rate="20Mbit/s", delay="20ms", loss="2%", queue="100pkt"), seeds=3)
    assert found.cause == "loss"
    assert found.goodputs["bbr1"] > 5 * found.goodputs["cubic"]
    assert found.conclusion.startswith("Loss-limited: CUBIC ")
    assert found.conclusion in repr(found)
    assert "<table>" in found._repr_html_()
    assert found.to_polars().height == 3 * len(CONTROLLERS)
    assert found.drawing() is not None


def test_a_small_window_limits_all_controllers() -> None:
    found = lf.diagnose(model={"rate": "100Mbit/s", "delay": "50ms"}, window="64kB", seeds=2)
    assert found.cause == "window"
    for goodput in found.goodputs.values():
        assert goodput == pytest.approx(64e3 * 8 / 0.1, rel=0.15)


def test_a_small_file_is_limited_by_latency() -> None:
    assert lf.diagnose(model={"rate": "100Mbit/s", "delay": "50ms"}, size="50kB", seeds=2).cause == "latency"


def test_all_controllers_of_single_paths_are_simulated(cli: Cli) -> None:
    lines = cli("list", "controllers").stdout.splitlines()
    kinds = {line.split('"')[1] for line in lines if line.startswith('  "')}
    assert set(CONTROLLERS) == kinds - COUPLED - {"fixed"}


def test_the_study_and_the_document_continue_a_diagnosis(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "model.toml").write_text('[path]\nrate = "20Mbit/s"\ndelay = "20ms"\nloss = "2%"\n')
    words = ("--repeats", 2, "--study", "study.toml", "--json")
    document = json.loads(cli("diagnose", "--from", "model.toml", *words).stdout)
    assert document["cause"] == "loss"
    assert document["allowed_bps"]["loss"] < document["allowed_bps"]["bandwidth"]
    assert "Loss-limited" in (tmp_path / "study.toml").read_text()
    cli("run", "study.toml", "--repeats", 2)
    (tmp_path / "saved.json").write_text(
        json.dumps(
            document | {"queueing_s": 0.18, "path": {"rate": "20Mbit/s", "delay": "20ms", "queue": "300pkt"}}
        )
    )
    out = cli("diagnose", "--from", "saved.json", "--repeats", 2).stdout
    assert out.startswith("Bandwidth-limited: CUBIC 19.")
    assert "The queue adds 180 ms under load; FQ-CoDel at the bottleneck would reduce this to " in out


def test_a_queue_replaces_that_of_the_slowest_link() -> None:
    path: dict[str, Any] = {
        "hops": [
            {"rate": "100Mbit/s", "delay": "1ms"},
            {"rate": "20Mbit/s", "delay": "1ms", "reverse": {"rate": "2Mbit/s"}},
        ]
    }
    assert bottleneck(path, "path") == (1, True, 2e6)
    changed = with_queue(path, "path", 30_000.0)
    assert changed["hops"][1]["reverse"] == {"rate": "2Mbit/s", "queue": "30000B"}
    assert "queue" not in path["hops"][1]["reverse"]


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        ([], "set either HOST or --from"),
        (["a.example", "--from", "m.toml"], "set either HOST or --from"),
        (["--from", "missing.toml"], "missing.toml: cannot be read"),
        (["--from", "missing.json"], "missing.json: cannot be read"),
        (["127.0.0.1", "--limit-bytes", "5s"], "--limit-bytes: "),
        (["127.0.0.1", "--duration", "1h"], "--duration: "),
        (["127.0.0.1", "--window", "2GB"], "--window: "),
        (["127.0.0.1", "--study", "x.txt"], "--study x.txt: unknown suffix"),
    ],
)
def test_each_mistake_is_one_line(words: list[str], reported: str, refused: Refused) -> None:  # noqa: F811
    refused(["diagnose", *words], 2, [reported])
