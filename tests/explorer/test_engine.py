"""The engine behind the page: requests and replies in JSON."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from longfat import _native

SPEC: dict[str, Any] = {
    "path": {"rate": "10Mbit/s", "delay": "20ms", "queue": "20pkt"},
    "protocol": {"kind": "tcp", "congestion": "reno"},
    "workload": {"kind": "bulk", "duration": "60s"},
    "seed": 1,
    "trial": 0,
}


class Engine:
    def __init__(self) -> None:
        self._native = _native.Explorer()

    def reply(self, **request: Any) -> Any:
        return json.loads(self._native.reply(json.dumps(request).encode()))

    def ask(self, **request: Any) -> Any:
        reply = self.reply(**request)
        assert "ok" in reply, reply
        return reply["ok"]

    def open(self) -> int:
        number: int = self.ask(do="open", spec=SPEC, interval=0.01)["session"]
        return number


@pytest.fixture
def engine() -> Engine:
    return Engine()


def test_advances_in_steps(engine: Engine) -> None:
    session = engine.open()
    steps = [engine.ask(do="advance", session=session, step=0.25) for _ in range(2)]
    assert [step["now_s"] for step in steps] == [0.25, 0.5]
    assert steps[0]["events"][0]["frame"] == "syn"
    assert len(steps[1]["series"]["flows"][0]["time"]) == 25


def test_a_step_stops_at_the_requested_event(engine: Engine) -> None:
    session = engine.open()
    for kind, expected in (("drop", ("drop", None)), ("retransmission", ("send", True))):
        step = engine.ask(do="advance", session=session, step=30, until=kind)
        times = [
            event["time"]
            for event in step["events"]
            if (event["what"], event.get("retransmission")) == expected
        ]
        assert times
        assert times[0] <= step["now_s"] <= times[0] + 1e-3


def test_a_step_without_packets_has_the_same_samples_and_losses(engine: Engine) -> None:
    replies = [
        engine.ask(do="advance", session=engine.open(), step=3, detail=detail) for detail in ("all", "losses")
    ]
    assert replies[0]["series"] == replies[1]["series"]
    losses = [
        event
        for event in replies[0]["events"]
        if event["what"] in ("drop", "timeout") or (event["what"] == "send" and event.get("retransmission"))
    ]
    assert losses
    assert replies[1]["events"] == losses


def test_a_link_changes_while_it_runs(engine: Engine) -> None:
    session = engine.open()
    engine.ask(do="advance", session=session, step=1)
    engine.ask(do="link", session=session, link="forward", key="rate", value="1Mbit/s")
    step = engine.ask(do="advance", session=session, step=1)
    received = [
        event
        for event in step["events"]
        if event["what"] == "receive" and event["direction"] == "forward" and event["time"] > 1.5
    ]
    assert 0.9e6 < sum(event["size"] for event in received) * 8 / 0.5 < 1.1e6


def test_a_protocol_changes_for_flows_that_run_and_that_start_later(engine: Engine) -> None:
    session = engine.open()
    engine.ask(do="advance", session=session, step=1)
    fixed = {"kind": "fixed", "window": 4}
    engine.ask(do="protocol", session=session, key="congestion", value=fixed)
    assert engine.ask(do="start-flow", session=session) == 1
    step = engine.ask(do="advance", session=session, step=1)
    assert [flow["cwnd_bytes"][-1] for flow in step["series"]["flows"]] == [4 * 1448] * 2
    error = engine.reply(do="protocol", session=session, key="window", value=3)["error"]
    assert error.startswith("window: unknown key: ")


def test_packets_that_move_to_another_discipline_are_reported(engine: Engine) -> None:
    session = engine.open()
    step = engine.ask(do="advance", session=session, step=2, links=True)
    sent = step["crossings"]["sent"]
    waiting = [[id_, link] for id_, link, start, *_ in sent if link == 0 and start > step["now_s"]]
    assert len(waiting) > 3
    engine.ask(do="link", session=session, link="forward", key="queue", value="codel")
    moved = engine.ask(do="advance", session=session, step=1, links=True)["crossings"]
    assert moved["requeued"] == waiting
    assert {id_ for id_, _ in waiting} <= {one[0] for one in moved["sent"]}


@pytest.mark.parametrize("discipline", ["drop-tail", "drop-head", "red", "codel", "fq-codel", "pie", "cake"])
def test_crossings_are_those_of_the_queue(engine: Engine, discipline: str) -> None:
    queue = {"kind": discipline, "limit": "30pkt"}
    spec = {**SPEC, "path": {**SPEC["path"], "queue": queue}, "workload": {**SPEC["workload"], "flows": 3}}
    session = engine.ask(do="open", spec=spec, interval=0.01)["session"]
    step = engine.ask(do="advance", session=session, step=2, links=True)
    entered = {id_: time for id_, link, time in step["crossings"]["entered"] if link == 0}
    sent = sorted(
        (start, end, arrival, id_)
        for id_, link, start, end, arrival in step["crossings"]["sent"]
        if link == 0
    )
    assert len(sent) > 500
    assert all(entered[id_] <= start < end < arrival for start, end, arrival, id_ in sent)
    assert all(before[1] <= after[0] + 1e-9 for before, after in pairwise(sent)), "one at a time"
    received = {event["id"]: event["time"] for event in step["events"] if event["what"] == "receive"}
    arrived = [(received[id_], arrival) for _, _, arrival, id_ in sent if id_ in received]
    assert len(arrived) > 500
    assert all(time == expected for time, expected in arrived)
    assert "crossings" not in engine.ask(do="advance", session=session, step=0.1)


def test_packets_are_lost_on_request_and_flows_start_and_stop(engine: Engine) -> None:
    session = engine.open()
    step = engine.ask(do="advance", session=session, step=0.2, links=True)
    id_ = next(sent[0] for sent in step["crossings"]["sent"] if sent[1] == 0 and sent[4] > 0.2)
    engine.ask(do="lose", session=session, id=id_)
    engine.ask(do="lose-next", session=session, flow=0, reverse=True)
    assert engine.ask(do="start-flow", session=session, size="10kB") == 1
    engine.ask(do="stop-flow", session=session, flow=0)
    step = engine.ask(do="advance", session=session, step=5)
    lost = [event for event in step["events"] if event.get("reason") == "request"]
    assert id_ in [event["id"] for event in lost]
    assert sorted(event["direction"] for event in lost) == ["forward", "reverse"]
    read = [
        event["delivered"] for event in step["events"] if event["what"] == "deliver" and event["flow"] == 1
    ]
    assert read[-1] == 10_000
    for request in (
        {"do": "stop-flow", "flow": 0},
        {"do": "lose", "id": id_},
        {"do": "start-flow", "pair": 3},
    ):
        assert "error" in engine.reply(session=session, **request), request


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"do": "advance", "session": 9, "step": 1}, "no such session"),
        ({"do": "advance", "session": 0, "step": -1}, "step: -1 s is out of range"),
        ({"do": "advance", "session": 0, "step": 1e9}, "step: 1000000000 s is out of range"),
        ({"do": "open", "spec": {}, "interval": 0.01}, "protocol: the key is missing"),
        ({"do": "dance"}, "unknown variant `dance`"),
    ],
)
def test_mistakes_have_a_message(engine: Engine, request_: dict[str, Any], message: str) -> None:
    engine.open()
    assert message in engine.reply(**request_)["error"]
