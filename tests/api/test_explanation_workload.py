"""`explain` simulates the dialogue of a capture: messages with the pauses of both applications."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import longfat as lf
from longfat.analysis.captures.explained import Direction
from longfat.api.explanation_workload import workload, writing_interval_s

TCP = {"kind": "tcp", "congestion": "cubic"}
PATH = {"rate": "20Mbit/s", "delay": "20ms", "queue": "100pkt"}
PAGE = {
    "kind": "web-page",
    "objects": [
        {"size": "30kB", "work": "80ms"},
        {"size": "200kB", "after": 0, "pause": "60ms"},
        {"size": "500kB", "request": "2kB", "after": 1, "work": "30ms"},
        {"size": "5kB", "request": "300kB", "after": 2, "pause": "300ms"},
    ],
}
MESSAGES = [(True, 100), (False, 30_000), (True, 100), (False, 200_000), (True, 2000), (False, 500_000)]
MESSAGES += [(True, 300_000), (False, 5000)]
PAUSES = [0, 80, 60, 0, 0, 30, 300, 0]
REQUESTS = {
    "kind": "request-response",
    "request_size": "200B",
    "response_size": "50kB",
    "requests": 20,
    "think": "100ms",
}


def captured(folder: Path, data: dict[str, Any], side: str, path: dict[str, Any] = PATH) -> lf.Explanation:
    file = folder / f"{side}.pcapng"
    lf.trace(TCP, path, workload=data, pcapng=file, side=side, snap=96, samples=False)  # type: ignore[arg-type]
    return lf.explain(file, trials=4)


def direction(found: lf.Explanation) -> Direction:
    assert found.one is not None
    return found.one


@pytest.mark.parametrize("side", ["sender", "receiver"])
def test_messages_and_pauses_are_those_of_the_applications(tmp_path: Path, side: str) -> None:
    turns = direction(captured(tmp_path, PAGE, side)).connection["turns"]
    assert [(turn["is_client"], turn["bytes"]) for turn in turns] == MESSAGES
    # A packet takes up to 0.6 ms at the bottleneck, and the queue of a window up to a few more.
    assert [1e3 * turn["pause_s"] for turn in turns] == pytest.approx(PAUSES, abs=1.5)


def test_the_sender_of_the_data_opens_the_simulated_connection(tmp_path: Path) -> None:
    one = direction(captured(tmp_path, PAGE, "receiver"))
    assert not one.is_client
    found = workload(one)
    assert found is not None
    sizes = [(each["request"], each["size"]) for each in found["objects"]]
    # The answer to the last message does not belong to its data.
    assert sizes == [("30000B", "100B"), ("200000B", "2000B"), ("500000B", "300000B"), ("5000B", "1B")]
    assert [each["after"] for each in found["objects"][1:]] == [0, 1, 2]


@pytest.mark.parametrize("side", ["sender", "receiver"])
def test_pauses_of_applications_stay_when_the_path_changes(tmp_path: Path, side: str) -> None:
    found = captured(tmp_path, REQUESTS, side).replay
    assert found is not None
    assert found.problem is None
    assert found.simulated is not None
    assert found.simulated.value == pytest.approx(found.captured, rel=0.03)
    changes = {one.name: one.duration.value for one in found.changes}
    if "half the RTT" in changes:
        half = direction(captured(tmp_path, REQUESTS, side, {**PATH, "delay": "10ms"}))
        assert changes["half the RTT"] == pytest.approx(half.document["duration_s"], rel=0.04)
        assert changes["half the RTT"] > 19 * 0.1
    else:
        # At the client, the rate is not known.
        assert "half the RTT" in found.unknown
        assert side == "sender"


@pytest.mark.parametrize("congestion", ["reno", "cubic"])
def test_the_controller_of_messages_is_found(tmp_path: Path, congestion: str) -> None:
    file = tmp_path / "bursts.pcapng"
    data = {**REQUESTS, "request_size": "400kB", "response_size": "100B", "think": "0s", "requests": 30}
    path = {**PATH, "queue": "40pkt"}
    lf.trace({**TCP, "congestion": congestion}, path, workload=data, pcapng=file, snap=96, samples=False)
    found = lf.explain(file, trials=4).replay
    assert found is not None
    assert found.problem is None
    assert found.controller == congestion
    assert found.controllers[congestion] > 0.5


def test_too_many_messages_are_not_simulated(tmp_path: Path) -> None:
    data = {"kind": "request-response", "size": "100B", "requests": 1100}
    found = captured(tmp_path, data, "sender", {**PATH, "delay": "1ms"})
    assert direction(found).connection["turns"] is None
    assert found.replay is not None
    assert found.replay.problem is not None
    assert "more than 1,000" in found.replay.problem


@pytest.mark.parametrize("side", ["sender", "receiver"])
def test_regular_writes_without_answers_do_not_wait_for_the_network(tmp_path: Path, side: str) -> None:
    writes = {"kind": "frames", "size": "20kB", "frame_rate": "10/s", "deadline": "1s", "duration": "8s"}
    found = captured(tmp_path, writes, side, {"rate": "20Mbit/s", "delay": "20ms", "queue": "100pkt"})
    one = direction(found)
    assert max(one.limits, key=one.limits.__getitem__) == "application"
    assert writing_interval_s(one) == pytest.approx(0.1, abs=1e-3)
    assert found.replay is not None
    assert "the application writes every 100 ms" in str(found.replay.problem)
    # A request waits for the answer to the one before.
    assert writing_interval_s(direction(captured(tmp_path, REQUESTS, "sender"))) is None
