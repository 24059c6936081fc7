"""Protocols without ECN where a queue marks, and controllers made for marks without any."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Cli

import longfat as lf
from longfat.presentation.run import notes

MARKS: dict[str, Any] = {"kind": "step", "limit": "100pkt", "threshold": "20pkt"}


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of equal names have folders of their own."""
    monkeypatch.chdir(tmp_path)


def _lines(queue: Any, *protocols: Any) -> list[str]:
    study = {
        "title": "t",
        "repeats": 1,
        "path": {"rate": "20Mbit/s", "delay": "5ms", "queue": queue},
        "protocols": protocols,
        "workload": {"kind": "bulk", "duration": "2s"},
    }
    return list(notes.ecn(lf.run(study).cells))


def _cubic(**keys: Any) -> dict[str, Any]:
    return {"name": "ours", "kind": "tcp", "congestion": "cubic", **keys}


def test_a_protocol_without_ecn_in_a_queue_that_marks_is_named() -> None:
    (line,) = _lines(MARKS, "dctcp", "prague", _cubic())
    assert line.startswith(
        "ours uses no ECN: queues dropped packets and marked those of dctcp, prague (key: ecn"
    )
    first, second = _lines(MARKS, "dctcp", _cubic(), "reno")[0].split(" use no ECN: ")
    assert (first, second.partition(" (")[0]) == (
        "ours, reno",
        "queues dropped packets and marked those of dctcp",
    )


@pytest.mark.parametrize("chosen", [True, False])
def test_a_chosen_ecn_is_not_questioned(chosen: bool) -> None:
    assert _lines(MARKS, "dctcp", _cubic(ecn=chosen)) == []


def test_without_marks_of_others_nothing_is_compared() -> None:
    assert _lines(MARKS, _cubic(), "reno") == []


def test_a_controller_made_for_marks_in_a_queue_that_drops_is_named() -> None:
    (line,) = _lines("50pkt", "dctcp", "reno", "prague")
    assert line.startswith("dctcp, prague: packets were dropped and none marked")
    assert _lines(MARKS, "dctcp") == []


def test_a_run_prints_the_line(cli: Cli, tmp_path: Path) -> None:
    study = tmp_path / "ecn.toml"
    study.write_text(
        'title = "t"\nrepeats = 1\nprotocols = ["dctcp", "cubic"]\n'
        '[workload]\nkind = "bulk"\nduration = "2s"\n[path]\nrate = "20Mbit/s"\ndelay = "5ms"\n'
        'queue = { kind = "step", limit = "100pkt", threshold = "20pkt" }\n'
    )
    assert "cubic uses no ECN" in cli("run", str(study), "--out", str(tmp_path / "run")).stdout
