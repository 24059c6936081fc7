"""The counts, the example and the interval in the line of a verdict, and in its figures."""

from __future__ import annotations

from typing import Any

import pytest

from longfat.analysis import claims
from longfat.analysis.statistics import interval
from longfat.presentation.run.verdicts import verdict
from longfat.results.run import Cell, CellResult, Verdict
from longfat.study import Study, sweep
from longfat.study.units import number

SWEEP = {"path.loss": ["0%", "2%", "4%"], "path.delay": ["5ms", "20ms"]}
GOODPUT = "goodput_bps"


def loss_of(cell: Cell) -> float:
    return number(cell.params["path.loss"]) or 0.0


def study_of(factory: Any, swept: dict[str, list[str]], **keys: Any) -> Study:
    claim = {"id": "c", "text": "claimed", "metric": "goodput", "of": "sr", **keys}
    made: Study = factory.study({"worlds": ["sim"], "sweep": swept, "claims": [claim], "reported": []})
    return made


def judged(factory: Any, truth: Any, spread: float = 0.001, **keys: Any) -> Verdict:
    (found,) = factory.run(study_of(factory, SWEEP, **keys), truth, spread).claims
    assert isinstance(found, Verdict)
    return found


def counts(found: Verdict) -> tuple[int, int]:
    assert found.figures is not None
    return found.figures["agreeing"], found.figures["comparisons"]


def falls_where_short(cell: Cell) -> float:
    """At 5 ms goodput falls with loss; at 20 ms it rises."""
    return 1e6 * (1 - loss_of(cell) if cell.params["path.delay"] == "5ms" else 1 + loss_of(cell))


@pytest.mark.parametrize("relation", ["falls-with", "flat-after"])
def test_a_claim_along_a_key_counts_trends(factory: Any, relation: str) -> None:
    """One for each value of the other key, whether it holds or fails."""
    keys: dict[str, Any] = {"relation": relation, "along": "path.loss"}
    keys |= {"after": "0%", "by": "1%"} if relation == "flat-after" else {}
    found = judged(factory, falls_where_short, **keys)
    assert found.verdict == "fails"
    assert found.detail.startswith("in 1 of 2 trends; worst at path.delay = 20ms from path.loss 0% to ")
    assert counts(found) == (1, 2)
    found = judged(factory, lambda cell: 1e6 * (1 - loss_of(cell)), **keys)
    assert found.verdict == "holds"
    assert found.detail.startswith("in both trends; closest at path.delay = ")
    assert counts(found) == (2, 2)


def test_a_claim_about_cells_counts_cells(factory: Any) -> None:
    """Of a claim that fails, the cells in which it fails."""
    keys: dict[str, Any] = {"relation": "at-most", "value": "1Mbit/s"}
    found = judged(factory, falls_where_short, **keys)
    assert found.verdict == "fails"
    assert found.detail.startswith("in 2 of 6 cells; worst at ")
    assert counts(found) == (2, 6)


def test_the_example_of_an_undecided_claim_has_the_given_reason(factory: Any) -> None:
    """The claim needs the trials of its closest cell; a noisier one needs fewer."""
    study = study_of(factory, {"path.loss": ["2%", "4%"]}, relation="at-least", value="1Mbit/s")
    samples = {
        "2%": [1.02e6 + 1e5 * (-1) ** n for n in range(10)],
        "4%": [1.000001e6 + 1e4 * (-1) ** n for n in range(10)],
    }

    def result(cell: Cell) -> CellResult:
        found = samples[cell.params["path.loss"]]
        return CellResult(cell, 10, {}, {GOODPUT: interval(found)}, {GOODPUT: found}, list(range(10)))

    (one,) = claims.judge(study, [result(cell) for cell in sweep.cells(study)])
    assert one.verdict == "undecided"
    detail = verdict(one).detail
    assert detail.startswith("in 2 of 2 cells; e.g. at path.loss = 4%")
    assert detail.endswith("too close to the limit to decide")


def test_a_comparison_with_a_value_has_the_interval_that_decides(factory: Any) -> None:
    def goodput(_: Cell) -> float:
        return 2e6

    found = judged(factory, goodput, spread=0.02, relation="near", value="2Mbit/s", by="10%")
    assert found.figures is not None
    given = found.figures["interval"]
    (mean,) = (one["value"] for one in found.figures["values"])
    assert given["value"] == pytest.approx(mean)
    assert given["low"] < mean < given["high"]
    shown = (
        f"sr {mean / 1e6:.2f} Mbit/s [{given['low'] / 1e6:.2f}, {given['high'] / 1e6:.2f}], claimed within"
    )
    assert shown in found.detail


def test_an_interval_near_its_limit_has_the_digits_that_tell_them_apart(factory: Any) -> None:
    found = judged(factory, lambda _: 2.001e6, spread=1e-5, relation="at-least", value="2Mbit/s")
    assert found.verdict == "holds"
    low = float(found.detail.partition("[")[2].partition(",")[0])
    assert 2 < low <= 2.001
