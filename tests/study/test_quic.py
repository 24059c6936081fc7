"""QUIC in studies: errors that name both protocols, settings that worlds refuse, and records that repeat."""

from __future__ import annotations

from typing import Any

import pytest

import longfat as lf
from longfat.study import load_study

PATH = {"rate": "10Mbit/s", "delay": "10ms", "queue": "50pkt", "loss": "1%"}


def study(protocol: dict[str, Any], world: str = "sim") -> lf.Study:
    return load_study(
        {
            "title": "QUIC",
            "worlds": [world],
            "repeats": 2,
            "path": PATH,
            "workload": {"kind": "file", "size": "200kB"},
            "protocols": [{"name": "a", **protocol}],
        }
    )


@pytest.mark.parametrize(
    ("protocol", "message"),
    [
        ({"kind": "quic", "mss": "1460B"}, 'mss: a key of kind "tcp"; "quic" has max_datagram_size'),
        (
            {"kind": "quic", "sack": True},
            'sack: a key of kind "tcp"; remove it: "quic" always acknowledges ranges of packets',
        ),
        ({"kind": "tcp", "idle_timeout": "9s"}, 'idle_timeout: a key of kind "quic"; "tcp" has user_timeout'),
        ({"kind": "quic", "congestion": "quic-bbr3"}, "allowed of QUIC's own: quic-cubic, quic-reno"),
        ({"kind": "quic", "congestion": "prague"}, '"prague" counts marked bytes'),
        (
            {"kind": "quic", "congestion": {"kind": "bbr", "whole_bursts": True}},
            "whole_bursts: has no effect over QUIC",
        ),
        ({"kind": "quic", "max_datagram_size": "999B"}, 'out of range: "1200B" to "65507B"'),
    ],
)
def test_errors_take_one_line(protocol: dict[str, Any], message: str) -> None:
    with pytest.raises(lf.StudyError) as caught:
        study(protocol)
    (line,) = str(caught.value).splitlines()
    assert message in line


@pytest.mark.parametrize("world", ["relay", "netns"])
@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"certificate_chain": "100B"}, '"320B" to "12kB"'),
        ({"zero_rtt": True}, "true has no effect on a single connection"),
        ({"migrate": ["1s"]}, '"address" requires the world sim: .* set "port" or "path"'),
    ],
)
def test_real_sockets_refuse(world: str, keys: dict[str, Any], message: str) -> None:
    with pytest.raises(lf.StudyError, match=message):
        study({"kind": "quic", **keys}, world)


def test_later_requests_take_one_round_trip_with_early_data() -> None:
    def metrics(zero_rtt: bool) -> dict[str, float]:
        path = {"rate": "100Mbit/s", "delay": "20ms"}
        sizes = {"request_size": "400B", "response_size": "300B"}
        requests = {"kind": "request-response", "requests": 4, "reconnect": True, **sizes}
        quic = lf.Quic(zero_rtt=zero_rtt, certificate_chain="700B")
        return lf.simulate(quic, path, workload=requests).metrics

    early, late = metrics(True), metrics(False)
    assert 0.04 < early["fct_min_s"] <= early["fct_p50_s"] < 0.042
    # The first connection has no ticket.
    assert 0.08 < early["fct_p99_s"] < 0.084
    assert 0.08 < late["fct_min_s"] <= late["fct_p99_s"] < 0.084


def test_a_file_arrives_and_repeats() -> None:
    first, second = (lf.simulate(lf.Quic(congestion="cubic"), PATH, "200kB", seed=3) for _ in range(2))
    assert first.metrics == second.metrics
    assert first.metrics["flows_completed"] == 1
    assert first.metrics["retransmissions"] > 0
    assert "timeouts" not in first.metrics


def test_one_stream_has_no_order() -> None:
    with pytest.raises(ValueError, match="remove fair_streams of the protocol"):
        lf.simulate(lf.Quic(fair_streams=True), PATH, "20kB")


PAGE: dict[str, Any] = {
    "kind": "web-page",
    "objects": [{"size": "20kB"}, {"size": "15kB", "count": 20, "after": 0}],
}


@pytest.mark.parametrize("protocol", [lf.Quic(), lf.Quic(fair_streams=True), lf.Tcp(), lf.Mptcp()])
def test_a_page_arrives(protocol: Any) -> None:
    trial = lf.simulate(protocol, PATH, workload=PAGE, seed=3)
    assert trial.metrics["flows_completed"] == 1
    assert 0 < trial.metrics["object_mean_s"] < trial.metrics["fct_mean_s"] < 5


def test_small_objects_pass_a_large_one_in_turns_only() -> None:
    page = {"kind": "web-page", "objects": [{"size": "1MB"}, {"size": "10kB", "count": 20}]}
    path = {"rate": "10Mbit/s", "delay": "10ms"}

    def part(*, fair_streams: bool) -> float:
        protocol = lf.Quic(receive_window="32KiB", fair_streams=fair_streams)
        metrics = lf.simulate(protocol, path, workload=page, seed=1).metrics
        return metrics["object_mean_s"] / metrics["fct_mean_s"]

    assert part(fair_streams=False) > 0.9
    assert part(fair_streams=True) < 0.5


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"objects": []}, "objects: 0 groups with 0 objects are out of range"),
        ({"objects": [{"size": "1kB", "after": 0}]}, "after: must be the number of an earlier group"),
        ({}, "objects: the key is missing"),
        ({"objects": [{"size": "1kB"}], "streams": 2}, 'a workload of kind "web-page" has no such key'),
    ],
)
def test_errors_of_pages_name_the_key(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(lf.StudyError) as caught:
        load_study(
            {
                "title": "page",
                "worlds": ["sim"],
                "path": PATH,
                "workload": {"kind": "web-page", **keys},
                "protocols": [{"name": "a", "kind": "tcp"}],
            }
        )
    assert message in str(caught.value)


FRAMES: dict[str, Any] = {"kind": "frames", "size": "1kB", "duration": "2s"}


@pytest.mark.parametrize("workload", [PAGE, FRAMES, {"kind": "request-response", "streams": 2}])
def test_netns_has_streams_of_quic_only(workload: dict[str, Any]) -> None:
    keys = {"title": "page", "worlds": ["netns"], "path": PATH, "workload": workload}
    with pytest.raises(lf.StudyError, match="requires the world sim, or QUIC"):
        load_study({**keys, "protocols": [{"name": "a", "kind": "tcp"}]})
    load_study({**keys, "protocols": [{"name": "a", "kind": "quic"}]})


def test_early_data_needs_a_second_connection() -> None:
    with pytest.raises(ValueError, match="zero_rtt: true has no effect on a single connection"):
        lf.simulate(lf.Quic(zero_rtt=True), PATH, "20kB")


@pytest.mark.parametrize(
    "protocol", [lf.Quic(), lf.Quic(datagrams=True), lf.Tcp(nagle=False), lf.Mptcp(nagle=False)]
)
def test_frames_are_in_time(protocol: Any) -> None:
    path = {"rate": "10Mbit/s", "delay": "10ms"}
    metrics = lf.simulate(protocol, path, workload={**FRAMES, "warm_up": "1s"}).metrics
    assert metrics["frame_in_time_share"] == 1
    assert 0.010 < metrics["frame_delay_p50_s"] < 0.012
