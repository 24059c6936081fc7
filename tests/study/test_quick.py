"""The cuts of `--quick`, which follow from an estimate of the work, not from measured time."""

from __future__ import annotations

import json
from typing import Any

import pytest

from longfat import _native
from longfat.study import Overrides, Study, builtin, cells, load_study, quick, selection
from longfat.study.vocabulary import canonical
from longfat.study.work import work

Data = dict[str, Any]

PROMISED_S = 30.0
"""What `longfat run --help` says."""

LONG: Data = {
    "title": "A study of hours",
    "repeats": 50,
    "path": {"rate": "1Gbit/s", "delay": "10ms"},
    "workload": {"kind": "bulk", "duration": "100s", "warm_up": "20s", "start_jitter": "1s"},
    "protocols": [{"name": name, "kind": "tcp", "congestion": name} for name in ("reno", "cubic")],
    "sweep": {
        "path.queue": [f"{n}pkt" for n in range(100, 1200, 100)],
        "path.delay": {"from": "10ms", "to": "50ms", "step": "10ms"},
    },
}


def made_quick(data: Data, **others: Any) -> Study:
    return load_study(data, Overrides(quick=True, **others))


@pytest.mark.parametrize("name", builtin())
@pytest.mark.slow
def test_every_built_in_study_is_within_the_budget_and_can_be_decided(name: str) -> None:
    whole, study = load_study(name), load_study(name, Overrides(quick=True))
    assert quick.cost(study) <= min(PROMISED_S, quick.cost(whole))
    for world in whole.worlds:
        alone, cut = (load_study(name, Overrides(worlds=(world,), quick=one)) for one in (False, True))
        assert quick.cost(cut) <= quick.cost(alone)
    for world in study.worlds:
        assert study.trials_in(world) >= min(3, whole.trials_in(world))
    # All claims keep their cells, and all trends their points.
    assert selection.check(study) == []
    assert study.worlds == whole.worlds
    assert bool(study.cuts) == (cells(study) != cells(whole) or study.repeats != whole.repeats)


def test_a_small_study_keeps_its_cells() -> None:
    small = LONG | {"workload": {"kind": "file", "size": "100kB"}, "repeats": 100, "precision": "5%"}
    study = made_quick(small)
    assert len(cells(study)) == len(cells(load_study(small)))
    assert study.workload["size"] == "100kB"
    assert study.cuts == ["no precision of 5%", "20 of 100 trials"]


def test_sweeps_keep_their_ends_and_middle() -> None:
    study = made_quick(LONG)
    assert study.sweep["path.queue"] in (["100pkt", "600pkt", "1100pkt"], ["100pkt", "1100pkt"], ["600pkt"])
    assert "path.delay" in " ".join(study.cuts)
    assert study.trials_in("sim") >= 3


def test_times_shrink_together() -> None:
    study = made_quick(LONG)
    duration = float(str(study.workload["duration"]).removesuffix("ms"))
    assert 1_000 <= duration < 100_000
    assert float(str(study.workload["warm_up"]).removesuffix("ms")) == pytest.approx(duration / 5, abs=1)
    assert float(str(study.workload["start_jitter"]).removesuffix("ms")) == pytest.approx(
        duration / 100, abs=1
    )


def test_values_that_claims_need_stay() -> None:
    of = {"metric": "goodput", "of": "reno", "text": "x"}
    claims = [
        {"id": "one", "relation": "at-least", "value": "1bit/s", "where": {"path.queue": "300pkt"}, **of},
        {"id": "along", "relation": "rises-with", "along": "path.delay", **of},
        {"id": "after", "relation": "flat-after", "along": "path.delay", "after": "20ms", **of},
    ]
    study = made_quick(LONG | {"claims": claims})
    assert "300pkt" in study.sweep["path.queue"]
    assert {"10ms", "20ms", "50ms"} >= set(study.sweep["path.delay"]) >= {"20ms"}
    assert selection.check(study) == []


def test_values_set_by_the_command_line_stay() -> None:
    settings = (("workload.duration", "30s"), ("path.delay", ["10ms", "11ms", "12ms", "13ms"]))
    study = made_quick(LONG, settings=settings, repeats=7)
    assert study.workload["duration"] == "30s"
    assert study.sweep["path.delay"] == ["10ms", "11ms", "12ms", "13ms"]
    assert study.trials_in("sim") == 7


def test_large_files_become_smaller() -> None:
    huge = LONG | {"workload": {"kind": "file", "size": "50GB"}}
    study = made_quick(huge)
    assert float(str(study.workload["size"]).removesuffix("B")) < 5e9
    assert any(cut.startswith("size ") for cut in study.cuts)


@pytest.mark.parametrize("world", ["relay", "netns"])
def test_real_time_worlds_have_three_trials(world: str) -> None:
    protocols = [{"name": "sr", "kind": "selective-repeat", "window": 4}]
    workload = {"kind": "file", "size": "1MB"}
    study = made_quick(LONG | {"worlds": ["sim", world], "workload": workload, "protocols": protocols})
    assert study.trials_in(world) == 3
    # Only wall time is limited; the number of simulated trials stays high.
    assert study.trials_in("sim") == 20


@pytest.mark.parametrize(
    ("changes", "of"),
    [
        ({}, {"congestion": "cubic"}),
        ({"workload": {"kind": "file", "size": "3MB"}}, {"congestion": "reno"}),
        ({"path": {"rate": "20Mbit/s", "delay": "20ms", "loss": "1%"}}, {"congestion": "reno"}),
        ({"workload": {"kind": "arrivals", "arrivals": "50/s", "sizes": "campus", "duration": "5s"}}, {}),
    ],
)
def test_estimates_are_close_to_simulations(changes: Data, of: Data) -> None:
    spec: Data = {
        "path": {"rate": "20Mbit/s", "delay": "20ms"},
        "protocol": {"kind": "tcp", **of},
        "workload": {"kind": "bulk", "duration": "10s"},
        **changes,
    }
    record = json.loads(_native.simulate(canonical({**spec, "seed": 1, "trial": 0})))
    sent = record["metrics"]["packets_sent"] * 1.5
    assert sent / 3 <= work(spec).packets <= 3 * sent


def test_labelled_points_keep_their_values() -> None:
    points = [{"label": f"{n} packets", "value": f"{n}pkt"} for n in range(100, 1200, 100)]
    study = made_quick({**LONG, "sweep": {"path.queue": points}})
    kept = study.sweep["path.queue"]
    assert 0 < len(kept) < len(points)
    assert all(point in points for point in kept)
    queues = {cell.params["path.queue"]: cell.spec["path"]["queue"] for cell in cells(study)}
    assert queues == {point["label"]: point["value"] for point in kept}


def test_file_sizes_shrink_before_trials_become_few() -> None:
    study = load_study("congestion/sharing", Overrides(quick=True))
    assert study.trials_in("sim") == 10
    assert "size" in " ".join(study.cuts)


@pytest.mark.parametrize("loss", ["0%", "2%", "10%"])
def test_the_time_of_set_timeouts_is_estimated(loss: str) -> None:
    spec = {
        "path": {"rate": "10Mbit/s", "loss": loss},
        "protocol": {"kind": "stop-and-wait", "rto": "500ms"},
        "workload": {"kind": "file", "size": "200kB"},
        "seed": 1,
        "trial": 0,
    }
    record = json.loads(_native.simulate(canonical(spec)))
    assert work(spec).seconds == pytest.approx(record["metrics"]["completion_s"], rel=0.5)
