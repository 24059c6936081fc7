"""Congestion studies on the command line, and the output of runs with several hosts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tomli_w
from tests.conftest import Cli, Data, document


@pytest.fixture
def sharing(tmp_path: Path) -> Path:
    """A short study of two senders with unequal links."""
    study = {
        "title": "Two senders",
        "repeats": 3,
        "topology": {
            "kind": "dumbbell",
            "bottleneck": {"rate": "10Mbit/s", "delay": "5ms", "queue": "50pkt"},
            "access": [{"rate": "2Mbit/s"}, {"rate": "20Mbit/s"}],
        },
        "workload": {"kind": "bulk", "duration": "3s", "warm_up": "1s", "start_jitter": "100ms"},
        "protocols": [{"name": "reno", "kind": "tcp", "congestion": "reno"}],
        "claims": [
            {
                "id": "first",
                "text": "The first has its link",
                "metric": "goodput@s1",
                "of": "reno",
                "against": "theory",
                "relation": "within",
                "by": "10%",
            }
        ],
    }
    path = tmp_path / "sharing.toml"
    path.write_text(tomli_w.dumps(study))
    return path


def test_a_run_shows_hosts_and_judges_them(cli: Cli, sharing: Path) -> None:
    text = cli("run", sharing, "--details").stdout
    for words in ("Goodput in Mbit/s, by host", "s1", "s2", "jain", "holds", "1.93"):
        assert words in text
    assert "~" not in text, "a fair share is no approximation"
    content = document(cli("run", sharing, "--json"))
    (cell,) = content["cells"]
    assert 1.7e6 < cell["metrics"]["goodput_bps@s1"]["mean"] < 2e6
    assert content["claims"][0]["verdict"] == "holds"


def test_a_run_has_charts_and_a_report(cli: Cli, sharing: Path, tmp_path: Path) -> None:
    cli("run", sharing)
    report = (tmp_path / "runs" / "sharing" / "report.html").read_text()
    assert "max-min fair shares" in report
    assert "Mathis, Semke, Mahdavi and Ott" in report
    cli("chart", "runs/sharing", "--by-host", "--out", "hosts.svg")
    assert "<svg" in (tmp_path / "hosts.svg").read_text()
    failed = cli("chart", "runs/sharing", "--metric", "rtt_p50", "--by-host", ok=False)
    assert failed.returncode != 0
    assert "this run measured no rtt_p50_s by host" in failed.stderr


def test_the_same_seed_gives_the_same_records_on_any_number_of_cores(cli: Cli, sharing: Path) -> None:
    def measured(jobs: int) -> Data:
        content = document(cli("run", sharing, "--json", "--fresh", "--jobs", jobs))
        return {"cells": content["cells"], "claims": content["claims"]}

    assert json.dumps(measured(1)) == json.dumps(measured(2))


def test_a_built_in_study_runs_quickly_by_its_name(cli: Cli) -> None:
    content = document(
        cli(
            "run",
            "congestion/bandwidth",
            "--quick",
            "--set",
            'path.hops.2.rate=["20Mbit/s", "40Mbit/s", "100Mbit/s"]',
            "--set",
            "path.hops.1.jitter=0us",
            "--json",
        )
    )
    assert content["study"] == "congestion/bandwidth"
    assert {cell["n"] for cell in content["cells"]} == {5}
    verdicts = {claim["id"]: claim["verdict"] for claim in content["claims"]}
    assert verdicts["reno-rises-with-rate"] == "holds"
    assert verdicts["reno-in-proportion"] == "holds"
