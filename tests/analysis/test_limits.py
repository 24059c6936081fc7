"""What limits TCP other than the network: metrics, and the line of a run."""

from __future__ import annotations

from typing import Any

import pytest
from rich.console import Console

import longfat as lf
from longfat.presentation.run import details, notes
from longfat.presentation.run.report import page
from longfat.results.run import RunResult

LONG: dict[str, Any] = {"rate": "1Gbit/s", "delay": "50ms", "queue": "10000pkt"}
"""A path whose bandwidth-delay product of 12.5 MB exceeds the default buffers of every profile."""
BULK = {"kind": "bulk", "duration": "10s", "warm_up": "2s"}


def _metrics(path: dict[str, Any] = LONG, **keys: Any) -> dict[str, float]:
    return lf.simulate(lf.Protocol("tcp", congestion="reno", **keys), path, workload=BULK).metrics


def test_the_send_buffer_limits_for_nearly_all_of_the_time() -> None:
    found = _metrics(send_buffer="1MB", receive_buffer="100MB")
    assert found["sndbuf_limited_s"] > 0.8 * 8
    assert found["rwnd_limited_s"] < 0.1
    # At most the buffer per round trip: it holds overhead too, and the writer waits until a third is free.
    assert 0.3 * 8e6 / 0.1 < found["goodput_bps"] <= 8e6 / 0.1


def test_the_receive_window_limits_for_nearly_all_of_the_time() -> None:
    found = _metrics(receive_buffer="1MB", send_buffer="100MB")
    assert found["rwnd_limited_s"] > 0.8 * 8
    assert found["sndbuf_limited_s"] < 0.1


@pytest.mark.parametrize("profile", ["linux", "rfc", "ns3"])
def test_a_full_bottleneck_limits_through_the_congestion_window(profile: str) -> None:
    path = {"rate": "10Mbit/s", "delay": "10ms", "queue": "30pkt"}
    found = _metrics(path, profile=profile, send_buffer="10MB", receive_buffer="10MB")
    assert found["goodput_bps"] > 8e6
    assert found["rwnd_limited_s"] < 0.1
    assert found["sndbuf_limited_s"] < 0.1


def test_a_trace_counts_the_same_time() -> None:
    protocol = lf.Protocol("tcp", congestion="reno", send_buffer="1MB", receive_buffer="100MB")
    traces = lf.trace(protocol, LONG, workload={"kind": "bulk", "duration": "4s"}, interval="10ms")
    (metrics,) = traces.metrics.values()
    seen = traces.samples["sndbuf_limited_s"]
    assert seen.is_sorted()
    assert seen[-1] == pytest.approx(metrics["sndbuf_limited_s"], abs=0.11)


def test_other_protocols_have_no_such_limits() -> None:
    assert "rwnd_limited_s" not in lf.simulate(lf.GoBackN(window=4), LONG, "100kB").metrics


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    study = {
        "title": "Buffers",
        "repeats": 1,
        "path": LONG,
        "workload": {"kind": "bulk", "duration": "6s", "warm_up": "2s"},
        "protocols": [
            {"name": "small", "kind": "tcp", "congestion": "reno", "send_buffer": "1MB"},
            {"name": "narrow", "kind": "tcp", "congestion": "reno", "window_scaling": False},
            {"name": "large", "kind": "tcp", "send_buffer": "100MB", "receive_buffer": "100MB"},
        ],
    }
    return lf.run(study, out=tmp_path_factory.mktemp("run") / "buffers")


def test_one_line_names_limits_cells_and_keys(run: RunResult) -> None:
    (line,) = notes.limits(run.cells)
    assert line.startswith("limited by a buffer, not by the network: ")
    assert "the send buffer in 1 of 3 cells (up to " in line
    assert "% of the time: small; key: send_buffer of the protocol)" in line
    assert "the receive window in 1 of 3 cells (up to " in line
    assert "% of the time: narrow; key: window_scaling of the protocol)" in line
    assert list(notes.limits([cell for cell in run.cells if cell.cell.protocol == "large"])) == []


def test_terminal_and_report_have_the_line(run: RunResult) -> None:
    console = Console(width=400, record=True, color_system=None)
    console.print(details.table(run.study, run))
    (line,) = notes.limits(run.cells)
    assert console.export_text().count(line) == 1
    assert page.build(run).count(line) == 1
    assert line in str(run)


def test_marks_count_all_links() -> None:
    red = {"kind": "red", "ecn": True, "min_threshold": "5pkt", "max_threshold": "15pkt"}
    topology = {
        "kind": "leaf-spine",
        "spines": 1,
        "access": {"rate": "50Mbit/s", "delay": "1ms", "queue": red},
        "uplink": {"rate": "1Gbit/s", "delay": "1ms"},
    }
    traces = lf.trace(lf.Protocol("tcp", congestion="reno", ecn=True), topology=topology, size="2MB")
    marks = traces.events.filter(what="mark").height
    assert marks > 0
    (metrics,) = traces.metrics.values()
    assert metrics["marks"] == marks
