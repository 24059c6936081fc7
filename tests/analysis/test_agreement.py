"""Agreement of worlds: differences, texts, charts and claims."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from rich.console import Console

from longfat.analysis import agreement
from longfat.analysis.agreement import Difference, Measure
from longfat.presentation.charts import files as chart_files
from longfat.presentation.run import agreement_text, details
from longfat.presentation.run.charts import differences
from longfat.presentation.run.report.page import build
from longfat.results.run import Cell, CellResult, Interval, RunResult
from longfat.study.selection import check


def slow_at_10(factory: Any) -> RunResult:
    def truth(cell: Cell) -> float:
        slow = cell.world == "relay" and cell.params["path.loss"] == "10%"
        return float(factory.by_theory(cell)) * (0.8 if slow else 0.99)

    run: RunResult = factory.run(factory.study(), truth)
    return run


def difference(change: Interval, first: float = 100.0, **limits: float) -> Difference:
    measure = Measure("rtt_mean_s", part=limits.get("part"), amount=limits.get("amount"))
    of = Interval(*(1 + end / first for end in (change.mean, change.low, change.high)))
    return Difference(measure, first, first + change.mean, change, of)


@pytest.mark.parametrize(
    ("change", "misses", "unsure"),
    [
        (Interval(9.0, 8.0, 9.9), False, False),
        (Interval(9.0, 7.0, 11.0), False, True),
        (Interval(11.0, 9.0, 13.0), True, True),
        (Interval(-11.0, -11.5, -10.5), True, False),
        (Interval(0.0, -11.0, 11.0), False, True),
        (Interval(1.0, float("nan"), float("nan")), False, True),
    ],
)
def test_a_cell_misses_if_its_mean_difference_exceeds_the_limit(
    change: Interval, misses: bool, unsure: bool
) -> None:
    found = difference(change, part=0.1)
    assert (found.misses, found.unsure) == (misses, unsure)


def change(cell: CellResult, metric: str, values: list[float]) -> None:
    """Replaces the samples of a metric; those of `made` are a dict."""
    assert isinstance(cell.samples, dict)
    cell.samples[metric] = values


def test_the_larger_of_two_limits_applies() -> None:
    # 10 % of 5 ms is less than 1 ms; 10 % of 50 ms is more.
    for first, change, misses in ((0.005, 0.0009, False), (0.05, 0.004, False), (0.05, 0.006, True)):
        found = difference(Interval(change, change, change), first, part=0.1, amount=0.001)
        assert found.misses is misses
    assert agreement_text.limit(Measure("rtt_mean_s", part=0.1, amount=0.001)) == "10 % or 1 ms"
    assert agreement_text.limit(Measure("jain", amount=0.05)) == "0.05"


def test_summary_counts_agreeing_cells_and_names_the_largest_difference(factory: Any) -> None:
    run = slow_at_10(factory)
    found = agreement.agreements(run.cells)
    assert len(found) == 18
    assert {one.cell.params["path.loss"] for one in found if one.misses} == {"10%"}
    assert all(bool(one.causes) == bool(one.misses) for one in found)
    agreed, furthest = agreement_text.summary(found)
    assert agreed == "sim and relay: goodput within 10 % in 15 of 18 cells"
    assert re.search(r"at path.loss = 10%, goodput -\d\d\.\d % \[-\d\d\.\d, -\d\d\.\d\] %", furthest)
    assert len(agreement.missed(found)) == 3


def test_the_summary_counts_undecided_cells(factory: Any) -> None:
    run = slow_at_10(factory)
    for cell in run.cells:
        change(cell, "goodput_bps", cell.samples["goodput_bps"][:1])
    agreed, _ = agreement_text.summary(agreement.agreements(run.cells))
    assert agreed.endswith("of 18 cells (uncertain in 18; add repeats)")


def test_a_short_path_is_a_cause(factory: Any) -> None:
    study = factory.study({"path": {"rate": "100Mbit/s", "delay": "0ms", "queue": "100pkt"}})
    run = factory.run(study, lambda cell: 1e6 * (0.5 if cell.world == "relay" else 1.0))
    causes = agreement_text.causes(agreement.agreements(run.cells)[0])
    assert "round trip takes" in causes


def test_different_counters_are_a_cause(factory: Any) -> None:
    run = slow_at_10(factory)
    for cell in run.cells:
        resent = 300.0 if cell.cell.world == "relay" else 200.0
        change(cell, "retransmissions", [resent] * cell.n)
        cell.metrics["retransmissions"] = Interval(resent, resent, resent)
    causes = {agreement_text.causes(one) for one in agreement.missed(agreement.agreements(run.cells))}
    assert all("retransmissions: 200 and 300" in why for why in causes)


def late(factory: Any, p99: float, maximum: float, **others: float) -> str:
    """Returns the causes named for a goodput difference of 20 % when the emulator is late by these times."""
    run = slow_at_10(factory)
    for cell in run.cells:
        if cell.cell.world == "relay":
            figures = {"emulator_late_p99_s": p99, "emulator_late_max_s": maximum, **others}
        else:
            figures = {"rtt_p50_s": 0.01, "completion_s": 3.0, "timeouts": 0.0}
        for name, value in figures.items():
            cell.metrics[name] = Interval(value, value, value)
    return " ".join(agreement_text.causes(one) for one in agreement.missed(agreement.agreements(run.cells)))


def test_a_late_emulator_is_a_cause_if_its_delay_is_comparable_to_the_difference(factory: Any) -> None:
    text = late(factory, 0.002, 0.003)
    assert "late by 2.00 ms or more in 1 of 100 cases, 20 % of a round trip; the worlds differ by 2" in text
    assert "the emulator was late" not in late(factory, 0.0002, 0.003)
    assert "stalled" not in late(factory, 0.0002, 0.3, timeouts=0.0, completion_s=30.0)
    assert "up to 300 ms, which may cause timeouts" in late(factory, 0.0002, 0.3, timeouts=2.0)
    assert "up to 300 ms of a trial's 2.00 s" in late(factory, 0.0002, 0.3, timeouts=0.0, completion_s=2.0)


def test_a_queue_that_drains_in_one_world_only_is_a_cause(factory: Any) -> None:
    run = slow_at_10(factory)
    for cell in run.cells:
        least = 0.015 if cell.cell.world == "relay" else 0.018
        cell.metrics["rtt_min_s"] = Interval(least, least, least)
    causes = {agreement_text.causes(one) for one in agreement.missed(agreement.agreements(run.cells))}
    text = "the smallest RTT was 18.0 ms and 15.0 ms: the queue drained further in relay"
    assert all(text in why for why in causes)


def test_the_terminal_names_the_cells_that_miss(factory: Any) -> None:
    run = slow_at_10(factory)
    console = Console(width=200, force_terminal=False, color_system=None)
    with console.capture() as capture:
        console.print(details.table(run.study, run))
    text = capture.get()
    assert text.count("  misses ") == 3
    assert "misses gbn at path.loss = 10%: goodput -" in text


def test_a_single_flow_has_no_fairness_comparison(factory: Any) -> None:
    run = slow_at_10(factory)
    for cell in run.cells:
        change(cell, "jain", [1.0] * cell.n)
    found = agreement.agreements(run.cells)
    assert "jain" not in [measure.metric for measure in agreement.measured(found)]
    for cell in run.cells:
        change(cell, "jain", [0.9 if cell.cell.world == "sim" else 0.8] * cell.n)
    found = agreement.agreements(run.cells)
    assert "Jain's index within 0.05 in 0 of 18 cells" in agreement_text.summary(found)[0]


@pytest.mark.slow
def test_the_report_shows_each_cell_with_its_verdict(factory: Any) -> None:
    page = build(slow_at_10(factory))
    text = " ".join(
        re.sub(r"<[^>]+>", " ", re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)).split()
    )
    assert text.count("\N{BALLOT X} misses") == 3
    assert text.count("\N{CHECK MARK} agrees") == 15
    assert "limit 10 %" in text
    assert 'data-chart="chart-agreement-relay"' in page


def test_the_chart_has_a_panel_for_each_limit(factory: Any) -> None:
    run = slow_at_10(factory)
    for cell in run.cells:
        change(cell, "rtt_mean_s", [0.010 if cell.cell.world == "sim" else 0.0105] * cell.n)
    found = agreement.agreements(run.cells)
    spec = differences.chart(run, found, agreement.measured(found))
    assert len(spec["vconcat"]) == 2
    drawing = chart_files.render(spec, "svg").decode()
    assert drawing.startswith("<svg")
    assert ">Protocol</text>" in drawing, "a legend"


CLAIM = {
    "id": "c",
    "text": "Worlds agree",
    "metric": "goodput",
    "of": "sr",
    "relation": "agrees-with",
    "against": "sim",
    "by": "10%",
}


@pytest.mark.parametrize(
    ("factor", "keys", "verdict"),
    [
        (0.97, {}, "holds"),
        (1.03, {}, "holds"),
        (0.8, {}, "fails"),
        (1.3, {}, "fails"),
        (0.9, {}, "undecided"),
        (0.8, {"value": "1Gbit/s"}, "holds"),
        (0.97, {"by": None, "value": "1kbit/s"}, "fails"),
        (0.97, {"by": None, "value": "10Mbit/s"}, "holds"),
    ],
)
def test_a_claim_compares_two_worlds(factory: Any, factor: float, keys: dict[str, Any], verdict: str) -> None:
    claim = {key: value for key, value in {**CLAIM, **keys}.items() if value is not None}
    study = factory.study({"claims": [claim]})
    run = factory.run(study, lambda cell: 3e6 * (factor if cell.world == "relay" else 1.0))
    (found,) = run.claims
    assert (found.verdict, found.world) == (verdict, "relay"), found.detail
    assert "relay" in found.detail
    assert check(study) == []


def test_a_claim_of_worlds_that_were_not_run_is_undecided(factory: Any) -> None:
    study = factory.study({"claims": [CLAIM]})
    run = factory.run(study)
    for world, missing in (("sim", "a world other than sim"), ("relay", "the world sim")):
        (found,) = factory.verdicts(study, [cell for cell in run.cells if cell.cell.world == world])
        assert found.verdict == "undecided"
        assert missing in found.detail


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"against": "netns"}, "not a world of this study"),
        ({"against": "sim", "world": "sim"}, "name another"),
    ],
)
def test_a_claim_needs_another_world(factory: Any, keys: dict[str, Any], message: str) -> None:
    (problem,) = check(factory.study({"claims": [{**CLAIM, **keys}]}))
    assert message in problem.message


def test_a_claim_of_agreement_needs_a_limit(factory: Any) -> None:
    claim = {key: value for key, value in CLAIM.items() if key != "by"}
    with pytest.raises(ValueError, match='requires the key "by"'):
        factory.study({"claims": [claim]})


def test_a_relative_difference_is_never_below_minus_100_percent(factory: Any) -> None:
    study = factory.study({"repeats": 3})
    run = factory.run(study)
    for cell in run.cells:
        sim = cell.cell.world == "sim"
        change(cell, "goodput_bps", [5e6, 5e6, 6e6] if sim else [0.1e6, 9e6, 0.2e6])
    one = agreement.agreements(run.cells)[0].difference("goodput_bps")
    assert one is not None
    assert agreement_text.bounds(one).startswith("[-100.0, +")
    for cell in run.cells:
        if cell.cell.world == "sim":
            change(cell, "goodput_bps", [0.1e6, 9e6, 0.2e6])
    one = agreement.agreements(run.cells)[0].difference("goodput_bps")
    assert one is not None
    assert agreement_text.bounds(one).endswith("+\N{INFINITY}) %")
    spec = differences.chart(run, agreement.agreements(run.cells), agreement.MEASURES[:1])
    assert "Infinity" not in json.dumps(spec)


def test_requests_are_compared_by_their_completion_times(factory: Any) -> None:
    run = factory.run(factory.study(), factory.by_theory)
    for kind, expected in (("bulk", []), ("request-response", ["fct_mean_s"])):
        for cell in run.cells:
            change(cell, "fct_mean_s", [0.2, 0.21, 0.19])
            cell.cell.spec["workload"] = {"kind": kind}
        measures = [one.metric for one in agreement.measured(agreement.agreements(run.cells))]
        assert [one for one in measures if one.startswith("fct")] == expected
