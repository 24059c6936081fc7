from __future__ import annotations

from typing import Any

import pytest

from longfat.analysis.expectation import theory_problems
from longfat.results.run import Cell, RunResult, Verdict
from longfat.study import Study, selection, sweep
from longfat.study.naming import claim_problems
from longfat.study.problems import Problem
from longfat.study.units import number

BASE = {"id": "c", "text": "claimed", "metric": "goodput"}


def check(study: Study) -> list[Problem]:
    """Returns the problems of a study's claims that are found before a run."""
    return selection.check(study) or theory_problems(study)


def claim(**keys: Any) -> dict[str, Any]:
    return {**BASE, **keys}


def judge(factory: Any, truth: Any, spread: float = 0.01, repeats: int = 20, **keys: Any) -> Verdict:
    study = factory.study({"worlds": ["sim"], "claims": [claim(**keys)], "repeats": repeats, "reported": []})
    run: RunResult = factory.run(study, truth, spread)
    (verdict,) = run.claims
    return verdict


def ahead_by(share: float) -> Any:
    """Returns true goodputs in which sr exceeds gbn by `share` in all cells."""
    return lambda cell: 1e6 * (1 + share if cell.protocol == "sr" else 1.0)


def loss_of(cell: Cell) -> float:
    return number(cell.params["path.loss"]) or 0.0


PAIR: dict[str, Any] = {"of": "sr", "against": "gbn"}


@pytest.mark.parametrize(
    ("relation", "by", "share", "expected"),
    [
        ("higher", None, 0.05, "holds"),
        ("higher", None, -0.05, "fails"),
        ("higher", "2%", 0.05, "holds"),
        ("higher", "10%", 0.05, "fails"),
        ("lower", None, -0.05, "holds"),
        ("lower", "10%", -0.05, "fails"),
        ("not-lower", None, 0.05, "holds"),
        ("not-lower", None, 0.0, "holds"),
        ("not-lower", None, -0.05, "fails"),
        ("not-lower", "10%", -0.05, "holds"),
        ("not-higher", None, 0.0, "holds"),
        ("not-higher", None, 0.05, "fails"),
        ("within", "5%", 0.01, "holds"),
        ("within", "5%", 0.2, "fails"),
        ("within", "5%", -0.2, "fails"),
    ],
)
def test_relations_of_two_protocols(
    factory: Any, relation: str, by: str | None, share: float, expected: str
) -> None:
    keys: dict[str, Any] = {"relation": relation, **PAIR, **({"by": by} if by else {})}
    assert judge(factory, ahead_by(share), **keys).verdict == expected


@pytest.mark.parametrize(
    ("relation", "value", "spread", "expected"),
    [
        ("at-least", "0.9Mbit/s", 0.01, "holds"),
        ("at-least", "1.2Mbit/s", 0.01, "fails"),
        ("at-most", "1.2Mbit/s", 0.01, "holds"),
        ("at-most", "900kbit/s", 0.01, "fails"),
        ("at-most", "1.02Mbit/s", 0.3, "undecided"),
    ],
)
def test_relations_to_a_value(factory: Any, relation: str, value: str, spread: float, expected: str) -> None:
    verdict = judge(factory, ahead_by(0.0), spread, of="sr", relation=relation, value=value)
    assert verdict.verdict == expected
    assert relation.replace("-", " ") in verdict.detail


@pytest.mark.parametrize(
    ("by", "slope", "expected"),
    [(None, 0.0, "holds"), (None, 2.0, "fails"), (None, -2.0, "fails"), ("30%", 2.0, "holds")],
)
def test_flatness_along_a_sweep(factory: Any, by: str | None, slope: float, expected: str) -> None:
    def truth(cell: Cell) -> float:
        return 1e6 * (1 + slope * loss_of(cell))

    margin = {"by": by} if by else {}
    keys: dict[str, Any] = {"of": "sr", "relation": "flat-with", "along": "path.loss", **margin}
    assert judge(factory, truth, **keys).verdict == expected


def test_differences_within_noise_are_undecided(factory: Any) -> None:
    assert judge(factory, ahead_by(0.01), spread=0.3, relation="higher", **PAIR).verdict == "undecided"
    # The noise does not exclude a disadvantage of 5 %.
    assert judge(factory, ahead_by(0.0), spread=0.5, relation="not-lower", **PAIR).verdict == "undecided"


def test_equal_is_not_higher_and_not_lower(factory: Any) -> None:
    assert judge(factory, ahead_by(0.0), spread=0.0, relation="higher", **PAIR).verdict == "fails"
    assert judge(factory, ahead_by(0.0), spread=0.0, relation="not-lower", **PAIR).verdict == "holds"


