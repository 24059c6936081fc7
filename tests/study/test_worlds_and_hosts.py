"""What a world cannot run, and metrics of hosts that do not exist, are errors before the first trial."""

from __future__ import annotations

import json
from typing import Any

import pytest

from longfat import _native
from longfat.study import Overrides, StudyError, load_study, read_setting
from longfat.study.sweep import cells
from longfat.study.worlds import WORLDS

KINDS = ["tcp", "mptcp", "udp", "icmp", "stop-and-wait", "go-back-n", "selective-repeat"]
WORKLOADS: dict[str, dict[str, Any]] = {
    "file": {"kind": "file", "size": "20kB"},
    "bulk": {"kind": "bulk", "duration": "20ms", "rate": "1Mbit/s"},
    "on-off": {"kind": "on-off", "duration": "20ms", "rate": "1Mbit/s"},
    "request-response": {"kind": "request-response", "requests": 2},
    "arrivals": {"kind": "arrivals", "arrivals": "100/s", "duration": "20ms", "size": "2kB"},
}
DUMBBELL = {"kind": "dumbbell", "pairs": 2, "bottleneck": {"rate": "10Mbit/s", "delay": "1ms"}}


def study(kind: str, workload: str, world: str, **more: Any) -> dict[str, Any]:
    return {
        "title": "t",
        "worlds": [world],
        "path": {"rate": "10Mbit/s", "delay": "1ms"},
        "workload": WORKLOADS[workload],
        "protocols": [{"name": "p", "kind": kind}],
        "repeats": 1,
        **more,
    }


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_relay_runs_exactly_what_loads(kind: str, workload: str) -> None:
    data = study(kind, workload, "relay")
    if kind in KINDS[4:] and workload == "file":
        (cell,) = cells(load_study(data))
        text = json.dumps({**cell.spec, "seed": 1})
        assert json.loads(_native.unsupported("relay", text)) == []
        return
    (cell,) = cells(load_study({**data, "worlds": ["sim"]}))
    text = json.dumps({**cell.spec, "seed": 1})
    try:
        _native.check_trial(text)
    except ValueError:
        # No world combines them, which the check of the trials reports.
        return
    with pytest.raises(StudyError) as wrong:
        load_study(data)
    assert len(str(wrong.value).splitlines()) == 1
    assert '"relay" cannot run this study: the relay ' in str(wrong.value)


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("network", ["path", "topology"])
def test_endless_data_needs_time(world: str, network: str) -> None:
    data = study("tcp", "bulk", world, path={}) | {"workload": {"kind": "bulk", "duration": "1s"}}
    if network == "topology":
        del data["path"]
        data["topology"] = {"kind": "dumbbell", "pairs": 1, "bottleneck": {}}
    if world == "netns":
        # Real time advances.
        assert load_study(data).worlds == ["netns"]
        return
    with pytest.raises(StudyError) as wrong:
        load_study(data)
    lines = str(wrong.value).splitlines()
    assert len(lines) == 1
    words = "time never advances in sim" if world == "sim" else "the relay supports"
    assert words in lines[0]


def claim(metric: str) -> dict[str, Any]:
    return {
        "id": "c",
        "text": "c",
        "metric": metric,
        "of": "p",
        "relation": "at-least",
        "value": "1Mbit/s",
    }


@pytest.mark.parametrize(
    ("metric", "hint"),
    [
        ("goodput@s9", 'did you mean "goodput@s2"? allowed: goodput@s1, goodput@s2'),
        ("goodput@s1 / goodput@s2", "allowed: goodput@s1, goodput@s2"),
        ("timeouts@s1", "allowed: goodput@s1, goodput@s2"),
        ("goodput@bottleneck", "allowed: goodput@s1, goodput@s2"),
    ],
)
def test_a_metric_of_a_host_that_does_not_exist(metric: str, hint: str) -> None:
    data = study("tcp", "bulk", "sim", topology=DUMBBELL)
    del data["path"]
    load_study({**data, "show": ["goodput@s1"], "claims": [claim("goodput@s2")]})
    level = claim(metric) | ({"value": 1} if metric.startswith("timeouts") else {})
    for key, changes in (("claims[c].metric", {"claims": [level]}), ("show", {"show": [metric]})):
        with pytest.raises(StudyError) as wrong:
            load_study({**data, **changes})
        lines = str(wrong.value).splitlines()
        assert len(lines) == 1
        assert key in lines[0]
        assert hint in lines[0]


def test_a_path_has_no_metrics_of_hosts() -> None:
    with pytest.raises(StudyError, match="2 to 16 hosts must send"):
        load_study(study("tcp", "bulk", "sim", claims=[claim("goodput@sender")]))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('protocols=["cubic", "reno"]', ["cubic", "reno"]),
        ('protocols={kind="go-back-n", window=8}', ["go-back-n"]),
        ("protocols=vegas", ["vegas"]),
    ],
)
def test_an_option_replaces_all_protocols(text: str, names: list[str]) -> None:
    data = study("tcp", "file", "sim", sweep={"protocols.p.congestion": ["reno", "bbr"]})
    loaded = load_study(data, Overrides((read_setting(text),)))
    assert [entry.name for entry in loaded.protocols] == names


@pytest.mark.parametrize("text", ["protocols=7", "protocols=[7]", "traffic=[[1]]"])
def test_a_wrong_list_of_protocols_names_what_is_allowed(text: str) -> None:
    with pytest.raises(StudyError, match="must be a list of tables; write "):
        load_study(study("tcp", "file", "sim"), Overrides((read_setting(text),)))
