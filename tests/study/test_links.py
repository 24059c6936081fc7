"""Metrics of links by name, outages and weights, from study files to data frames."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import longfat as lf
from longfat.results.trial import cell_key
from longfat.study import StudyError, cells, load_study, units
from longfat.study.expressions.metrics import derived_metrics
from longfat.study.overrides import Overrides

Data = dict[str, Any]


@pytest.fixture
def fabric() -> Data:
    """Two leaves and two spines, and one transfer at a time in each direction."""
    return {
        "title": "Uplinks",
        "repeats": 3,
        "topology": {
            "kind": "leaf-spine",
            "hosts": 1,
            "access": {"rate": "20Mbit/s", "delay": "100us", "queue": "20pkt"},
        },
        "workload": {"kind": "bulk", "duration": "2s", "from": "h1", "to": "h2"},
        "protocols": ["cubic"],
    }


def claim(metric: str, value: str = "0") -> Data:
    return {"id": "c", "text": "c", "metric": metric, "of": "cubic", "relation": "at-least", "value": value}


def keys(study: Data) -> list[str]:
    loaded = load_study(study)
    return [cell_key(cell, loaded.seed, "0") for cell in cells(loaded)]


def test_named_links_are_measured(fabric: Data, tmp_path: Path) -> None:
    fabric["show"] = ["goodput", "utilisation@uplink/1/1", "throughput@uplink/1/2"]
    fabric["metrics"] = {"whole": "throughput@uplink/1/1 + throughput@uplink/1/2"}
    fabric["claims"] = [claim("queueing_delay_p99@access/1", "0ms")]
    run = lf.run(fabric, out=tmp_path)
    metrics = run.cells[0].metrics
    used = [metrics[f"utilisation@uplink/1/{spine}"].mean for spine in (1, 2)]
    # One pair of hosts takes one of the two uplinks.
    assert sorted(value > 0.5 for value in used) == [False, True]
    assert max(used) == pytest.approx(metrics["utilisation"].mean, rel=0.01)
    assert metrics["whole_bps"].mean == pytest.approx(metrics["throughput_bps"].mean, rel=0.01)
    assert run.claims[0].verdict == "holds"
    frame = run.to_polars()
    assert {"drops_uplink_1_1", "marks_uplink_1_2", "queueing_delay_p99_s_access_1"} <= set(frame.columns)
    assert "drops_uplink_2_1" not in frame.columns
    assert "uplink/1/1" in str(run)


def test_links_change_no_other_metric(fabric: Data, tmp_path: Path) -> None:
    plain = lf.run(fabric, out=tmp_path / "plain").to_polars()
    fabric["show"] = ["goodput", *(f"drops@access/{host}/reverse" for host in (1, 2)), "drops@uplink/2/1"]
    linked = lf.run(fabric, out=tmp_path / "linked").to_polars()
    assert linked.select(plain.columns).equals(plain)
    assert linked.width > plain.width


def test_only_links_that_a_metric_names_change_the_keys(fabric: Data) -> None:
    before = keys(fabric)
    assert all("links" not in cell.spec for cell in cells(load_study(fabric)))
    assert keys({**fabric, "show": ["drops", "utilisation"]}) == before
    named = keys({**fabric, "show": ["drops@uplink/1/1"]})
    assert named != before
    # The metric does not matter, nor where or how often the study names it.
    claimed = {
        **fabric,
        "claims": [claim("utilisation@uplink/1/1")],
        "metrics": {"x": "1 - losses@uplink/1/1"},
    }
    assert keys(claimed) == named


@pytest.mark.parametrize(
    ("where", "start"),
    [
        (
            "show",
            'show: "drops@uplink/1/3" is of a link that this study does not have; did you mean "uplink/1/',
        ),
        ("claims", 'claims[c].metric: "drops@uplink/1/3" is of a link'),
        ("metrics", 'metrics.x: "drops@uplink/1/3" is of a link'),
    ],
)
def test_unknown_links_are_refused(fabric: Data, where: str, start: str) -> None:
    name = "drops@uplink/1/3"
    fabric |= {"show": [name]} if where == "show" else {}
    fabric |= {"claims": [claim(name)]} if where == "claims" else {}
    fabric |= {"metrics": {"x": f"{name} / packets_sent"}} if where == "metrics" else {}
    with pytest.raises(StudyError) as wrong:
        load_study(fabric)
    [line] = str(wrong.value).splitlines()
    assert start in line
    assert "allowed: uplink/1/1, uplink/1/1/reverse, " in line


def test_a_link_must_exist_in_every_cell(fabric: Data) -> None:
    fabric |= {"show": ["drops@uplink/1/2"], "sweep": {"topology.spines": [1, 2]}}
    with pytest.raises(StudyError, match="is of a link that this study does not have"):
        load_study(fabric)
    fabric["show"] = ["drops@uplink/1/1"]
    load_study(fabric)


def test_a_metric_without_a_link_has_an_example(fabric: Data) -> None:
    with pytest.raises(StudyError, match=r'"drops@" has no link; write e.g. "drops@forward"'):
        load_study({**fabric, "claims": [claim("drops@")]})
    # Metrics of flows have hosts.
    with pytest.raises(StudyError, match="host or traffic"):
        load_study({**fabric, "claims": [claim("goodput@uplink/1/1", "1Mbit/s")]})


def test_names_of_links_in_expressions() -> None:
    found = derived_metrics({"x": "drops@uplink/1/2 / packets_sent - losses@a-b.c/reverse*2"})["x"]
    assert found.inputs == ("drops@uplink/1/2", "packets_sent", "losses@a-b.c/reverse")
    # Hosts have no slashes in their names.
    assert derived_metrics({"x": "goodput@s2/goodput@s1"})["x"].inputs == ("goodput_bps@s2", "goodput_bps@s1")


def test_simulate_takes_links() -> None:
    path = lf.Path(rate="10Mbit/s", delay="5ms")
    plain = lf.simulate("cubic", path, "200kB")
    trial = lf.simulate("cubic", path, "200kB", links=["reverse"])
    added = set(trial.metrics) - set(plain.metrics)
    assert "utilisation@reverse" in added
    assert all(name.endswith("@reverse") for name in added)
    assert 0 < trial.metrics["utilisation@reverse"] < trial.metrics["utilisation"]
    with pytest.raises(ValueError, match='links: there is no link "revers": did you mean "reverse"'):
        lf.simulate("cubic", path, "200kB", links=["revers"])


def test_an_outage_costs_its_duration() -> None:
    workload = {"kind": "bulk", "duration": "10s"}
    path = {"rate": "10Mbit/s", "delay": "5ms", "queue": "20pkt"}
    whole = lf.simulate("cubic", path, workload=workload)
    cut = lf.simulate("cubic", {**path, "down": ["2s..4s", "6s..7s"]}, workload=workload)
    assert "outage_drops" not in whole.metrics
    assert cut.metrics["outage_drops"] > 5
    # TCP resumes within an RTO, which doubles during the outage: the pauses take at most 6 s.
    assert 0.4 < cut.goodput_bps / whole.goodput_bps < 0.72


def test_detection_limits_the_losses(fabric: Data, tmp_path: Path) -> None:
    both = ["0.5s..1.5s"]
    fabric["topology"] |= {"down": {"uplink/1/1": both, "uplink/2/1": both}}
    fabric |= {"sweep": {"topology.detection": ["0s", "100ms", "2s"]}, "show": ["goodput", "outage_drops"]}
    # Of both spines, the pair takes one: take the one that fails.
    for spine in (1, 2):
        fabric["topology"]["down"] = {f"uplink/{leaf}/{spine}": both for leaf in (1, 2)}
        run = lf.run(fabric, out=tmp_path / str(spine))
        at_once, later, never = (cell.metrics["goodput_bps"].mean for cell in run.cells)
        if never < 0.8 * at_once:
            drops = [cell.metrics["outage_drops"].mean for cell in run.cells]
            assert drops[0] <= drops[1]
            assert at_once > later > never
            return
    pytest.fail("no outage affects the pair")


@pytest.mark.parametrize(
    ("topology", "message"),
    [
        ({"weights": [1, 0]}, "topology.weights: 0 is out of range: 1 to 65535"),
        ({"weights": [1]}, "topology.weights: the list has 1 numbers, but 2 (one per spine) or 4"),
        ({"down": {"uplink/9/1": ["1s..2s"]}}, 'topology.down: there is no link "uplink/9/1": did you mean'),
        ({"down": {"uplink/1/1": ["1s"]}}, '"1s" is not a time span: write a start and an end'),
        ({"detection": "2"}, "topology.detection"),
        ({"access": {"down": ["2s..1s"]}}, 'topology.access.down: "2s..1s" ends before it starts'),
    ],
)
def test_mistakes_name_their_key(fabric: Data, topology: Data, message: str) -> None:
    fabric["topology"] |= topology
    with pytest.raises(StudyError) as wrong:
        load_study(fabric)
    [line] = str(wrong.value).splitlines()
    assert message in line


def test_weights_choose_the_uplinks() -> None:
    def shares(weights: list[int]) -> list[float]:
        from longfat import _native

        spec = {
            "topology": {
                "kind": "leaf-spine",
                "hosts": 50,
                "access": {"rate": "1Gbit/s"},
                "weights": weights,
            },
            "protocol": {"kind": "tcp"},
            "workload": {"kind": "bulk", "duration": "1s"},
            "seed": 1,
        }
        layout = json.loads(_native.layout(json.dumps(spec)))
        names = [[layout["links"][link]["name"] for link in flow["links"]] for flow in layout["flows"]]
        first = [any(name.startswith(f"uplink/{leaf}/1") for leaf in (1, 2) for name in way) for way in names]
        return [sum(first) / len(first)]

    assert shares([1, 1])[0] == pytest.approx(0.5, abs=0.15)
    assert shares([9, 1])[0] == pytest.approx(0.9, abs=0.1)


def test_a_quick_study_has_its_outages_earlier(fabric: Data) -> None:
    fabric["workload"]["duration"] = "400s"
    fabric["topology"] |= {"down": {"uplink/1/1": ["100s..200s"]}, "access": {"rate": "1Gbit/s", "down": []}}
    quick = load_study(fabric, Overrides(quick=True))
    duration = units.number(quick.workload["duration"])
    assert duration is not None
    assert duration < 400
    assert quick.topology is not None
    [span] = quick.topology["down"]["uplink/1/1"]
    ends = [units.number(end) for end in span.split("..")]
    assert ends == pytest.approx([duration / 4, duration / 2], rel=0.01)
