"""Flow size classes in the table and the report, and distributions of their completion times."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console

import longfat as lf
from longfat.analysis import grid
from longfat.presentation.run import details
from longfat.presentation.run.charts import flows as charts_flows
from longfat.presentation.run.report import page as report
from longfat.results.run import RunResult
from longfat.store import parts

STUDY = {
    "title": "Who waits",
    "repeats": 3,
    "show": ["fct_mean@G0", "fct_mean@G1", "flow_throughput"],
    "topology": {"kind": "multipath", "paths": 2, "path": {"rate": "10Mbit/s"}, "delays": "5ms..20ms"},
    "workload": {
        "kind": "arrivals",
        "arrivals": "50/s",
        "sizes": "campus",
        "largest": "1MB",
        "classes": ["10kB"],
        "duration": "4s",
        "warm_up": "1s",
    },
    "protocols": [
        {"name": "one", "kind": "tcp", "path": "random"},
        {"name": "all", "kind": "mptcp", "policy": "all"},
    ],
    "sweep": {"workload.arrivals": ["20/s", "50/s"]},
    "claims": [
        {
            "id": "in-time",
            "text": "Small flows are done within 10 s",
            "metric": "fct_mean@G0",
            "of": "one",
            "relation": "at-most",
            "value": "10s",
        }
    ],
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    return lf.run(STUDY, out=tmp_path_factory.mktemp("run") / "classes")


def test_the_table_has_a_column_for_each_class(run: RunResult) -> None:
    console = Console(width=120, record=True, color_system=None)
    console.print(details.table(run.study, run))
    text = console.export_text()
    assert "G0" in text
    assert "G1" in text
    assert "G0: up to 10kB, G1: above" in text
    assert text.count("one") == 2, "a row per point and protocol"


@pytest.mark.slow
def test_a_claim_applies_to_a_class(run: RunResult) -> None:
    assert [verdict.verdict for verdict in run.claims] == ["holds"]


def test_distributions_cover_measured_flows_only(run: RunResult) -> None:
    rows = charts_flows.rows(run)
    assert {row["class"] for row in rows} == {"class G0", "class G1"}
    flows = run.flows_to_polars()
    chosen = flows.filter(
        (flows["protocol"] == "all")
        & (flows["workload_arrivals"] == 50.0)
        & (flows["class"] == 0)
        & (flows["opened_s"] >= 1.0)
    )
    line = [
        r for r in rows if (r["series"], r["class"]) == ("MPTCP (all)", "class G0") and "50/s" in r["point"]
    ]
    times = sorted(chosen["fct_s"].drop_nulls())
    half = next(row["time"] for row in line if row["share"] == 50)
    assert half == pytest.approx(1000 * times[round(0.5 * len(times)) - 1])
    assert line[-1]["share"] == pytest.approx(100)
    assert line[-1]["time"] == pytest.approx(1000 * times[-1])
    assert [row["time"] for row in line] == sorted(row["time"] for row in line)


def test_flows_of_selected_cells_are_read(run: RunResult) -> None:
    assert run.flows is not None
    whole = run.flows.read()
    some = run.flows.read(["fct_s"], [1])
    assert some.height == whole.filter(whole["cell"] == 1).height
    assert set(some["cell"]) == {1}
    assert "fct_s" in some.columns
    assert "size_bytes" not in some.columns


@pytest.mark.slow
def test_distributions_read_each_flow_file_once(run: RunResult, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Path] = []
    whole = parts.frame_of

    def counted(part: Path, content: bytes, wanted: parts.Wanted) -> pl.DataFrame:
        read.append(part)
        return whole(part, content, wanted)

    monkeypatch.setattr(parts, "frame_of", counted)
    charts_flows.rows(run)
    assert sorted(read) == parts.listed(run.folder, "flows")


def test_the_report_draws_classes_and_distributions(run: RunResult) -> None:
    page = report.build(run)
    for name in ("chart-fct_mean_s@G0", "chart-fct_mean_s@G1", "chart-hosts-fct_mean_s", "chart-flows"):
        assert f'id="{name}"' in page
    assert "Flow completion time, mean, class G1" in page
    assert "Distribution of flow completion times" in page


def test_a_class_without_flows_at_a_point_keeps_its_panel(run: RunResult) -> None:
    rows = charts_flows.rows(run)
    there = {(row["point"], row["class"]) for row in rows}
    few = ("Flow arrival rate 20/s", "class G1")
    assert few not in there, "fewer than 20 flows in three trials"
    spec = charts_flows.chart(run, rows)
    panels = [row["hconcat"] for row in spec["vconcat"]]
    for point, across in zip(("20/s", "50/s"), panels, strict=True):
        for name, panel in zip(("class G0", "class G1"), across, strict=True):
            place = (f"Flow arrival rate {point}", name)
            assert tuple(panel["title"]["text"]) == place
            own = [row for layer in panel["layer"] if "data" in layer for row in layer["data"]["values"]]
            drawn = [*panel["data"]["values"], *own]
            if place == few:
                assert drawn == [{"text": "fewer than 20 flows"}]
            else:
                assert {(row["point"], row["class"]) for row in drawn} == {place}


@pytest.mark.slow
def test_the_chart_names_what_it_leaves_out(run: RunResult, tmp_path: Path) -> None:
    rows = charts_flows.rows(run)
    assert "Not drawn" not in charts_flows.caption(run, rows)
    rates = ["20/s", "30/s", "40/s", "50/s", "60/s"]
    changed = {**STUDY, "repeats": 1, "sweep": {"workload.arrivals": rates}, "claims": []}
    wider = lf.run(changed, out=tmp_path / "wider")
    subtitle = " ".join(wider.flows_chart().to_dict()["title"]["subtitle"])
    left_out = "2 of 5 points of the sweep (Flow arrival rate 30/s; Flow arrival rate 50/s)"
    assert f"Not drawn: {left_out}." in subtitle
    assert left_out in report.build(wider)
    few = [row for row in rows if row["series"] != "MPTCP (all)"]
    assert "Not drawn: MPTCP (all) (fewer than 20 flows)." in charts_flows.caption(run, few)


def test_classes_are_sorted(run: RunResult) -> None:
    first, *others = run.cells
    without = {name: value for name, value in first.metrics.items() if not name.endswith("@G0")}
    lacking = [dataclasses.replace(first, metrics=without), *others]
    assert grid.hosts(lacking, "fct_mean_s") == ["G0", "G1"]


def test_bulk_flows_that_start_before_the_end_of_the_warm_up_are_drawn(tmp_path: Path) -> None:
    study = {
        "title": "Bulk",
        "repeats": 3,
        "path": {"rate": "10Mbit/s", "delay": "10ms", "loss": "1%"},
        "workload": {"kind": "bulk", "flows": 2, "duration": "3s", "warm_up": "1s"},
        "protocols": ["reno"],
    }
    run = lf.run(study, out=tmp_path / "run")
    run.chart("goodput", cdf="flows", out=tmp_path / "c.svg", csv=True)
    # Three trials with two flows each.
    assert pl.read_csv(tmp_path / "c.csv")["share"].to_list() == pytest.approx([n / 6 for n in range(1, 7)])
