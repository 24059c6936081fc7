"""Flows with different protocols in one session, compared with a trace and a record of the same trial."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import cycle
from typing import Any

import pytest
from tests.explorer.test_engine import Engine

import longfat as lf
from longfat import _native
from longfat.analysis.series_arrivals import add_arrivals
from longfat.presentation.trace import frames
from longfat.presentation.trace.drawing import traced
from longfat.study import load_study
from longfat.study.sweep import cells

SECONDS = 3


def sharing() -> dict[str, Any]:
    """The first cell of l4s/sharing: Prague beside CUBIC in DualPI2."""
    study = load_study("l4s/sharing")
    spec = cells(study)[0].spec
    workload = {**spec["workload"], "duration": f"{SECONDS}s"}
    return {**spec, "workload": workload, "seed": study.seed, "trial": 0}


def advanced(engine: Engine, spec: dict[str, Any], lengths: tuple[float, ...]) -> dict[str, Any]:
    """All replies of a whole trial together."""
    session = engine.ask(do="open", spec=spec, interval=0.01)["session"]
    series: dict[str, dict[Any, dict[str, Any]]] = {"flows": {}, "queues": {}, "details": {}}
    whole: dict[str, Any] = {"events": [], "started": [], "sent": [], "decisions": []}
    for step in cycle(lengths):
        reply = engine.ask(do="advance", session=session, step=step, links=True)
        whole["events"] += reply["events"]
        whole["started"] += reply["started"]
        whole["decisions"] += reply["decisions"]
        whole["sent"] += reply["crossings"]["sent"]
        whole.setdefault("entered", []).extend(reply["crossings"]["entered"])
        for kind, known in series.items():
            for one in reply["series"].get(kind, ()):
                into = known.setdefault(one.get("flow", one.get("link")), {})
                joined(into, one)
        if reply["over"]:
            break
    whole["series"] = {kind: list(known.values()) for kind, known in series.items()}
    whole["session"] = session
    return whole


def joined(into: dict[str, Any], more: dict[str, Any]) -> None:
    """Appends the lists of a table of samples to those before."""
    before = len(into.get("time", []))
    for key, value in more.items():
        if isinstance(value, list):
            into.setdefault(key, [None] * before).extend(value)
        elif isinstance(value, dict):
            inner = into.setdefault(key, {})
            for name, column in value.items():
                inner.setdefault(name, [None] * before).extend(column)
        else:
            into[key] = value
    # Columns without any value in a step are not in its reply.
    for columns in (into, into.get("controller", {})):
        for column in columns.values():
            if isinstance(column, list):
                column.extend([None] * (len(into["time"]) - len(column)))


@pytest.mark.slow
def test_events_and_samples_are_those_of_the_trace_and_the_record() -> None:
    engine, spec = Engine(), sharing()
    shown = advanced(engine, spec, (0.25, 0.003, 0.5))
    settings = {"workload.duration": f"{SECONDS}s"}
    trace = lf.trace("prague", study="l4s/sharing", settings=settings, interval="10ms")
    add_arrivals({**shown, "series": {**shown["series"], "interval_s": 0.01}})
    own = traced("prague", "sim", spec, {}, shown)
    assert len(shown["events"]) > 50_000
    assert frames.events([own]).equals(trace.events)
    assert frames.samples([own]).select(trace.samples.columns).equals(trace.samples)
    assert frames.queues([own]).equals(trace.queues)
    assert engine.ask(do="finish", session=shown["session"]) == json.loads(_native.simulate(json.dumps(spec)))


def test_each_flow_has_its_group_and_its_queueing_delay() -> None:
    engine, spec = Engine(), sharing()
    opened = engine.ask(do="open", spec=spec, interval=0.01)
    assert opened["groups"] == [
        {"name": None, "pairs": [["sender", "receiver"]]},
        {"name": "rival", "pairs": [["sender", "receiver"]]},
    ]
    shown = advanced(engine, spec, (0.5,))
    # CUBIC starts at 0, Prague up to 1 s later.
    assert shown["started"] == [{"flow": 0, "group": 1, "pair": 0}, {"flow": 1, "group": 0, "pair": 0}]
    names = {flow["flow"]: flow["name"] for flow in shown["series"]["flows"]}
    assert names == {0: "rival (sender)", 1: "sender"}
    data = {event["id"]: event["flow"] for event in shown["events"] if event.get("length")}
    entered = {id_: time for id_, link, time in shown["entered"] if link == 0}
    waits: dict[tuple[int, int], list[float]] = defaultdict(list)
    for id_, link, start, *_ in shown["sent"]:
        if link == 0 and id_ in data:
            waits[data[id_], round(-(-start // 0.01))].append(start - entered[id_])
    for details in shown["series"]["details"]:
        sampled = zip(details["time"], details["queueing_s"], strict=True)
        found = [(round(time / 0.01), wait) for time, wait in sampled if wait is not None]
        expected = [sum(own) / len(own) for sample, _ in found if (own := waits[details["flow"], sample])]
        assert len(found) > 150
        assert [wait for _, wait in found] == pytest.approx(expected, abs=2e-4)
    means = [sum(filter(None, details["queueing_s"][-100:])) / 100 for details in shown["series"]["details"]]
    # Prague's queue has a threshold of 1 ms, that of CUBIC a target of 5 ms.
    assert means[1] < 0.001 < 0.003 < means[0]


def test_groups_change_and_start_on_their_own() -> None:
    engine = Engine()
    traffic = [{"name": "b", "protocol": {"kind": "tcp", "congestion": "reno"}, "workload": {"kind": "bulk"}}]
    spec = {
        "path": {"rate": "10Mbit/s", "delay": "10ms", "queue": "50pkt"},
        "protocol": {"kind": "selective-repeat", "window": 8},
        "workload": {"kind": "bulk", "duration": "60s"},
        "traffic": traffic,
        "seed": 1,
    }
    session = engine.ask(do="open", spec=spec, interval=0.01)["session"]
    engine.ask(do="advance", session=session, step=0.5)
    assert engine.ask(do="start-flow", session=session, group=1) == 2
    fixed = {"kind": "fixed", "window": 5}
    engine.ask(do="protocol", session=session, group=1, key="congestion", value=fixed)
    engine.ask(do="protocol", session=session, key="window", value=3)
    step = engine.ask(do="advance", session=session, step=1)
    assert step["started"] == [{"flow": 2, "group": 1, "pair": 0}]
    assert [flow["cwnd_bytes"][-1] for flow in step["series"]["flows"]] == [3 * 1024, 5 * 1448, 5 * 1448]
    for request, message in [
        ({"do": "protocol", "group": 2, "key": "window", "value": 3}, "group: 2 is out of range: 0 to 1"),
        ({"do": "start-flow", "group": 9}, "group: 9 is out of range: 0 to 1"),
        ({"do": "start-flow", "group": 1, "pair": 1}, "pair: 1 is out of range: 0 to 0"),
        ({"do": "protocol", "group": 1, "key": "window", "value": 3}, "window: unknown key"),
    ]:
        assert message in engine.reply(session=session, **request)["error"]