@pytest.mark.parametrize("repeats", [1, 2])
def test_too_few_trials_are_undecided(factory: Any, repeats: int) -> None:
    verdict = judge(factory, ahead_by(0.5), repeats=repeats, relation="higher", **PAIR)
    assert verdict.verdict == "undecided"
    assert "--repeats" in verdict.detail


def test_one_failing_cell_fails_the_claim_and_is_named(factory: Any) -> None:
    def truth(cell: Cell) -> float:
        share = -0.1 if cell.params["path.loss"] == "6%" else 0.1
        return 1e6 * (1 + share if cell.protocol == "sr" else 1.0)

    verdict = judge(factory, truth, relation="higher", **PAIR)
    assert verdict.verdict == "fails"
    assert "in 1 of 6 cells" in verdict.detail
    assert "path.loss = 6%" in verdict.detail
    kept = judge(factory, truth, relation="higher", where={"path.loss": ">=8%"}, **PAIR)
    assert kept.verdict == "holds"
    assert "in both cells" in kept.detail


@pytest.mark.slow
def test_many_equal_cells_rarely_fail_by_chance(factory: Any) -> None:
    failed = 0
    for seed in range(60):
        study = factory.study(
            {"worlds": ["sim"], "claims": [claim(relation="not-lower", **PAIR)], "reported": []}
        )
        records = factory.records(study, lambda _: 1e6, 0.02, seed=seed)
        results = factory.results(records, sweep.cells(study))
        (verdict,) = factory.verdicts(study, results)
        failed += verdict.verdict == "fails"
    # 2.5 % (one side of 5 %) for the family of six cells, not per cell.
    assert failed <= 5


def rising(cell: Cell) -> float:
    return 1e6 * (1 + loss_of(cell))


def falling(cell: Cell) -> float:
    return 1e6 * (1 - loss_of(cell))


def flattening(cell: Cell) -> float:
    return 1e6 * (1 + min(loss_of(cell), 0.04))


def bent(cell: Cell) -> float:
    return 1e6 * (1.2 if cell.params["path.loss"] == "4%" else 1 + loss_of(cell))


def lead_grows(cell: Cell) -> float:
    return falling(cell) * (1 + loss_of(cell) if cell.protocol == "sr" else 1.0)


@pytest.mark.parametrize(
    ("relation", "truth", "extra", "expected"),
    [
        ("rises-with", rising, {}, "holds"),
        ("rises-with", falling, {}, "fails"),
        ("rises-with", bent, {}, "fails"),
        ("rises-with", rising, {"by": "5%"}, "holds"),
        ("rises-with", rising, {"by": "50%"}, "fails"),
        ("falls-with", falling, {}, "holds"),
        ("falls-with", rising, {}, "fails"),
        ("flat-after", flattening, {"after": "4%", "by": "2%"}, "holds"),
        ("flat-after", rising, {"after": "0%", "by": "2%"}, "fails"),
        ("flat-after", falling, {"after": "0%", "by": "2%"}, "holds"),
        ("lead-rises-with", lead_grows, {"against": "gbn"}, "holds"),
        ("lead-falls-with", lead_grows, {"against": "gbn"}, "fails"),
        ("lead-rises-with", falling, {"against": "gbn"}, "undecided"),
    ],
)
def test_trends(factory: Any, relation: str, truth: Any, extra: dict[str, Any], expected: str) -> None:
    verdict = judge(factory, truth, spread=0.004, of="sr", relation=relation, along="path.loss", **extra)
    assert verdict.verdict == expected, verdict.detail


def test_a_trend_has_one_line_with_its_numbers(factory: Any) -> None:
    verdict = judge(factory, rising, spread=0.0, of="sr", relation="rises-with", along="path.loss")
    assert verdict.detail == (
        "from path.loss 0% to 10%, goodput: sr 1.00 Mbit/s to 1.10 Mbit/s, ×1.10 (n=20, all equal)"  # noqa: RUF001
    )


def test_claims_against_theory(factory: Any) -> None:
    keys: dict[str, Any] = {"of": "stop-and-wait", "against": "theory", "relation": "within", "by": "3%"}
    assert judge(factory, factory.by_theory, **keys).verdict == "holds"
    verdict = judge(factory, lambda cell: factory.by_theory(cell) * 1.2, **keys)
    assert verdict.verdict == "fails"
    assert "theory" in verdict.detail


