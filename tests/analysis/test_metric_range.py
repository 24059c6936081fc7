"""Intervals of shares and of Jain's index stay within their range, also in verdicts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import longfat as lf
from longfat.analysis import relations
from longfat.analysis.metric_range import range_of
from longfat.analysis.relations import Family
from longfat.analysis.resolution import bin_width
from longfat.analysis.statistics import interval, summarise
from longfat.presentation.run import notes
from longfat.presentation.run.columns import Column
from longfat.results.run import Cell, CellResult
from longfat.study.claims import Claim
from longfat.study.vocabulary import metrics

JAIN = [1.0, 1.0, 0.7, 1.0]


class Records:
    """The records of one cell, as columns."""

    def __init__(self, **columns: list[float]) -> None:
        self.columns = columns

    def trials(self, cell: int) -> range:
        return range(len(next(iter(self.columns.values()))))

    def failures(self, cell: int) -> dict[str, int]:
        return {}

    def varying(self, cell: int) -> dict[str, bool]:
        return dict.fromkeys(self.columns, True)

    def missing(self, cell: int) -> list[str]:
        return []

    def inputs(self, metric: str) -> list[str]:
        return []

    def positive(self, cell: int) -> list[str]:
        return list(self.columns)

    def values(self, cell: int, metric: str) -> Any:
        return np.array(self.columns[metric])


def cell(**columns: list[float]) -> CellResult:
    [found] = summarise(Records(**columns), [Cell("sim", "a", {}, {})])
    return found


@pytest.mark.parametrize("metric", ["share", "utilisation", "efficiency", "jain"])
def test_intervals_of_shares_end_at_one(metric: str) -> None:
    found = cell(**{metric: JAIN}).metrics[metric]
    assert interval(JAIN).high > 1
    assert found.high == 1.0
    assert found.low == interval(JAIN).low


def test_intervals_of_jain_start_at_one_over_the_flows() -> None:
    found = cell(jain=[0.5, 0.5, 0.9], flows_sharing=[2.0, 2.0, 2.0]).metrics["jain"]
    assert found.low == 0.5
    assert cell(jain=[0.5, 0.5, 0.9]).metrics["jain"].low < 0.5


@given(st.lists(st.floats(0, 1), min_size=2, max_size=120))
def test_intervals_contain_the_mean_within_the_range(values: list[float]) -> None:
    found = interval(values, within=range_of("share", {}))
    assert 0 <= found.low <= found.mean + 1e-12
    assert found.mean - 1e-12 <= found.high <= 1


def test_verdicts_use_the_intervals_of_tables() -> None:
    fair = cell(jain=JAIN, flows_sharing=[2.0] * 4)
    shown = fair.metrics["jain"]
    for value, relation in ((1, "at-most"), (shown.low, "at-least"), (0.5, "at-least")):
        claim = Claim.model_validate(
            {"id": "c", "text": "t", "metric": "jain", "of": "a", "relation": relation, "value": value}
        )
        assert relations.level(claim, "jain", fair, Family(1)).verdict == "holds"


def test_every_range_contains_its_metric() -> None:
    for name, about in metrics().items():
        low, high = about["range"]
        assert isinstance(low, dict | float | None), name
        assert high is None or high == 1.0, name


def cell_of(trials: int, **columns: list[float]) -> CellResult:
    (result,) = summarise(Records(**columns), [Cell("sim", "reno", {}, {"protocol": {}, "workload": {}})])
    assert result.n == trials
    return result


@pytest.mark.parametrize(
    ("metric", "samples", "expected"),
    [
        ("goodput_bps", [2.9e6, 3.6e6, 10.0e6], "5.5 [0, 15.2]"),
        ("goodput_bps", [5.0e6, 5.5e6, 6.0e6], "5.5 ±1.2"),
        ("share", [1.0, 1.0, 0.7, 1.0], "0.93 [0.69, 1.00]"),
        ("rtt_p50_s", [0.04, 0.04, 0.13], "70 [0, 199]"),
        ("share", [1.0, 0.99999, 1.0, 1.0], "1.000 ±<0.001"),
        ("rtt_p99_s", [0.0127] * 3, "12.7 ±<0.1"),
        ("rtt_mean_s", [0.0127] * 3, "12.7 ±0"),
        ("queueing_delay_p50_s@forward", [0.00212] * 3, "2.12 ±<0.01"),
        ("queueing_delay_p50_s", [0.0] * 3, "0 ±0"),
    ],
)
def test_tables_print_bounds_where_the_half_width_leaves_the_range(
    metric: str, samples: list[float], expected: str
) -> None:
    cell = cell_of(len(samples), **{metric: samples, "losses": [float(n) for n in range(len(samples))]})
    column = Column.of(metric, [cell])
    assert column.measured(cell) == expected
    assert column.is_cut(cell) == ("[" in expected)


def test_percentiles_of_a_trial_are_ends_of_bins() -> None:
    path = {"rate": "20Mbit/s", "delay": "20ms", "queue": "40pkt", "loss": "1%"}
    measured = lf.simulate("reno", path, "2MB").metrics
    for metric in ("rtt_p50_s", "rtt_p99_s", "queueing_delay_p99_s"):
        bins = (measured[metric] * 1e9 + 1) / (bin_width(metric, measured[metric]) * 1e9)
        assert bins == pytest.approx(round(bins), abs=1e-6)


def test_the_fix_for_bounds_is_named_if_trials_are_few() -> None:
    few = cell_of(3, goodput_bps=[1.0, 1.0, 4.0])
    many = cell_of(12, goodput_bps=[0.0] * 11 + [1.0])
    assert "n = 3 is small: more trials (--repeats)" in notes.bounded([few, many])
    assert notes.bounded([many]) == "[low, high] where ± leaves the metric's range"
