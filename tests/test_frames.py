"""Data frames for charts, CSV and other programs: simple names, SI units, flat columns."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import altair as alt
import polars as pl
import pytest
import vl_convert

import longfat as lf
from longfat.presentation.run.displayed import Run
from longfat.results.run import RunResult
from tests.offline import fetched

Data = dict[str, Any]


# One worker builds the fixture, for all tests of this file.
pytestmark = pytest.mark.xdist_group("frames")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of two hosts and other traffic; it sweeps a quantity, mixed units and a key of one protocol."""
    return lf.run(
        {
            "title": "Frames",
            "repeats": 2,
            "topology": lf.Topology("dumbbell", pairs=2, bottleneck={"rate": "10Mbit/s", "delay": "5ms"}),
            "workload": {"kind": "bulk", "duration": "1s"},
            "protocols": ["cubic", lf.Tcp({"kind": "fixed", "window": 10}, name="ten")],
            "traffic": [
                {"name": "rival", "protocol": "udp", "workload": {"kind": "bulk", "rate": "1Mbit/s"}}
            ],
            "sweep": {
                "topology.bottleneck.loss": ["0%", "1%"],
                "topology.bottleneck.queue": ["50pkt", "100kB"],
                "protocols.ten.congestion.window": [10, 20],
            },
        },
        out=tmp_path_factory.mktemp("frames") / "run",
    )


@pytest.mark.slow
def test_names_are_plain_and_quantities_are_numbers(run: RunResult) -> None:
    trials = run.to_polars()
    assert all(re.fullmatch(r"\w+", name, re.ASCII) for name in trials.columns), trials.columns
    assert trials.columns[:5] == [
        "world",
        "protocol",
        "topology_bottleneck_loss",
        "topology_bottleneck_queue",
        "protocols_ten_congestion_window",
    ]
    assert trials.columns[5:9] == ["trial", "seed", "measured", "error"]
    assert trials["topology_bottleneck_loss"].unique().sort().to_list() == [0.0, 0.01]
    assert set(trials["topology_bottleneck_loss_label"]) == {"0%", "1%"}
    # Packets and bytes have no common unit, so the values are labels.
    assert set(trials["topology_bottleneck_queue"]) == {"50pkt", "100kB"}
    assert "topology_bottleneck_queue_label" not in trials.columns
    windows = trials.group_by("protocol").agg(pl.col("protocols_ten_congestion_window").unique().sort())
    assert dict(windows.iter_rows()) == {"cubic": [None], "ten": [10, 20]}
    assert trials["goodput_bps_s1"].dtype == pl.Float64
    assert trials["measured"].all()


def test_flows_are_flat_and_mark_measured_ones(run: RunResult) -> None:
    flows = run.flows_to_polars()
    assert all(re.fullmatch(r"\w+", name, re.ASCII) for name in flows.columns), flows.columns
    assert dict(flows.group_by("measured").len().iter_rows()) == {True: 48, False: 48}
    assert flows.filter("measured")["traffic"].null_count() == 48
    assert flows["path_bytes_1"].dtype == pl.Int64
    assert flows["topology_bottleneck_loss"].dtype == pl.Float64


def test_one_trials_flows_have_the_same_columns(run: RunResult) -> None:
    trial = lf.simulate("cubic", lf.Path(rate="10Mbit/s", delay="1ms"), "10kB")
    assert set(trial.flows_to_polars().columns) <= {*run.flows_to_polars().columns, "protocol"}
    assert trial.flows[0]["path_bytes"] == [trial.flows_to_polars()["path_bytes_1"][0]]


def test_paths_become_numbered_columns() -> None:
    links = [
        {"from": "a", "to": "b", "name": f"way{rate}", "rate": f"{rate}Mbit/s", "delay": "5ms"}
        for rate in (5, 9)
    ]
    ways = lf.Topology("free", hosts=["a", "b"], links=links)  # type: ignore[arg-type]
    workload = {"kind": "bulk", "duration": "1s", "from": "a", "to": "b"}
    trial = lf.simulate("mptcp", ways, workload=workload)
    flows = trial.flows_to_polars()
    assert [flows["path_bytes_1"][0], flows["path_bytes_2"][0]] == trial.flows[0]["path_bytes"]


def test_csv_holds_every_column(run: RunResult, tmp_path: Path) -> None:
    for number, frame in enumerate((run.to_polars(), run.flows_to_polars())):
        file = tmp_path / f"{number}.csv"
        frame.write_csv(file)
        back = pl.read_csv(file, infer_schema_length=None)
        assert back.columns == frame.columns
        assert back.height == frame.height


def test_an_altair_chart_has_data(run: RunResult) -> None:
    chart = (
        alt.Chart(run.to_polars())
        .mark_point()
        .encode(x="topology_bottleneck_loss", y="mean(goodput_bps)", color="protocol")
    )
    drawing = vl_convert.vegalite_to_svg(chart.to_json(), vl_version="6.1")
    points = re.findall(
        r'aria-roledescription="point"[^>]*transform="translate\(([\d.]+),([\d.]+)\)"', drawing
    )
    assert len(points) == 4
    assert len({x for x, _ in points}) == 2
    assert all(float(y) < 300 for _, y in points)


def test_json_has_the_same_numbers(run: RunResult) -> None:
    last = run.to_json()["cells"][-1]
    assert last["params"]["topology.bottleneck.loss"] == "1%"
    assert last["values"] == {
        "topology_bottleneck_loss": 0.01,
        "topology_bottleneck_queue": "100kB",
        "protocols_ten_congestion_window": 20,
    }


def test_a_failed_trial_is_not_measured(tmp_path: Path) -> None:
    study = {
        "title": "Nothing arrives",
        "path": {"rate": "1Mbit/s", "loss": "100%"},
        "workload": {"kind": "file", "size": "10kB"},
        "protocols": ["stop-and-wait"],
        "repeats": 1,
    }
    frame = lf.run(study, out=tmp_path / "run").to_polars()
    assert frame["measured"].to_list() == [False]
    assert frame["error"][0]


def test_runs_convert_to_pandas_and_arrow(run: Run) -> None:
    frame = run.to_polars()
    assert run.to_arrow().num_rows == frame.height
    assert list(run.to_pandas().columns) == frame.columns


@pytest.mark.slow
def test_charts_in_notebooks_load_nothing(run: Run) -> None:
    with alt.renderers.enable("default"):
        chart = run.chart("goodput")
        own = alt.Chart(run.to_polars()).mark_point().encode(x="trial")
        for shown in (chart, own):
            data = shown._repr_mimebundle_()
            assert set(data) == {"image/svg+xml"}
            assert fetched(data["image/svg+xml"]) == []
    with alt.renderers.enable("png"):
        run.chart("goodput")
        assert alt.renderers.active == "png"
    assert fetched(run._repr_html_()) == []
