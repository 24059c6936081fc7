"""Interventions in exports: the study file and the Python program simulate what the page does."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.browser import Browser
from tests.explorer.driver import CLOCK, MESSAGE, Explorer, click, drop, saved, scene
from tests.explorer.test_engine import Engine
from tests.explorer.test_networks import REQUESTS

from longfat import _native
from longfat.study import load_study
from longfat.study.sweep import cells

pytestmark = pytest.mark.slow

CHANGES: list[dict[str, Any]] = [
    {"at": 0.1, "do": "change", "key": "rate", "value": "5Mbit/s"},
    {"at": 0.15, "do": "lose-next", "flow": 0},
    {"at": 0.2, "do": "change-protocol", "world": 0, "name": "bbr"},
    {"at": 0.22, "do": "change", "key": "discipline", "value": "drop-head"},
    {"at": 0.24, "do": "change", "key": "minRto", "value": "300ms"},
    {"at": 0.25, "do": "start-flow", "pair": 0, "size": "50kB"},
    {"at": 0.3, "do": "change", "key": "burst", "value": 3},
    {"at": 0.3, "do": "change", "key": "loss", "value": "2%"},
    {"at": 0.45, "do": "stop-flow", "flow": 0},
]


def requests(page: Browser, until: float) -> list[dict[str, Any]]:
    """Plays a scene from its start, and returns the requests for its first configuration."""
    page.evaluate(REQUESTS)
    click(page, "restart")
    page.wait(f"{CLOCK} === 0 && window.requests.some(r => r.do === 'open')")
    click(page, "play")
    page.wait(f"{CLOCK} > {until}")
    click(page, "play")
    found: list[dict[str, Any]] = page.evaluate("window.requests")
    opened = next(place for place, one in enumerate(found) if one["do"] == "open")
    return [{**one, "session": 0} for one in found[opened + 1 :] if one["do"] not in ("finish", "open")]


def record(spec: dict[str, Any], played: list[dict[str, Any]], until: float) -> Any:
    """The record of a session of the page at a time: its interventions between steps."""
    engine = Engine()
    assert engine.ask(do="open", spec=spec, interval=0.01)["session"] == 0
    now = 0.0
    for one in played:
        if one["do"] == "advance":
            now = engine.ask(**{**one, "step": max(1e-9, min(one["step"], until - now))})["now_s"]
        else:
            engine.ask(**one)
        if now >= until - 1e-9:
            break
    return engine.ask(do="finish", session=0)


def specs(study: Path) -> dict[str, dict[str, Any]]:
    loaded = load_study(study)
    return {cell.protocol: {**cell.spec, "seed": loaded.seed, "trial": 0} for cell in reversed(cells(loaded))}


def test_the_program_repeats_all_interventions(explorer: Explorer, tmp_path: Path) -> None:
    page = explorer.start(worlds=["reno"], ecn="on", discipline="codel", interventions=CHANGES)
    program = saved(page, "python")["scene.py"].decode()
    study = saved(page, "toml")["study.toml"].decode()
    message = page.evaluate(MESSAGE)
    assert "minimum RTO 300ms (at 0.24 s); loss burst 3 (at 0.3 s); 2 more." in message
    assert "The Python program has them." in message
    comment = study.splitlines()[0]
    assert comment.startswith("# Study files cannot express these interventions: rate 5Mbit/s (at 0.1 s); ")
    assert "a flow of 50kB starts" not in comment
    assert tomllib.loads(study)["traffic"] == [
        {
            "name": "flow-2",
            "protocol": {"kind": "tcp", "congestion": "reno", "ecn": True},
            "workload": {"kind": "file", "size": "50kB", "start": "0.25s"},
        }
    ]
    file = tmp_path / "study.toml"
    file.write_text(study)
    (spec,) = specs(file).values()
    played = requests(page, 0.5)
    assert len([one for one in played if one["do"] != "advance"]) == 13

    namespace: dict[str, Any] = {}
    exec(program.replace('session.advance("10s")', 'session.advance("50ms")'), namespace)
    del spec["traffic"]
    metrics = namespace["session"].finish().metrics
    assert len(metrics) > 5
    assert metrics.items() <= record(spec, played, 0.5)["metrics"].items()


def test_the_program_changes_the_configurations_that_a_change_concerns(explorer: Explorer) -> None:
    changes = [
        {"at": 0.1, "do": "change", "key": "window", "value": 4},
        {"at": 0.2, "do": "change", "key": "minRto", "value": "300ms"},
        {"at": 0.3, "do": "change-protocol", "world": 1, "name": "bbr"},
        {"at": 0.4, "do": "change", "key": "minRto", "value": ""},
    ]
    page = explorer.start(worlds=["go-back-n", "reno"], interventions=changes)
    program = saved(page, "python")["scene.py"].decode()
    found = program[program.index("    session.advance(") : program.index("    step = ")]
    assert found.splitlines() == [
        '    session.advance("0.1s")',
        "    if number == 0:",
        "        session.set_protocol(window=4)",
        '    session.advance("0.1s")',
        '    session.set_protocol(min_rto="300ms")',
        '    session.advance("0.1s")',
        "    if number == 1:",
        '        session.set_protocol(congestion="bbr")',
        '    session.advance("0.1s")',
        "    session.set_protocol(min_rto=None)",
    ]
    exec(program.replace('session.advance("10s")', 'session.advance("50ms")'), {})


def test_flows_at_equal_intervals_are_flows_of_the_study(explorer: Explorer, tmp_path: Path) -> None:
    starts = [{"at": at, "do": "start-flow", "pair": 0, "size": ""} for at in (0.2, 0.4)]
    page = explorer.start(worlds=["reno", "cubic"], loss="1%", interventions=starts)
    study = saved(page, "toml")["study.toml"].decode()
    assert page.evaluate(MESSAGE) == ""
    assert not study.startswith("#")
    file = tmp_path / "study.toml"
    file.write_text(study)
    found = specs(file)
    assert set(found) == {"reno", "cubic"}
    for spec in found.values():
        workload = spec.pop("workload")
        alone = {key: value for key, value in workload.items() if key not in ("flows", "stagger")}
        page_spec = {**spec, "workload": {**alone, "duration": "3s"}}
        engine = Engine()
        engine.ask(do="open", spec=page_spec, interval=0.01)
        now = 0.0
        for at in (0.2, 0.4):
            now = engine.ask(do="advance", session=0, step=at - now)["now_s"]
            engine.ask(do="start-flow", session=0, pair=0)
        engine.ask(do="advance", session=0, step=5)
        direct = json.loads(
            _native.simulate(json.dumps({**spec, "workload": {**workload, "duration": "3s"}}))
        )
        assert engine.ask(do="finish", session=0) == direct

    page = explorer.start()
    drop(page, "study.toml", study)
    assert scene(page)["interventions"] == starts


def events(spec: dict[str, Any], starts: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Time, kind and size of the events of 3 s, with flows that start between the steps."""
    engine, found, now = Engine(), [], 0.0
    engine.ask(do="open", spec=spec, interval=0.01)
    for one in (*starts, None):
        step = engine.ask(do="advance", session=0, step=(one["at"] if one else 3) - now)
        found += [(event["time"], event["what"], event.get("size")) for event in step["events"]]
        now = step["now_s"]
        if one:
            size = {"size": one["size"]} if one["size"] else {}
            engine.ask(do="start-flow", session=0, pair=one["pair"], **size)
    return found


