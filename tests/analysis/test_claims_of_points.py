"""Claims about published values, about another point of the sweep, and about some of the cells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import longfat as lf
from longfat.study import Overrides, StudyError, load_study

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
            '"path.queu" is not swept; did you mean',
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
