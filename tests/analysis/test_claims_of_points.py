"""Claims about published values, about another point of the sweep, and about some of the cells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import longfat as lf
from longfat.study import Overrides, StudyError, load_study, selection, sweep

Data = dict[str, Any]
QUEUES = ["1BDP", "4BDP", {"label": "fq_codel", "value": {"kind": "fq-codel"}}]


def study(*claims: Data) -> Data:
    whole = [{"id": f"c{number}", "text": "t", "of": "cubic", **claim} for number, claim in enumerate(claims)]
    return {
        "title": "Queues",
        "repeats": 3,
        "path": {"rate": "20Mbit/s", "delay": "20ms"},
        "workload": {"kind": "bulk", "duration": "4s", "warm_up": "1s", "start_jitter": "80ms"},
        "protocols": ["cubic", "reno"],
        "sweep": {"path.queue": QUEUES},
        "claims": whole,
    }


def verdicts(folder: Path, *claims: Data) -> list[str]:
    return [f"{one.verdict}: {one.detail}" for one in lf.run(study(*claims), out=folder).claims]


def queue(name: str) -> Data:
    return {"path.queue": name}


def test_a_point_is_compared_with_another_one(tmp_path: Path) -> None:
    rtt = {"metric": "rtt_p50", "where": queue("fq_codel"), "against_where": queue("4BDP")}
    below, above, other = verdicts(
        tmp_path,
        {**rtt, "relation": "lower", "by": "40%"},
        {**rtt, "relation": "higher"},
        {**rtt, "relation": "lower", "against": "reno"},
    )
    assert below.startswith("holds: at path.queue = fq_codel, RTT, median: cubic 4")
    assert "cubic at path.queue 4BDP 1" in below
    assert above.startswith("fails")
    assert other.startswith("holds")
    assert "reno at path.queue 4BDP" in other


def test_every_matching_point_is_compared(tmp_path: Path) -> None:
    [found] = verdicts(
        tmp_path, {"metric": "rtt_p50", "relation": "not-higher", "against_where": queue("4BDP")}
    )
    # Without the point itself.
    assert found.startswith("holds: in both cells")


@pytest.mark.parametrize(
    ("value", "by", "verdict"),
    [
        ("19Mbit/s", "5%", "holds"),
        ("25Mbit/s", "5%", "fails"),
        ("15Mbit/s", "5%", "fails"),
        ("25Mbit/s", "40%", "holds"),
    ],
)
@pytest.mark.slow
def test_a_published_value_has_a_tolerance(tmp_path: Path, value: str, by: str, verdict: str) -> None:
    claim = {"metric": "goodput", "relation": "near", "value": value, "by": by, "where": queue("4BDP")}
    [found] = verdicts(tmp_path, claim)
    assert found.startswith(verdict)
    assert f"claimed within {by} of {value.removesuffix('Mbit/s')}.0 Mbit/s" in found


@pytest.mark.parametrize(
    ("cells", "verdict"),
    [(2, "holds: in 2 of 3"), ("60%", "holds: in 2 of 3"), (3, "fails"), (99, "fails"), (None, "fails")],
)
@pytest.mark.slow
def test_a_claim_can_except_cells(tmp_path: Path, cells: object, verdict: str) -> None:
    claim = {"metric": "rtt_p50", "relation": "at-most", "value": "100ms"}
    [found] = verdicts(tmp_path, claim if cells is None else {**claim, "cells": cells})
    assert found.startswith(verdict)


def test_a_quick_run_keeps_both_points() -> None:
    several = study(
        {"metric": "rtt_p50", "relation": "lower", "where": queue("8BDP"), "against_where": queue("2BDP")}
    )
    several["sweep"] = queue([f"{n}BDP" for n in range(1, 40)])  # type: ignore[arg-type]
    several["path"] |= {"rate": "1Gbit/s"}
    several["workload"] |= {"duration": "1000s"}
    found = load_study(several, Overrides(quick=True))
    assert {"2BDP", "8BDP"} < set(found.sweep["path.queue"])
    assert len(found.sweep["path.queue"]) < 39


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        ({"relation": "near", "value": "1Mbit/s"}, 'relation "near" requires the key "by"'),
        (
            {"relation": "at-most", "value": "1Mbit/s", "against_where": queue("1BDP")},
            'does not use the key "against_where"',
        ),
        (
            {"relation": "lower", "against_where": {"path.queu": "1BDP"}},
            '"path.queu" is neither swept nor set; did you mean',
        ),
        (
            {"relation": "lower", "against_where": queue("9BDP")},
            r"claims\[c0\]\.against_where: matches no cell",
        ),
        (
            {"relation": "lower", "where": queue("9BDP"), "against_where": queue("4BDP")},
            r"claims\[c0\]\.where: matches no cell",
        ),
        ({"relation": "rises-with", "along": "path.queue", "cells": 2}, 'remove the key "cells"'),
        ({"relation": "at-most", "value": "1Mbit/s", "cells": "0%"}, "must be above 0%"),
        ({"relation": "at-most", "value": "1Mbit/s", "cells": 0}, "0 is too small: at least 1"),
    ],
)
def test_wrong_claims_have_one_line(claim: Data, message: str) -> None:
    with pytest.raises(StudyError, match=message) as error:
        load_study(study({"metric": "goodput", **claim}))
    assert "\n" not in str(error.value)


PATHS = [["5Mbit/s", "10ms", "1BDP"], ["10Mbit/s", "40ms", "2BDP"], ["20Mbit/s", "5ms", "1BDP"]]
TOGETHER = "path.rate, path.delay, path.queue"


def paths(claim: Data, points: list[Any] = PATHS) -> Data:
    return {**study({"metric": "goodput", **claim}), "sweep": {TOGETHER: points}}


@pytest.mark.parametrize(
    ("where", "cells"),
    [
        ({"path.rate": ">=10Mbit/s"}, 2),
        ({"path.delay": "5ms..10ms"}, 2),
        ({"path.queue": "2BDP"}, 1),
        # 1 BDP of 12.5 and 25 kB, 2 BDP of 200 kB.
        ({"path.queue": ">20kB"}, 2),
        ({TOGETHER: "20Mbit/s, 5ms, 1BDP"}, 1),
    ],
)
def test_conditions_select_by_each_of_several_keys_that_move_together(where: Data, cells: int) -> None:
    loaded = load_study(paths({"relation": "at-least", "value": "1Mbit/s", "where": where}))
    assert len(selection.pairings(loaded.claims[0], "sim", sweep.cells(loaded))) == cells


def test_points_of_keys_that_move_together_are_compared() -> None:
    claim = {"relation": "lower", "where": {"path.rate": "5Mbit/s"}, "against_where": {"path.delay": "5ms"}}
    loaded = load_study(paths(claim))
    [pair] = selection.pairings(loaded.claims[0], "sim", sweep.cells(loaded))
    assert pair.against is not None
    assert (pair.of.value("path.rate"), pair.against.value("path.rate")) == ("5Mbit/s", "20Mbit/s")


def test_a_trend_along_one_of_several_keys_is_ordered_by_it() -> None:
    loaded = load_study(paths({"relation": "rises-with", "along": "path.delay"}))
    [group] = selection.series(
        loaded.claims[0], selection.pairings(loaded.claims[0], "sim", sweep.cells(loaded))
    )
    assert [pair.value("path.rate") for pair in group.points] == ["20Mbit/s", "5Mbit/s", "10Mbit/s"]


def test_a_trend_needs_one_point_for_each_value() -> None:
    twice = [["5Mbit/s", "10ms", "1BDP"], ["10Mbit/s", "10ms", "2BDP"]]
    with pytest.raises(StudyError, match='"10ms" has several points; select one of them with where'):
        load_study(paths({"relation": "rises-with", "along": "path.delay"}, twice))


def test_a_quick_run_keeps_the_points_that_claims_select_by_one_key() -> None:
    points = [[f"{rate}00Mbit/s", "10ms", "1BDP"] for rate in range(1, 12)]
    claim = {"relation": "at-least", "value": "1Mbit/s", "where": {"path.rate": "1Gbit/s"}}
    whole = paths(claim, points)
    whole["workload"]["duration"] = "400s"
    loaded = load_study(whole, Overrides(quick=True))
    rates = {cell.value("path.rate") for cell in sweep.cells(loaded)}
    assert "1000Mbit/s" in rates
    assert len(rates) < 11


def test_conditions_on_keys_that_follow_from_the_sweep() -> None:
    data = {
        **paths({"relation": "at-least", "value": "1Mbit/s", "where": {"workload.flows": 1}}),
        "workload": {"kind": "file", "size": "10BDP", "flows": 1},
    }
    data["claims"].append({**data["claims"][0], "id": "large", "where": {"workload.size": ">=1MB"}})
    loaded = load_study(data)
    found = [len(selection.pairings(claim, "sim", sweep.cells(loaded))) for claim in loaded.claims]
    assert found == [3, 1]
    data["claims"][1]["where"] = {"workload.sise": ">1MB"}
    with pytest.raises(StudyError, match=r'"workload\.sise" is neither swept nor set'):
        load_study(data)


def test_the_best_of_all_protocols_or_values(tmp_path: Path) -> None:
    best, tied, behind, worst, slowest, wide = verdicts(
        tmp_path,
        {"metric": "rtt_p50", "relation": "best", "among": "path.queue", "where": queue("fq_codel")},
        {"metric": "goodput", "relation": "best", "where": queue("4BDP")},
        {"metric": "goodput", "relation": "best", "where": queue("4BDP"), "by": "5%"},
        {"metric": "rtt_p50", "relation": "best", "among": "path.queue", "where": queue("4BDP")},
        {"metric": "rtt_p50", "relation": "highest", "among": "path.queue", "where": queue("4BDP")},
        {"metric": "rtt_p50", "relation": "lowest", "among": "path.queue", "cells": 1},
    )
    # The closest rival has the shorter of the two drop-tail queues.
    assert best.startswith("holds: at path.queue = fq_codel, RTT, median: cubic 4")
    assert "cubic at path.queue 1BDP" in best
    assert "reno" in tied
    assert behind.startswith("holds")
    assert worst.startswith("fails: at path.queue = 4BDP")
    assert "cubic at path.queue fq_codel" in worst
    assert slowest.startswith("holds")
    assert wide.startswith("holds: in 1 of 3 cells")


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        ({"relation": "best", "among": "path.queu"}, r'among: "path\.queu" is not swept; did you mean'),
        ({"relation": "best", "among": "reno"}, r'for protocols, write among = \["reno"\]'),
        ({"relation": "best", "among": ["renoo"]}, '"renoo" is not a protocol of this study; did you mean'),
        ({"relation": "best", "among": ["cubic"]}, "among: has no rival in this study"),
        ({"relation": "best", "against": "reno"}, 'does not use the key "against"'),
        ({"relation": "higher", "against": "reno", "among": "path.queue"}, 'does not use the key "among"'),
        ({"relation": "best", "metric": "excess"}, 'use "highest" or "lowest"'),
    ],
)
def test_wrong_groups_have_one_line(claim: Data, message: str) -> None:
    data = {**study({"metric": "rtt_p50", **claim}), "metrics": {"excess": "rtt_p50 - rtt_min"}}
    with pytest.raises(StudyError, match=message) as error:
        load_study(data)
    assert "\n" not in str(error.value)


def test_the_best_of_the_protocols_of_a_list() -> None:
    data = study({"metric": "goodput", "relation": "highest", "among": ["reno", "cubic"]})
    data["protocols"] = ["cubic", "reno", "vegas"]
    loaded = load_study(data)
    found = selection.pairings(loaded.claims[0], "sim", sweep.cells(loaded))
    assert [pair.against.protocol for pair in found if pair.against] == ["reno"] * 3


@pytest.mark.slow
def test_a_value_is_an_expression_of_each_cell(tmp_path: Path) -> None:
    data = study(
        {"metric": "goodput", "relation": "at-most", "value": "path.rate"},
        {"metric": "goodput", "relation": "at-least", "value": "path.rate"},
        {
            "metric": "queueing_delay_mean",
            "relation": "near",
            "value": "0.1RTT..4RTT",
            "where": queue("4BDP"),
        },
        {
            "metric": "queueing_delay_mean",
            "relation": "near",
            "value": "2RTT..3 * RTT",
            "where": queue("1BDP"),
        },
    )
    data["sweep"]["path.rate"] = ["10Mbit/s", "20Mbit/s"]
    found = [f"{one.verdict}: {one.detail}" for one in lf.run(data, out=tmp_path).claims]
    assert found[0].startswith("holds: in all 6 cells")
    assert found[1].startswith("fails: in 6 of 6 cells")
    assert "path.rate = 10Mbit/s" in found[0] + found[1] or "path.rate = 20Mbit/s" in found[0] + found[1]
    assert "claimed at most" in found[0]
    assert found[2].startswith("holds: in both cells")
    assert "claimed between 4.00 ms and 160 ms" in found[2]
    assert found[3].startswith("fails: in 2 of 2 cells")
    assert "claimed between 80.0 ms and 120 ms" in found[3]


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        (
            {"value": "path.delay * 2", "by": "5%"},
            r'value: "path.delay \* 2" is a duration: goodput is given in bit/s',
        ),
        (
            {"value": "path.rte / 2", "by": "5%"},
            r'"path.rte" is not set in this study; did you mean "path.rate"',
        ),
        ({"value": "path.rate / 0", "by": "5%"}, r'value: "path.rate / 0": division by zero'),
        ({"value": "path.rate..path.rate / 2"}, r"20Mbit/s is above 10Mbit/s: a range ascends"),
        ({"value": "2Mbit/s..1Mbit/s"}, r"2Mbit/s is above 1Mbit/s: a range ascends"),
        ({"value": "1Mbit/s.."}, r'value: "1Mbit/s.." is no range; write e.g. "20ms..30ms"'),
        ({"value": "1Mbit/s..2Mbit/s..3Mbit/s"}, "is no range"),
        ({"value": "1Mbit/s..2Mbit/s", "by": "5%"}, "a range has no tolerance"),
        ({"value": "1Mbit/s..2Mbit/s", "relation": "at-least"}, 'only the relation "near" takes'),
        ({"value": "1Mbit/s"}, 'relation "near" requires the key "by"'),
    ],
)
def test_wrong_values_are_refused(claim: Data, message: str) -> None:
    with pytest.raises(StudyError, match=message) as error:
        load_study(study({"metric": "goodput", "relation": "near"} | claim))
    assert len(str(error.value).splitlines()) == 1
