"""Theory and measurements in one chart: no figure hides another, and the axis shows small and large ones."""

from __future__ import annotations

from dataclasses import replace

import pytest

import longfat as lf
from longfat.presentation.charts.files import render
from longfat.presentation.run.charts import data as chart_data
from longfat.presentation.run.charts import lines

pytestmark = pytest.mark.xdist_group("theory-marks")


@pytest.fixture(scope="module")
def reno_and_bbr(tmp_path_factory: pytest.TempPathFactory) -> lf.RunResult:
    """Without a sweep: theory of Reno, an upper bound of BBR, and goodputs that differ by a factor of ten."""
    study = {
        "title": "One path",
        "repeats": 3,
        "path": {"rate": "50Mbit/s", "delay": "20ms", "queue": "170pkt", "loss": "1%"},
        "workload": {"kind": "bulk", "duration": "4s", "warm_up": "2s"},
        "protocols": ["reno", "bbr"],
    }
    return lf.run(study, out=tmp_path_factory.mktemp("marks") / "one")


def test_theory_at_one_point_hides_no_interval(reno_and_bbr: lf.RunResult) -> None:
    """The theory of a protocol has its colour, so it is thin, dashed, and below points and intervals."""
    layers = lines.chart(reno_and_bbr)["layer"]
    kinds = [one["transform"][0]["filter"]["equal"] for one in layers]
    ticks = [one["mark"] for one, kind in zip(layers, kinds, strict=True) if kind in ("theory", "bound")]
    assert [mark["filled"] for mark in ticks] == [False, False]
    assert all(mark["strokeWidth"] < 2 for mark in ticks)
    assert kinds == sorted(kinds, key=lambda kind: kind == "measured"), "below the measured ones"
    svg = render(lines.chart(reno_and_bbr), "svg").decode()
    assert 'stroke-dasharray="5,2.5"' in svg


def test_theory_and_upper_bounds_are_in_the_legend(reno_and_bbr: lf.RunResult) -> None:
    svg = render(lines.chart(reno_and_bbr), "svg").decode()
    assert ">theory</text>" in svg
    assert ">upper bound (≤)</text>" in svg


def test_axes_are_logarithmic_if_values_of_protocols_span_a_decade(reno_and_bbr: lf.RunResult) -> None:
    data = chart_data.collect(reno_and_bbr, "goodput_bps")
    values = [row["y"] for row in data.rows]
    assert 10 <= max(values) / min(values) < 20
    assert not data.x.quantitative
    assert data.y.log
    assert data.y.ticks[0] >= min(values) / 20, "an interval that reaches to 0 is cut a decade below"
    assert min(row["low"] for row in data.rows if "low" in row) >= data.y.ticks[0]


def test_long_names_of_categories_are_slanted(reno_and_bbr: lf.RunResult) -> None:
    data = chart_data.collect(reno_and_bbr, "goodput_bps")
    long = replace(data, series=["QUIC with BBR and a long name " * 2, "TCP Reno"])
    level, slanted = (
        lines.plot(one, "goodput_bps", 620)["layer"][0]["encoding"]["x"] for one in (data, long)
    )
    assert level["axis"] == {"labelAngle": 0}
    assert slanted["axis"] == {"labelAngle": -35}
