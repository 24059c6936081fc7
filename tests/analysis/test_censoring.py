"""Times without an end make percentiles and means unknown; claims on them are undecided."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import longfat as lf
from longfat.analysis.round_trips import Times, quantile
from longfat.analysis.transaction_summary import summarise

QUEUE = """
title = "Pings behind a full queue"
worlds = ["sim"]
repeats = {repeats}
seed = 1

[path]
rate = "10Mbit/s"
delay = "10ms"
queue = "1000pkt"
loss = "0%"
reverse = {{ rate = "1Mbit/s" }}

[workload]
kind = "request-response"
requests = 60
size = "100B"
think = "200ms"

[[protocols]]
name = "ping"
kind = "icmp"
{timeout}

[[traffic]]
name = "upload"
protocol = {{ kind = "udp" }}
workload = {{ kind = "bulk", rate = "1050kbit/s", duration = "20s", from = "receiver", to = "sender" }}

[[claims]]
id = "limit"
text = "99 % of pings take at most 2.5 s"
metric = "fct_p99"
of = "ping"
relation = "at-most"
value = "2.5s"

[[claims]]
id = "least"
text = "The fastest ping takes at most 2.5 s"
metric = "fct_min"
of = "ping"
relation = "at-most"
value = "2.5s"
"""


def run(folder: Path, timeout: str = "", repeats: int = 3) -> lf.Run:
    study = folder / "study.toml"
    study.write_text(QUEUE.format(timeout=timeout, repeats=repeats))
    return lf.run(str(study), out=str(folder / "run"))


@pytest.fixture(scope="module")
def queued(tmp_path_factory: pytest.TempPathFactory) -> lf.Run:
    return run(tmp_path_factory.mktemp("queued"), 'response_timeout = "1s"')


def test_claim_on_a_percentile_among_unanswered_requests_is_undecided(queued: lf.Run) -> None:
    [cell] = queued.cells
    why = cell.censored["fct_p99_s"]
    lost = sum(cell.samples["requests_unanswered"])
    assert (why.trials, why.of) == (3, 3)
    assert why.beyond == {"requests_unanswered": lost}
    assert why.measured == 180 - lost
    assert "fct_p99_s" not in cell.metrics
    assert "fct_mean_s" not in cell.metrics
    assert "fct_min_s" in cell.metrics
    limit, least = queued.claims
    assert limit.verdict == "undecided"
    assert f"unknown in 3 of 3 trials: {lost:.0f} of 180 requests unanswered" in limit.detail
    assert least.verdict == "holds"


def test_tables_count_unanswered_requests(queued: lf.Run) -> None:
    table = "\n".join(queued.table().lines())
    assert "equests unanswered" in table
    assert any("requests unanswered" in line for line in queued.remarks())
    page = (Path(str(queued.folder)) / "report.html").read_text()
    assert "of 180 requests unanswered" in page
    assert queued.to_json()["cells"][0]["censored"]["fct_p99_s"]["trials"] == 3


def test_long_timeout_decides_the_claim(tmp_path: Path) -> None:
    result = run(tmp_path, 'response_timeout = "60s"')
    assert result.cells[0].censored == {}
    assert result.claims[0].verdict == "holds"


def test_quantiles_among_values_beyond_are_unknown() -> None:
    found = quantile([0.1, 0.2, 0.3], 0.5, beyond=2)
    assert found.value == 0.3
    assert math.isnan(found.high)
    times = Times.of([0.1] * 90, beyond=10)
    assert times.median.value == 0.1
    assert math.isnan(times.p99.value)


def test_failed_transactions_are_slower_than_completed_ones() -> None:
    done = {
        "protocol": "tcp", "size": 8, "error": None, "application_s": 0.1, "wire_s": 0.09, "packets": 9,
        "wire_bytes": 500, "syn_data": False, "retransmissions": 0,
    }  # fmt: skip
    failed = {**done, "error": "timed out", "application_s": None, "wire_s": None}
    [group] = summarise([done] * 2 + [failed] * 3, ["tcp"]).groups
    assert math.isnan(group.application.value)
    assert math.isnan(group.wire.value)
    [group] = summarise([done] * 3 + [failed] * 2, ["tcp"]).groups
    assert group.application.value == 0.1
