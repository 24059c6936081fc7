"""Classes of a study that print: the output of commands for other programs stays one document."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from tests.conftest import Cli, Data

PRINTING = '''
"""Every entry of the class prints."""
import longfat

print("import")


class Controller(longfat.CongestionController):
    def __init__(self):
        print("init")

    def on_acknowledged(self, ack):
        print("acknowledged")

    def on_lost(self, loss):
        print("lost")

    def on_timeout(self, now, in_flight):
        print("timeout")


class Queue(longfat.QueueDiscipline):
    def __init__(self):
        self.waiting = []

    def enqueue(self, arrival):
        print("enqueue")
        self.waiting.append(arrival.packet)

    def dequeue(self, now):
        return self.waiting.pop(0) if self.waiting else None
'''


@pytest.fixture
def study(tmp_path: Path, data: Data) -> Data:
    (tmp_path / "printing.py").write_text(PRINTING, encoding="utf-8")
    data["protocols"] = [{"name": "own", "kind": "tcp", "congestion": "printing.py:Controller"}]
    del data["claims"], data["sweep"]
    return data


@pytest.mark.parametrize("process", [False, True])
def test_the_document_of_run_stays_whole(
    study: Data, write: Cli, cli: Cli, cli_process: Cli, *, process: bool
) -> None:
    done = (cli_process if process else cli)("run", write(study), "--json")
    assert json.loads(done.stdout)["cells"][0]["n"] == 4
    for line in ("import", "init", "acknowledged"):
        assert line in done.stderr.splitlines()


def test_a_queue_may_print(study: Data, write: Cli, cli: Cli) -> None:
    study["path"]["queue"] = "printing.py:Queue"
    done = cli("run", write(study), "--json")
    assert json.loads(done.stdout)["cells"][0]["n"] == 4
    assert "enqueue" in done.stderr.splitlines()


def test_the_table_of_trials_stays_whole(study: Data, write: Cli, cli: Cli) -> None:
    tables = cli("run", write(study), "--csv", "-").stdout
    rows = list(csv.DictReader(io.StringIO(tables)))
    assert [row["protocol"] for row in rows] == ["own"] * 4


def test_the_data_of_trace_stays_whole(study: Data, write: Cli, cli: Cli) -> None:
    done = cli("trace", write(study), "--chart", "window", "--json")
    assert json.loads(done.stdout)[0]["protocol"] == "own"
    done = cli("trace", write(study), "--chart", "window", "--format", "csv")
    assert {row["protocol"] for row in csv.DictReader(io.StringIO(done.stdout))} == {"own"}
    assert "acknowledged" in done.stderr.splitlines()


def test_between_kernels_the_record_stays_whole(study: Data, write: Cli, cli: Cli, emulated: None) -> None:
    study |= {"worlds": ["netns"], "repeats": 1}
    study["protocols"][0]["stack"] = "longfat"
    done = cli("run", write(study), "--json")
    (cell,) = json.loads(done.stdout)["cells"]
    assert cell["n"] == 1
    assert cell["metrics"]["goodput_bps"]["mean"] > 0
