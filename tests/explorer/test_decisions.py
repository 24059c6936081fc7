"""Decisions of senders: the engine's records, and the sentences about them."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import pytest
from tests.explorer.driver import LOSSES, MESSAGE, Explorer, click
from tests.explorer.test_engine import Engine

pytestmark = pytest.mark.slow

PATH = {"rate": "10Mbit/s", "delay": "20ms", "queue": "20pkt"}
BULK = {"kind": "bulk", "duration": "60s"}


def run(protocol: dict[str, Any], seconds: float, **spec: Any) -> dict[str, Any]:
    engine = Engine()
    whole = {"path": PATH, "workload": BULK, "seed": 1, "protocol": protocol, **spec}
    session = engine.ask(do="open", spec=whole, interval=0.01)["session"]
    step: dict[str, Any] = engine.ask(do="advance", session=session, step=seconds)
    return step


@pytest.mark.parametrize(
    ("recovery", "name"), [("rack-tlp", "rack"), ("sack", "sack"), ("newreno", "newreno")]
)
def test_a_fast_retransmit_has_its_decision(recovery: str, name: str) -> None:
    step = run({"kind": "tcp", "congestion": "reno", "recovery": recovery}, 5)
    decisions = [one for one in step["decisions"] if one["state"] == "recovery"]
    assert decisions
    assert {one["detection"] for one in decisions} == {name}
    sent = {
        event["time"] for event in step["events"] if event["what"] == "send" and event.get("retransmission")
    }
    entered = decisions[0]
    assert entered["time"] in sent
    assert entered["sacked"] >= 1
    # Reno halves its window.
    largest = max(filter(None, step["series"]["flows"][0]["cwnd_bytes"]))
    assert 0.3 * largest < entered["ssthresh_bytes"] <= 0.6 * largest


def test_timeouts_are_those_of_the_events() -> None:
    step = run({"kind": "tcp", "congestion": "cubic"}, 8, path={**PATH, "loss": "15%"})
    expired = [
        event["time"] for event in step["events"] if event["what"] == "timeout" and event["host"] == "sender"
    ]
    counted, before = [], 0
    for one in step["decisions"]:
        if one["timeouts"] > before:
            counted.append(one["time"])
            assert one["state"] == "loss"
        before = one["timeouts"]
    assert len(expired) > 3
    assert counted == expired


def test_the_last_packet_is_repaired_by_a_tail_loss_probe() -> None:
    engine = Engine()
    workload = {"kind": "file", "size": "20kB"}
    spec = {"path": PATH, "workload": workload, "seed": 1, "protocol": {"kind": "tcp", "congestion": "reno"}}
    session = engine.ask(do="open", spec=spec, interval=0.01)["session"]
    steps = (engine.ask(do="advance", session=session, step=0.001) for _ in range(2000))
    last = next(
        event
        for step in steps
        for event in step["events"]
        if event["what"] == "send" and event.get("frame") == "fin"
    )
    engine.ask(do="lose", session=session, id=last["id"])
    step = engine.ask(do="advance", session=session, step=3)
    probe = next(one for one in step["decisions"] if one["probes"] == 1)
    again = [event for event in step["events"] if event["what"] == "send" and event.get("retransmission")]
    assert [event["time"] for event in again] == [probe["time"]]


def phases_of(step: dict[str, Any]) -> list[str]:
    return [phase for phase, _ in groupby(one["phase"] for one in step["decisions"])]


def test_bbr_and_hystart_report_their_phases() -> None:
    phases = phases_of(run({"kind": "tcp", "congestion": "bbr"}, 15))
    assert phases[:2] == ["startup", "drain"]
    assert {"probe-bw-down", "probe-bw-cruise", "probe-bw-refill", "probe-bw-up", "probe-rtt"} <= set(phases)
    cubic = {"kind": "cubic", "hystart": "hystart++"}
    path = {**PATH, "queue": "1000pkt"}
    phases = phases_of(run({"kind": "tcp", "congestion": cubic}, 3, path=path))
    assert phases[:3] == ["slow-start", "conservative-slow-start", "congestion-avoidance"]


def test_multipath_has_decisions_and_samples_of_each_subflow() -> None:
    paths = [PATH, {**PATH, "delay": "40ms"}]
    spec = {"kind": "mptcp", "congestion": "lia"}
    engine = Engine()
    whole = {"topology": {"kind": "multipath", "path": paths}, "workload": BULK, "seed": 1, "protocol": spec}
    session = engine.ask(do="open", spec=whole, interval=0.01)["session"]
    step = engine.ask(do="advance", session=session, step=5)
    assert {one["subflow"] for one in step["decisions"]} == {0, 1}
    (details,) = step["series"]["details"]
    assert sorted(subflow["path"] for subflow in details["subflows"]) == [0, 1]
    assert len(details["early_bytes"]) == len(details["time"]) == 500
    assert max(details["early_bytes"]) > 0
    windows = [sum(pair) for pair in zip(*(s["cwnd_bytes"][-100:] for s in details["subflows"]), strict=True)]
    assert windows == step["series"]["flows"][0]["cwnd_bytes"][-100:]


def test_events_have_sentences_with_windows_and_sources(explorer: Explorer) -> None:
    page = explorer.start(worlds=["reno"], queue="20pkt")
    click(page, "next-retransmission")
    page.wait(f"{LOSSES}.includes('selectively (RACK, RFC 8985, section 6.2): fast retransmit, cwnd = ')")
    assert "ssthresh = " in page.evaluate(LOSSES)
    event = (
        "[...document.querySelectorAll('#events button')].find(b => /Retransmits data/.test(b.textContent))"
    )
    page.evaluate(f"{event}.click()")
    click(page, "play")
    history = "document.querySelector('#history').textContent"
    page.wait(f"{history}.includes('acknowledged cumulatively')")
    text = page.evaluate(history)
    parts = (
        "sent, 1500 bytes",
        "lost: queue",
        "retransmitted: RACK declares it lost (RFC 8985, section 6.2)",
        "leaves the queue of forward after",
        "received",
    )
    places = [text.find(part) for part in parts]
    assert places == sorted(places), text
    assert places[0] >= 0, text
    assert page.evaluate(MESSAGE) == ""


def test_timeouts_of_arq_have_sentences(explorer: Explorer) -> None:
    page = explorer.open(worlds=["go-back-n"], loss="2%", speed=2)
    page.wait(f"{LOSSES}.includes('The retransmission timer expires: window = 32.')")
    page.wait(f"{LOSSES}.includes(': the timer of this packet or of an earlier one expired')")
    page.wait(f"{LOSSES}.includes('A retransmission was unnecessary: the original arrived.')")


def test_phases_of_bbr_have_sentences(explorer: Explorer) -> None:
    page = explorer.open(worlds=["bbr"], speed=5)
    page.wait(f"{LOSSES}.includes('BBR Drain: ') && {LOSSES}.includes('BBR ProbeBW_CRUISE: ')")


def test_multipath_has_charts_of_each_subflow(explorer: Explorer) -> None:
    page = explorer.open(topology="two-paths", worlds=["mptcp-min-rtt"], speed=5)
    page.wait("document.querySelectorAll('#flow-charts .u-title').length === 4")
    titles = page.evaluate("[...document.querySelectorAll('#flow-charts .u-title')].map(t => t.textContent)")
    assert titles == [
        "MPTCP minimum RTT: queue of each bottleneck (packets)",
        "MPTCP minimum RTT: cwnd of each subflow (packets)",
        "MPTCP minimum RTT: RTT of each subflow (ms)",
        "MPTCP minimum RTT: data that waits for earlier data (packets)",
    ]
    page.wait("document.querySelector('#flow-charts').textContent.includes('(path 2)')")


def test_marks_have_sentences(explorer: Explorer) -> None:
    page = explorer.open(worlds=["cubic"], discipline="codel", ecn="on", speed=2)
    page.wait(f"{LOSSES}.includes('The queue marks data')")
    page.wait(f"{LOSSES}.includes('The receiver reports a congestion mark: cwnd = ')")
