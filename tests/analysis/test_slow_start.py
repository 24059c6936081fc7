"""The model of transfers, compared with the simulator on the same hops and with published closed forms."""

from __future__ import annotations

import json
import math
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import cases

from longfat import _native
from longfat.analysis.theory import slow_start
from longfat.analysis.theory.latency import Hop, train, transit
from longfat.analysis.theory.slow_start import Rules, transfer
from longfat.analysis.transfer_time import Question, answer

NANOSECOND = 1e-9
Rates = list[tuple[int, float]]
"""Mbit/s and ms of each hop."""

PATHS: list[Rates] = [
    [(10, 5)],
    [(10, 5), (2, 7)],
    [(2, 7), (10, 5)],
    [(100, 1), (8, 10), (20, 3), (5, 1), (50, 2)],
]


def _hops(path: Rates) -> tuple[Hop, ...]:
    return tuple(Hop(rate * 1e6, delay * 1e-3) for rate, delay in path)


def _simulated(path: Rates, protocol: dict[str, Any], workload: dict[str, Any]) -> dict[str, Any]:
    nodes = ["a", *(f"r{number}" for number in range(1, len(path))), "b"]
    links = [
        {"from": here, "to": there, "rate": f"{rate}Mbit/s", "delay": f"{delay}ms", "queue": "1000000pkt"}
        for (rate, delay), here, there in zip(path, nodes, nodes[1:], strict=False)
    ]
    topology = {"kind": "free", "hosts": ["a", "b"], "routers": nodes[1:-1], "links": links}
    spec = {"seed": 1, "trial": 0, "topology": topology, "protocol": protocol, "workload": workload}
    record: dict[str, Any] = json.loads(_native.trace(json.dumps(spec)))
    assert record.get("error") is None, record
    return record


def _tcp(**keys: Any) -> dict[str, Any]:
    keys = {"receive_buffer": "500MB", "send_buffer": "500MB", "delayed_ack": "40ms"} | keys
    return {"kind": "tcp", "profile": "rfc", "congestion": "reno", **keys}


@pytest.mark.parametrize("path", PATHS, ids=str)
@pytest.mark.parametrize("size", [100, 1448, 20_000, 1_000_000])
@pytest.mark.parametrize("ack_every", [1, 2])
def test_transfer_time_matches_the_simulator(path: Rates, size: int, ack_every: int) -> None:
    """From opening the connection to the last byte's arrival, to the nanosecond."""
    hops = _hops(path)
    record = _simulated(path, _tcp(ack_every=ack_every), {"kind": "file", "size": f"{size}B"})
    rules = Rules(ack_every=ack_every, quick_acks=1)
    found = answer(Question(hops, hops[::-1], size, protocol="tcp", rules=rules))
    assert found.seconds == pytest.approx(record["metrics"]["fct_mean_s"], abs=len(path) * NANOSECOND, rel=0)


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_datagram_time_matches_the_simulator(path: Rates) -> None:
    """Datagrams that fill the first link."""
    hops, fastest = _hops(path), path[0][0]
    workload = {"kind": "bulk", "rate": f"{fastest}Mbit/s", "duration": "30ms"}
    events = _simulated(path, {"kind": "udp", "mss": "1000B"}, workload)["events"]
    sent = {event["id"]: event for event in events if event["what"] == "send"}
    arrived = [event for event in events if event["what"] == "receive"]
    assert len(arrived) > 1
    first = arrived[0]
    size = first["size"]
    took = first["time"] - sent[first["id"]]["time"]
    assert took == pytest.approx(transit(hops, size), abs=len(path) * NANOSECOND, rel=0)
    # A rate above that of all links, including headers: a packet train.
    for number, event in enumerate(arrived, start=1):
        expected = train(hops, size, number)
        assert event["time"] - sent[first["id"]]["time"] == pytest.approx(
            expected, abs=(len(path) + number) * NANOSECOND, rel=0
        )


@given(
    rates=st.lists(st.floats(1e4, 1e9), min_size=1, max_size=6),
    delays=st.lists(st.floats(0, 0.1), min_size=6, max_size=6),
    count=st.integers(0, 40),
    last=st.integers(1, 1500),
)
def test_a_train_matches_a_simulation_of_each_packet(
    rates: list[float], delays: list[float], count: int, last: int
) -> None:
    hops = [Hop(rate, delay, delay / 7) for rate, delay in zip(rates, delays, strict=False)]
    free, arrived = [0.0] * len(hops), 0.0
    for size in [1500] * count + [last]:
        at = 0.0
        for number, hop in enumerate(hops):
            free[number] = max(at + hop.processing, free[number]) + size * 8 / hop.rate
            at = free[number] + hop.delay
        arrived = at
    assert train(hops, 1500, count, last) == pytest.approx(arrived, rel=1e-9)