def test_each_world_has_its_verdict(factory: Any) -> None:
    def truth(cell: Cell) -> float:
        return 1e6 * (1.1 if (cell.protocol == "sr") == (cell.world == "sim") else 1.0)

    study = factory.study({"claims": [claim(relation="higher", **PAIR)], "reported": []})
    assert [(v.world, v.verdict) for v in factory.run(study, truth).claims] == [
        ("sim", "holds"),
        ("relay", "fails"),
    ]
    study = factory.study({"claims": [claim(relation="higher", world="relay", **PAIR)], "reported": []})
    assert [(v.world, v.verdict) for v in factory.run(study, truth).claims] == [("relay", "fails")]


def test_failed_trials_are_counted_in_the_detail(factory: Any) -> None:
    study = factory.study({"claims": [claim(relation="higher", **PAIR)]})
    _, relay = factory.run(study, ahead_by(0.1), failures=2).claims
    assert relay.verdict == "holds"
    assert "n=18, paired, 2 failed" in relay.detail


def test_a_run_without_the_claims_cells_is_undecided(factory: Any) -> None:
    study = factory.study({"claims": [claim(relation="higher", where={"path.loss": "10%"}, **PAIR)]})
    run = factory.run(study, ahead_by(0.1))
    some = [cell for cell in run.cells if cell.cell.params["path.loss"] != "10%"]
    assert [v.verdict for v in factory.verdicts(study, some)] == ["undecided", "undecided"]
    assert "no cells" in factory.verdicts(study, some)[0].detail
    only_sim = [cell for cell in run.cells if cell.cell.world == "sim"]
    study = factory.study({"claims": [claim(relation="higher", world="relay", **PAIR)]})
    (verdict,) = factory.verdicts(study, only_sim)
    assert (verdict.verdict, verdict.world) == ("undecided", "relay")


def test_zero_counters_are_compared(factory: Any) -> None:
    study = factory.study(
        {"worlds": ["sim"], "claims": [claim(relation="lower", **PAIR) | {"metric": "timeouts"}]}
    )
    run = factory.run(study)
    for cell in run.cells:
        cell.samples["timeouts"] = [0.0] * 20 if cell.cell.protocol == "gbn" else [5.0] * 20
    (verdict,) = factory.verdicts(study, run.cells)
    assert verdict.verdict == "fails"


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"relation": "higher", **PAIR, "where": {"path.loss": ">=40%"}}, "matches no cell"),
        ({"relation": "higher", "of": "sr", "against": "sr"}, "name another"),
        (
            {"relation": "rises-with", "of": "sr", "along": "path.loss", "where": {"path.loss": "2%"}},
            "one point",
        ),
        ({"relation": "flat-after", "of": "sr", "along": "path.loss", "after": "10%"}, "before the last one"),
        ({"relation": "flat-after", "of": "sr", "along": "path.loss", "after": "3%"}, "before the last one"),
        ({"relation": "higher", **PAIR, "world": "relay"}, "not a world of this study"),
        ({"relation": "higher", "of": "sr", "against": "theory", "metric": "timeouts"}, "not predicted"),
    ],
)
def test_claims_that_no_run_can_decide_are_problems(factory: Any, keys: dict[str, Any], message: str) -> None:
    study = factory.study({"worlds": ["sim"], "claims": [claim(**keys)]})
    (problem,) = check(study)
    assert message in problem.message
    assert problem.key.startswith("claims[c].")


def test_a_claim_against_theory_needs_a_closed_form(factory: Any) -> None:
    jittery = {"path": {"rate": "100Mbit/s", "delay": "5ms", "jitter": "1ms"}}
    keys = {"relation": "within", "by": "2%", "of": "sr", "against": "theory"}
    (problem,) = check(factory.study({"worlds": ["sim"], "claims": [claim(**keys)], **jittery}))
    assert "jitter" in problem.message
    assert problem.message.endswith("no cell of this claim has one")
    assert problem.key == "claims[c].against", "there is no where"


def test_an_adaptive_timer_without_a_form_leads_to_a_fixed_one(factory: Any) -> None:
    path = {"rate": "10Mbit/s", "delay": "5ms", "queue": "100pkt", "loss": "1%"}
    keys = {"relation": "within", "by": "5%", "of": "sr", "against": "theory"}

    def problems(**rto: str) -> list[Problem]:
        sr = {"name": "sr", "kind": "selective-repeat", "window": 10, **rto}
        changes = {"path": path, "sweep": {}, "protocols": [sr], "reported": []}
        return check(factory.study({"worlds": ["sim"], "claims": [claim(**keys)], **changes}))

    (problem,) = problems(rto="adaptive", min_rto="1ms")
    assert problem.key == "claims[c].against"
    assert problem.message.startswith("sr: no closed form: the adaptive timer depends on the queue")
    assert "a fixed rto has one" in problem.message
    assert problems(rto="200ms") == []


