"""Distributions of rounds, slowdowns and queue lengths."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import altair as alt
import polars as pl
import pytest
from tests.conftest import Cli

import longfat as lf
from longfat.presentation.run.charts.drawing import Drawing, draw
from longfat.presentation.run.charts.options import Options

STAR: dict[str, Any] = {"kind": "star", "leaves": 3, "leaf": {"rate": "1Gbit/s", "delay": "20us"}}
MEMBERS = {"from": ["h1", "h2", "h3"]}
WORKLOADS: dict[str, dict[str, Any]] = {
    "barrier": {"kind": "request-response", "from": "hub", "to": "h*", "barrier": True, "requests": 7},
    "all-reduce": {"kind": "all-reduce", "size": "30kB", "rounds": 7, **MEMBERS},
    "file": {"kind": "file", "size": "30kB"},
}


def run_of(workload: str, folder: Path) -> lf.Run:
    study = {
        "title": "Rounds",
        "repeats": 2,
        "topology": STAR,
        "workload": WORKLOADS[workload],
        "protocols": ["reno", "cubic"],
    }
    return lf.run(study, out=folder / workload)


def drawn(run: lf.Run, metric: str | None = None, **options: Any) -> Drawing:
    return draw(run, metric, Options(**options))


@pytest.mark.parametrize("workload", ["barrier", "all-reduce"])
def test_a_distribution_over_rounds_is_that_of_all_trials(workload: str, tmp_path: Path) -> None:
    run = run_of(workload, tmp_path)
    made = drawn(run, cdf="rounds")
    assert "14 rounds per line" in made.caption
    own = pl.DataFrame(made.values).filter(protocol="TCP Reno")
    assert own["share"].max() == 1.0
    records = run.to_polars().filter(protocol="reno")
    assert records["round_p99_s"].max() == own["round_s"].max()
    assert own["round_s"].min() <= records["round_p50_s"].min() <= own["round_s"].max()  # type: ignore[operator]
    assert drawn(run, "round", cdf="rounds").values == made.values
    with pytest.raises(ValueError, match='"fct" is not a metric of rounds; allowed: round'):
        drawn(run, "fct", cdf="rounds")


def test_flows_that_all_opened_in_the_warm_up_have_no_distribution(tmp_path: Path) -> None:
    study = {
        "title": "Few flows",
        "repeats": 1,
        "path": {"rate": "10Mbit/s"},
        "workload": {
            "kind": "arrivals",
            "arrivals": "1/s",
            "size": "10kB",
            "duration": "2s",
            "warm_up": "1999ms",
        },
        "protocols": ["reno"],
    }
    with pytest.raises(ValueError, match="no flow of the workload opened after the warm-up"):
        drawn(lf.run(study, out=tmp_path / "bulk"), cdf="flows")


def test_a_run_without_rounds_is_refused_and_has_slowdowns(tmp_path: Path) -> None:
    run = run_of("file", tmp_path)
    with pytest.raises(ValueError, match="this run has no rounds; they require barrier = true"):
        drawn(run, cdf="rounds")
    made = drawn(run, "slowdown", cdf="flows")
    slowdowns = run.flows_to_polars().filter(protocol="reno")["slowdown"]
    own = pl.DataFrame(made.values).filter(protocol="TCP Reno")
    assert own["slowdown"].to_list() == sorted(set(slowdowns))
    assert slowdowns.min() >= 1  # type: ignore[operator]


def test_a_queue_distribution_is_that_of_the_samples(cli: Cli, tmp_path: Path) -> None:
    path = lf.Path(rate="10Mbit/s", delay="5ms", queue="20pkt")
    traces = lf.trace(["reno", "cubic"], path, duration="2s", interval="5ms")
    chart = traces.queue_cdf(first="500ms").to_dict()
    alt.Chart.from_dict(chart, validate=True)
    (values,) = chart["datasets"].values() if "datasets" in chart else (chart["data"]["values"],)
    names = {row["queue"] for row in values}
    assert len(names) == 2
    lengths = traces.queues.filter(pl.col("time") >= 0.5, protocol="reno")["packets"]
    own = {row["x"]: row["y"] for row in values if "Reno" in row["queue"]}
    for length, share in own.items():
        assert share == pytest.approx((lengths <= length).mean())
    study = tmp_path / "q.toml"
    study.write_text(
        'title = "Q"\nprotocols = ["reno"]\npath = { rate = "10Mbit/s", delay = "5ms", queue = "20pkt" }\n'
        'workload = { kind = "bulk", duration = "1s" }\n'
    )
    text = cli("trace", study, "--chart", "queue-cdf").stdout
    assert "packets, share of the time" in text
    assert "100%" in text
    cli("trace", study, "--chart", "queue-cdf", "--from", "500ms", "--out", "q.svg")
    assert "Share of the time" in (tmp_path / "q.svg").read_text(encoding="utf-8")
    failed = cli("trace", study, "--chart", "queue-cdf", "--interval", "5s", ok=False)
    assert "no samples in this period" in failed.stderr