def test_traffic_is_flows_that_start(explorer: Explorer, tmp_path: Path) -> None:
    starts = [
        {"at": 0.3, "do": "start-flow", "pair": 1, "size": "50kB"},
        {"at": 0.45, "do": "start-flow", "pair": 0, "size": ""},
    ]
    given = {"worlds": ["reno"], "topology": "dumbbell", "senders": "1ms, 9ms", "interventions": starts}
    page = explorer.start(**given)
    study = saved(page, "toml")["study.toml"].decode()
    assert page.evaluate(MESSAGE) == ""
    hosts = [(one["workload"]["from"], one["workload"]["to"]) for one in tomllib.loads(study)["traffic"]]
    assert hosts == [("s2", "r2"), ("s1", "r1")]
    file = tmp_path / "study.toml"
    file.write_text(study)
    (spec,) = specs(file).values()
    alone = {key: value for key, value in spec.items() if key != "traffic"}
    simulated = events(spec, [])
    assert len(simulated) > 5000
    assert simulated == events(alone, starts)
    page = explorer.start()
    drop(page, "study.toml", study)
    assert "The page measures the flows of traffic too." in page.evaluate(MESSAGE)
    assert scene(page) == given
    # Traffic of another protocol is beside the configuration.
    other = study.replace('congestion = "reno" }, workload', 'congestion = "bbr" }, workload', 1)
    assert other != study
    drop(page, "other.toml", other)
    rival = {"protocol": "bbr", "pair": 1, "size": "50kB", "start": "0.3s", "name": "flow-3"}
    assert scene(page) == {**given, "interventions": starts[1:], "rivals": [rival]}
    drop(page, "wrong.toml", study.replace('to = "r2"', 'to = "r1"'))
    assert "traffic[1].workload.from: the explorer shows traffic of" in page.evaluate(MESSAGE)


def test_several_configurations_leave_other_flows_out(explorer: Explorer) -> None:
    start = {"at": 0.3, "do": "start-flow", "pair": 0, "size": "50kB"}
    page = explorer.start(worlds=["reno", "cubic"], interventions=[start])
    study = saved(page, "toml")["study.toml"].decode()
    assert study.startswith(
        "# Study files cannot express these interventions: a flow of 50kB starts (at 0.3 s)."
    )
    assert "a flow of 50kB starts" in page.evaluate(MESSAGE)