@settings(max_examples=cases(160))
@given(
    rate=st.sampled_from([2e6, 1e7, 1e8]),
    delay=st.sampled_from([1e-4, 5e-3, 5e-2]),
    window=st.one_of(st.just(math.inf), st.integers(1448, 100_000).map(float)),
    ack_every=st.integers(1, 3),
    growth=st.sampled_from(["bytes", "acks"]),
    size=st.integers(1, 3_000_000),
)
def test_skipped_turns_do_not_change_the_result(
    rate: float, delay: float, window: float, ack_every: int, growth: str, size: int
) -> None:
    hops = (Hop(rate, delay), Hop(3 * rate, delay / 2))
    rules = Rules(window=window, ack_every=ack_every, growth=growth)
    found = transfer(hops, hops[::-1], size, rules)
    with mock.patch.object(slow_start._Pattern, "found", return_value=(0, 0.0)):
        followed = transfer(hops, hops[::-1], size, rules)
    assert found.seconds == pytest.approx(followed.seconds, rel=1e-9)


@pytest.mark.parametrize(("segments", "window"), [(15, 1), (100, 2), (1000, 1), (7, 10)])
def test_one_link_is_the_closed_form(segments: int, window: int) -> None:
    """Kurose and Ross' form, in which ACKs have no transmission time."""
    size, rate, trip = 1000, 1e6, 0.1
    rules = Rules(segment=960, header=40, ack_every=1, initial_window=window)
    found = transfer((Hop(rate, trip / 2),), (Hop(delay=trip / 2),), segments * 960, rules)
    form = slow_start.one_link(rate, trip, segments, size, window)
    assert found.seconds + trip / 2 == pytest.approx(form, rel=1e-9)


def test_a_window_limits_the_rate() -> None:
    """W / RTT if the window does not fill the path."""
    hops = (Hop(1e9, 0.05),)
    rules = Rules(window=100 * 1448, ack_every=1, initial_window=100)
    found = transfer(hops, hops, 100_000_000, rules)
    trip = transit(hops, 1500) + transit(hops, 52)
    assert 100_000_000 / found.seconds == pytest.approx(100 * 1448 / trip, rel=0.01)


@pytest.mark.parametrize(("segments", "rounds"), [(1, 1), (10, 1), (11, 2), (30, 2), (31, 3), (70, 3)])
def test_rounds_match_the_simulation(segments: int, rounds: int) -> None:
    """On a path with an RTT of one second and fast links, a round takes one second."""
    assert math.ceil(slow_start.rounds(segments, 10) - 1e-9) == rounds
    hops = (Hop(1e12, 0.5),)
    found = transfer(hops, hops, segments * 1448, Rules(ack_every=1))
    assert round(found.seconds - 0.5) == rounds - 1


def test_invalid_parameters_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one segment"):
        transfer((Hop(),), (Hop(),), 10, Rules(window=100))
    with pytest.raises(ValueError, match="above 0"):
        Hop(rate=0)


@pytest.mark.parametrize("path", PATHS, ids=str)
@pytest.mark.parametrize("size", [8, 1000, 1472])
def test_echo_time_matches_the_simulator(path: Rates, size: int) -> None:
    hops = _hops(path)
    sizes = {"request_size": f"{size}B", "response_size": f"{size}B"}
    workload = {"kind": "request-response", "requests": 1, **sizes}
    record = _simulated(path, {"kind": "icmp"}, workload)
    found = answer(Question(hops, hops[::-1], size, protocol="ping"))
    assert found.seconds == pytest.approx(
        record["metrics"]["fct_mean_s"], abs=2 * len(path) * NANOSECOND, rel=0
    )


@pytest.mark.parametrize("path", PATHS, ids=str)
@pytest.mark.parametrize("protocol", ["udp", "tcp"])
def test_transaction_time_matches_the_simulator(path: Rates, protocol: str) -> None:
    hops = _hops(path)
    sizes = {"request_size": "300B", "response_size": "700B"}
    workload = {"kind": "request-response", "requests": 1, "reconnect": True, **sizes}
    kinds = {"udp": {"kind": "udp"}, "tcp": _tcp()}
    record = _simulated(path, kinds[protocol], workload)
    found = answer(Question(hops, hops[::-1], 300, protocol=protocol, reply=700))
    assert found.seconds == pytest.approx(
        record["metrics"]["fct_mean_s"], abs=4 * len(path) * NANOSECOND, rel=0
    )


@pytest.mark.parametrize("path", PATHS, ids=str)
@pytest.mark.parametrize("timestamps", [True, False])
@pytest.mark.parametrize(("protocol", "key"), [("tfo", "fast_open"), ("ttcp", "ttcp")])
def test_early_transaction_time_matches_the_simulator(
    path: Rates, timestamps: bool, protocol: str, key: str
) -> None:
    """The time of the second connection, whose SYN carries the request."""
    hops = _hops(path)
    sizes = {"request_size": "300B", "response_size": "700B"}
    # After the pause, the last ACK of the first connection does not delay the second one.
    workload = {"kind": "request-response", "requests": 2, "reconnect": True, "think": "1s", **sizes}
    record = _simulated(path, _tcp(timestamps=timestamps, **{key: True}), workload)
    rules = Rules() if timestamps else Rules(header=40, syn=52)
    found = answer(Question(hops, hops[::-1], 300, protocol=protocol, reply=700, rules=rules))
    assert found.seconds == pytest.approx(
        record["metrics"]["fct_min_s"], abs=4 * len(path) * NANOSECOND, rel=0
    )
