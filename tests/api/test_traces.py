"""`lf.trace`: windows, queues and every packet as frames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.conftest import Cli

import longfat as lf

PATH: dict[str, Any] = {"rate": "10Mbit/s", "delay": "10ms", "queue": "30pkt"}


@pytest.fixture(scope="module")
def traces() -> lf.Traces:
    return lf.trace(["reno", "cubic"], PATH, duration="1s", interval="10ms")


def test_frames_name_protocol_and_world(traces: lf.Traces) -> None:
    for frame in (traces.samples, traces.queues, traces.events):
        assert frame.columns[:2] == ["protocol", "world"]
        assert frame["protocol"].unique().sort().to_list() == ["cubic", "reno"]
    assert traces.samples.filter(protocol="reno").height == pytest.approx(100, abs=2)
    assert traces.queues["packets"].max() <= 31  # type: ignore[operator]


def test_events_add_up_to_the_metrics(traces: lf.Traces) -> None:
    sent = traces.events.filter(protocol="reno", what="send", frame="data")
    repeated = sent.filter("retransmission").height
    assert repeated == traces.metrics["reno"]["retransmissions"]
    drops = traces.events.filter(protocol="reno", what="drop")
    assert drops.height > 0
    assert drops["reason"].unique().to_list() == ["queue"]


def test_metrics_are_those_of_simulate(traces: lf.Traces) -> None:
    assert traces.metrics["cubic"] == lf.simulate("cubic", PATH, duration="1s").metrics


@pytest.mark.slow
def test_a_trace_displays_itself(traces: lf.Traces) -> None:
    assert len(repr(traces)) < 1000
    assert "<svg" in traces._repr_html_()
    assert "vconcat" in traces.chart("window", "rtt").to_dict()
    with pytest.raises(ValueError, match="winow"):
        traces.chart("winow")  # type: ignore[arg-type]
    assert "data" in traces.ladder(packets=5)


def test_files_hold_data_or_drawings(traces: lf.Traces, tmp_path: Path) -> None:
    traces.write(tmp_path / "events.parquet")
    assert pl.read_parquet(tmp_path / "events.parquet").equals(traces.events)
    traces.write(tmp_path / "window.csv", "window")
    assert pl.read_csv(tmp_path / "window.csv").height == traces.samples.height
    traces.write(tmp_path / "rtt.svg", "rtt")
    assert (tmp_path / "rtt.svg").read_text().startswith("<svg")
    traces.write(tmp_path / "window.txt", "window", "sequence")
    text = (tmp_path / "window.txt").read_text()
    assert "congestion window" in text
    assert "smoothed RTT" not in text
    assert "lost (queue), retransmitted" in text
    with pytest.raises(ValueError, match="winow"):
        traces.write(tmp_path / "x.csv", "winow")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="unknown suffix"):
        traces.write(tmp_path / "x.docx")


def test_a_study_s_cell_can_be_traced(data: dict[str, Any]) -> None:
    found = lf.trace("gbn", study=data, cell={"path.loss": "5%"}, settings={"path.rate": "5Mbit/s"}, seed=3)
    again = lf.simulate(
        lf.GoBackN(window=4), data["path"] | {"loss": "5%", "rate": "5Mbit/s"}, "30kB", seed=3
    )
    assert found.metrics == {"gbn": again.metrics}
    with pytest.raises(ValueError, match="is not swept; allowed: 0%, 5%, 10%"):
        lf.trace("gbn", study=data, cell={"path.loss": "7%"})
    with pytest.raises(ValueError, match="protocol is required"):
        lf.trace(study=data)
    with pytest.raises(ValueError, match="cell: requires study"):
        lf.trace("reno", PATH, "10kB", cell={})


def test_the_command_writes_the_same_frames(cli: Cli, tmp_path: Path) -> None:
    cli(
        "trace",
        "congestion/delay",
        "--protocol",
        "vegas",
        "--set",
        "workload.duration=2s",
        "--out",
        "x.parquet",
    )
    frame = pl.read_parquet(tmp_path / "x.parquet")
    assert {"time", "what", "sequence", "protocol"} <= set(frame.columns)
    text = cli(
        "trace",
        "congestion/delay",
        "--protocol",
        "vegas",
        "--chart",
        "queue",
        "--format",
        "csv",
        "--set",
        "workload.duration=2s",
    ).stdout
    assert text.startswith("protocol,world,link,time,packets,bytes")
    refused = cli("trace", "congestion/delay", "--protocol", "vegas", "--format", "parquet", ok=False)
    assert "needs --out" in refused.stderr