@pytest.mark.parametrize(
    ("relation", "hint"),
    [
        ("higher", 'relation = "at-least", value = 1'),
        ("lower", 'relation = "at-most", value = 1'),
        ("within", 'relation = "near", value = 1, by = "5%"'),
    ],
)
def test_a_metric_as_the_other_side_leads_to_a_ratio(factory: Any, relation: str, hint: str) -> None:
    """Such as that of another host: both sides of a claim have the same metric."""
    by = {"by": "5%"} if relation == "within" else {}
    keys = {"metric": "goodput@s1", "of": "sr", "against": "goodput@s2", "relation": relation, **by}
    (problem,) = claim_problems(factory.study({"claims": [claim(**keys)], "reported": []}))
    assert problem.key == "claims[c].against"
    assert problem.message.startswith('"goodput@s2" is a metric, not a protocol; ')
    assert '[metrics] ratio = "goodput@s1 / goodput@s2"' in problem.message
    assert problem.message.endswith(hint)


def test_a_claim_against_theory_names_cells_with_a_closed_form(factory: Any) -> None:
    keys = {"relation": "within", "by": "2%", "of": "sr", "against": "theory"}
    periodic = {"label": "periodic", "value": {"kind": "every", "every": 50}}
    sweep = {"sweep": {"path.loss": [periodic, "2%"]}, "reported": []}
    (problem,) = check(factory.study({"worlds": ["sim"], "claims": [claim(**keys)], **sweep}))
    assert problem.message.startswith("path.loss = periodic")
    assert problem.message.endswith('select cells with one, e.g. where = { "path.loss" = "2%" }')


def test_a_trend_follows_labelled_values(factory: Any) -> None:
    points = [{"label": "much", "value": "4%"}, {"label": "none", "value": "0%"}, "2%"]
    keys = {"relation": "falls-with", "of": "sr", "along": "path.loss"}
    study = factory.study(
        {"worlds": ["sim"], "sweep": {"path.loss": points}, "claims": [claim(**keys)], "reported": []}
    )
    assert check(study) == []
    values = {"none": 3.0, "2%": 2.0, "much": 1.0}
    falling = factory.run(study, lambda cell: values[cell.params["path.loss"]] * 1e6, spread=0.0)
    (verdict,) = falling.claims
    assert verdict.verdict == "holds", verdict.detail
    assert "path.loss none to much" in verdict.detail


def test_a_metric_of_a_size_class_needs_classes(factory: Any) -> None:
    (problem,) = claim_problems(factory.study({"show": ["fct_p50@G0"], "claims": [], "reported": []}))
    assert "set workload.classes" in problem.message


def test_good_claims_have_no_problems(factory: Any) -> None:
    assert check(factory.study()) == []


def test_a_sweep_of_one_protocol_is_compared_with_the_others(factory: Any) -> None:
    sweep = {"protocols.sr.window": [4, 8], "path.loss": ["2%", "4%"]}
    study = factory.study(
        {"worlds": ["sim"], "sweep": sweep, "claims": [claim(relation="higher", **PAIR)], "reported": []}
    )
    (verdict,) = factory.run(study, ahead_by(0.1)).claims
    assert verdict.verdict == "holds"
    assert "in all 4 cells" in verdict.detail


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"relation": "higher", **PAIR}, "goodput: sr 1.10 Mbit/s, gbn 1.00 Mbit/s, ×1.10"),  # noqa: RUF001
        ({"relation": "at-least", "of": "gbn", "value": "0.5Mbit/s"}, "goodput: gbn 1.00 Mbit/s, claimed"),
        ({"relation": "flat-with", "of": "gbn", "along": "path.loss"}, "goodput: gbn 1.00 Mbit/s to 1.00"),
        (
            {"relation": "agrees-with", "of": "sr", "against": "relay", "by": "5%"},
            "goodput: sim 1.10 Mbit/s, relay 1.10 Mbit/s, ×1.00",  # noqa: RUF001
        ),
    ],
)
def test_a_verdict_names_its_metric_both_values_and_n(
    factory: Any, keys: dict[str, Any], expected: str
) -> None:
    study = factory.study({"claims": [claim(**keys)], "reported": []})
    verdict = factory.run(study, ahead_by(0.1), spread=0.0).claims[0]
    assert expected in verdict.detail
    assert verdict.detail.endswith("(n=20, all equal)")
    random = factory.run(study, ahead_by(0.1), spread=0.001).claims[0]
    assert random.detail.endswith("(n=20)" if "value" in keys else "(n=20, paired)")
