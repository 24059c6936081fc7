"""Metrics that a study computes from others: values per trial, intervals, claims, unknown values, errors."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import longfat as lf
from longfat.study import StudyError, load_study
from longfat.study.expressions.metrics import derived_metrics

Data = dict[str, Any]


@pytest.fixture
def dumbbell() -> Data:
    """Two senders with different delays."""
    slow = {"rate": "100Mbit/s", "delay": "20ms"}
    return {
        "title": "Unfairness",
        "repeats": 4,
        "topology": {
            "kind": "dumbbell",
            "bottleneck": {"rate": "20Mbit/s", "delay": "5ms", "queue": "1BDP"},
            "access": [{**slow, "delay": "5ms"}, slow],
        },
        "workload": {"kind": "bulk", "duration": "3s", "warm_up": "1s", "start_jitter": "100ms"},
        "protocols": ["cubic"],
        "metrics": {"unfairness": "goodput@s1 / goodput@s2", "waiting": "rtt_p50 - rtt_min"},
    }


def test_each_trial_has_its_value(dumbbell: Data, tmp_path: Path) -> None:
    run = lf.run(dumbbell, out=tmp_path)
    rows = run.to_polars()
    assert rows["unfairness"].to_list() == pytest.approx(
        (rows["goodput_bps_s1"] / rows["goodput_bps_s2"]).to_list()
    )
    assert rows["waiting_s"].to_list() == pytest.approx((rows["rtt_p50_s"] - rows["rtt_min_s"]).to_list())
    interval = run.cells[0].metrics["unfairness"]
    assert interval.low < interval.value < interval.high
    # The mean of ratios, not the ratio of means.
    assert interval.value == pytest.approx(rows["unfairness"].mean())
    assert "Unfairness" in str(run.table("unfairness", "waiting"))
    assert "ms" in str(run.table("waiting"))


def test_they_are_shown_claimed_and_charted_like_measured_ones(dumbbell: Data, tmp_path: Path) -> None:
    claim = {
        "id": "c",
        "text": "t",
        "metric": "unfairness",
        "of": "cubic",
        "relation": "at-least",
        "value": 0.5,
    }
    run = lf.run({**dumbbell, "claims": [claim], "show": ["unfairness"]}, out=tmp_path)
    assert run.claims[0].verdict == "holds"
    assert "unfairness: cubic" in run.claims[0].detail
    assert "Unfairness" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert run.drawing("unfairness") is not None


def test_a_changed_metric_needs_no_new_trials(dumbbell: Data, tmp_path: Path) -> None:
    lf.run(dumbbell, out=tmp_path)
    dumbbell["metrics"] = {"share_of_s1": "goodput@s1 / (goodput@s1 + goodput@s2)"}
    parts = sorted(tmp_path.rglob("*.parquet"))
    assert parts
    run = lf.run(dumbbell, out=tmp_path)
    assert 0 < run.cells[0].metrics["share_of_s1"].value < 1
    assert sorted(tmp_path.rglob("*.parquet")) == parts


def test_a_metric_of_unknown_times_is_unknown(tmp_path: Path) -> None:
    study = {
        "title": "Unanswered",
        "repeats": 3,
        "path": {"rate": "10Mbit/s", "delay": "10ms", "loss": "30%"},
        "workload": {"kind": "request-response", "requests": 50},
        "protocols": [{"name": "udp", "kind": "udp"}],
        "metrics": {"slowness": "fct_p99 / fct_min"},
    }
    run = lf.run(study, out=tmp_path)
    assert "fct_p99_s" in run.cells[0].censored
    assert run.cells[0].censored["slowness"] == run.cells[0].censored["fct_p99_s"]
    assert "slowness" not in run.cells[0].metrics


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        (
            {"x": "goodputt / 2"},
            r'metrics.x: "goodputt / 2": "goodputt" is not a metric; did you mean "goodput"',
        ),
        ({"x": "goodput + rtt_p50"}, "rate plus duration has no meaning"),
        ({"x": "goodput * rtt_p50"}, "the result is a size: a metric is a rate, a duration or a number"),
        ({"a": "b * 2", "b": "a * 2"}, "a needs b needs a: a cycle"),
        ({"goodput": "drops / 2"}, "is the name of a measured metric"),
        ({"X": "drops"}, "a name has lower-case letters"),
        ({"x": "1 + 2"}, "has no metric"),
        ({"x": "drops / 2BDP"}, "BDP and RTT are for keys, not for metrics"),
        ({"x": "drops +"}, "is not an expression"),
        ({"x": "goodput@s9 / 2"}, r'metrics.x: "goodput@s9" is of a host .* did you mean "goodput@s'),
    ],
)
def test_wrong_metrics_have_one_line_before_the_first_trial(
    dumbbell: Data, metrics: dict[str, str], message: str
) -> None:
    with pytest.raises(StudyError, match=message) as error:
        load_study({**dumbbell, "metrics": metrics, "show": list(metrics)})
    assert "\n" not in str(error.value)


def test_metrics_cannot_grow_without_bound() -> None:
    texts = {"a0": "drops + drops"} | {f"a{n}": f"a{n - 1} + a{n - 1}" for n in range(1, 40)}
    with pytest.raises(ValueError, match="more than 200 parts"):
        derived_metrics(texts)


VALUES = st.one_of(st.none(), st.floats(-1e6, 1e6))


@given(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=20))
def test_missing_values_and_divisions_by_zero_have_no_value(rows: list[tuple[Any, Any]]) -> None:
    frame = pl.DataFrame(rows, schema={"drops": pl.Float64, "marks": pl.Float64}, orient="row")
    found = derived_metrics({"r": "drops / marks", "m": "max(drops, marks)", "n": "drops / timeouts"})
    for one in found.values():
        frame = one.added_to(frame)
    for (a, b), ratio, largest, none in zip(rows, frame["r"], frame["m"], frame["n"], strict=True):
        assert none is None
        known = a is not None and b is not None
        assert largest == (max(a, b) if known else None)
        assert (ratio is None) == (not known or b == 0)
        if ratio is not None and math.isfinite(ratio):
            assert ratio == a / b


def test_columns_follow_the_dimension() -> None:
    found = derived_metrics({"a": "goodput / 2", "b": "rtt_p50 * 2", "c": "jain", "d": "b / a * 1Mbit/s"})
    assert [one.column for one in found.values()] == ["a_bps", "b_s", "c", "d_s"]
    assert all(itertools.starmap(lambda name, one: one.column.startswith(name), found.items()))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("goodput / 0", "division by zero"),
        ("goodput / (2 - 2)", "division by zero"),
        ("goodput * (1 / 0)", "division by zero"),
        ("goodput * sqrt(2 - 3)", "takes no negative number"),
    ],
)
def test_mistakes_in_constants_are_refused_before_the_first_trial(
    dumbbell: Data, text: str, message: str
) -> None:
    with pytest.raises(StudyError, match=message):
        load_study({**dumbbell, "metrics": {"x": text}})


def test_a_square_root_of_a_trial_is_that_of_its_value() -> None:
    root = derived_metrics({"x": "sqrt(jain - 0.5)"})["x"]
    found = root.added_to(pl.DataFrame({"jain": [0.75, 0.25, None]}))
    assert found["x"].to_list() == [0.5, None, None]
