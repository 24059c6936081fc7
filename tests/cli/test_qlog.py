"""Traced connections as qlog (draft-ietf-quic-qlog-main-schema-13)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Refused
from tests.conftest import Cli

import longfat as lf

PATH: dict[str, Any] = {"rate": "10Mbit/s", "delay": "10ms", "queue": "30pkt", "loss": "1%"}
PAGE: dict[str, Any] = {
    "kind": "web-page",
    "objects": [{"size": "10kB"}, {"size": "40kB", "count": 3, "after": 0}],
}


def records(content: bytes) -> list[dict[str, Any]]:
    """Returns the records of a JSON text sequence (RFC 7464)."""
    assert content.startswith(b"\x1e")
    assert content.endswith(b"\n")
    return [json.loads(record) for record in content.split(b"\x1e")[1:]]


@pytest.fixture(scope="module")
def quic() -> lf.Traces:
    return lf.trace({"kind": "quic", "congestion": "cubic"}, PATH, workload=PAGE)


def test_a_quic_connection_has_its_packets_by_number(quic: lf.Traces) -> None:
    head, *events = records(quic.qlog(side="receiver"))
    assert head["file_schema"] == "urn:ietf:params:qlog:file:sequential"
    assert head["trace"]["event_schemas"] == ["urn:ietf:params:qlog:events:quic"]
    assert head["trace"]["vantage_point"]["type"] == "server"
    assert [event["time"] for event in events] == sorted(event["time"] for event in events)
    sent = [event["data"] for event in events if event["name"] == "quic:packet_sent"]
    datagrams = {one["datagram_id"] for one in sent}
    assert len(datagrams) == quic.events.filter(what="send", host="receiver").height < len(sent)
    numbers = [one["header"]["packet_number"] for one in sent if one["header"]["packet_type"] == "1RTT"]
    assert len(numbers) == len(set(numbers))
    assert numbers == sorted(numbers)
    received = {one["data"]["header"]["packet_number"] for one in events if one["name"].endswith("received")}
    client = records(quic.qlog())
    assert received <= {one["data"]["header"]["packet_number"] for one in client if "packet_sent" in str(one)}


def test_packets_have_their_frames(quic: lf.Traces) -> None:
    sent = [
        one["data"] for one in records(quic.qlog(side="receiver")) if one.get("name") == "quic:packet_sent"
    ]
    frames = [frame for one in sent for frame in one["frames"]]
    assert {"crypto", "ack", "stream", "handshake_done", "new_connection_id"} <= {
        one["frame_type"] for one in frames
    }
    # The handshake messages of the server: 90 bytes in its Initial packets, the others in Handshake packets.
    hello = [one for one in sent if one["header"]["packet_type"] == "initial"]
    assert (
        max(
            frame["offset"] + frame["raw"]["payload_length"]
            for one in hello
            for frame in one["frames"]
            if frame["frame_type"] == "crypto"
        )
        == 90
    )
    # Four objects, which end their streams: 10 kB and three of 40 kB.
    ends = {
        one["stream_id"]: one["offset"] + one["raw"]["payload_length"] for one in frames if one.get("fin")
    }
    assert sorted(ends.values()) == [10_000, 40_000, 40_000, 40_000]
    acknowledged = [frame["acked_ranges"] for frame in frames if frame["frame_type"] == "ack"]
    assert all(low <= high for ranges in acknowledged for low, high in ranges)
    assert all(ranges == sorted(ranges) for ranges in acknowledged)


def test_the_end_that_sends_the_payload_has_the_window(quic: lf.Traces) -> None:
    windows = [
        {
            one["data"]["congestion_window"]
            for one in records(quic.qlog(side=side))
            if "congestion_window" in str(one)
        }
        for side in ("sender", "receiver")
    ]
    assert not windows[0]
    assert max(windows[1]) == quic.samples["cwnd_bytes"].max()


def test_samples_of_a_page_cover_its_time_in_about_1000_steps(quic: lf.Traces) -> None:
    assert 400 < quic.samples.height < 2500


def test_first_packets_of_streams_are_no_retransmissions() -> None:
    found = lf.trace(
        {"kind": "quic", "congestion": "cubic"}, {**PATH, "loss": "0%", "queue": "1000pkt"}, workload=PAGE
    )
    assert [one["retransmissions"] for one in found.metrics.values()] == [0]
    assert not found.events["retransmission"].any()


def test_tcp_has_a_namespace_of_its_own(tmp_path: Path) -> None:
    traces = lf.trace("reno", PATH, "200kB")
    traces.write(tmp_path / "connection.qlog")
    head, first, *events = records((tmp_path / "connection.qlog").read_bytes())
    assert head["trace"]["event_schemas"] == ["urn:example:longfat:qlog:events:tcp"]
    assert (first["name"], first["data"]["header"]["type"]) == ("tcp:segment_sent", "syn")
    repeated = sum("retransmission" in event["data"] for event in events)
    assert repeated == traces.metrics["reno"]["retransmissions"]
    rtts = [event["data"]["latest_rtt"] for event in events if "latest_rtt" in event["data"]]
    assert min(rtts) >= 20


def test_each_path_numbers_its_packets_and_has_its_acks(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "paths.qlog"
    cell = ["--protocol", "mp-quic", "--cell", "workload.size=1MB"]
    cli("trace", "quic/multipath", *cell, "--side", "sender", "--out", str(file))
    packets: dict[str, dict[int, list[int]]] = {"quic:packet_sent": {}, "quic:packet_received": {}}
    acknowledged: dict[int, set[int]] = {}
    for event in records(file.read_bytes())[1:]:
        data = event["data"]
        if "header" not in data or data["header"]["packet_type"] != "1RTT":
            continue
        packets[event["name"]].setdefault(data["path_id"], []).append(data["header"]["packet_number"])
        for frame in data["frames"]:
            if event["name"] == "quic:packet_received" and frame["frame_type"] == "path_ack":
                covered = acknowledged.setdefault(frame["path_id"], set())
                covered.update(*(range(low, high + 1) for low, high in frame["acked_ranges"]))
    for numbers in packets.values():
        assert set(numbers) == {0, 1}
        assert all(len(one) == len(set(one)) for one in numbers.values())
    assert set(acknowledged) == {0, 1}
    assert all(numbers <= set(packets["quic:packet_sent"][path]) for path, numbers in acknowledged.items())


def test_times_and_interval_select_events_and_samples(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "page.qlog"
    span = ["--from", "100ms", "--to", "200ms", "--interval", "10ms"]
    cli("trace", "quic/page-load", "--protocol", "quic", "--side", "receiver", "--out", str(file), *span)
    _, *events = records(file.read_bytes())
    assert all(100 <= event["time"] <= 200 for event in events)
    sampled = {event["time"] for event in events if event["name"].endswith("metrics_updated")}
    assert sampled
    assert all(time % 10 == 0 for time in sampled)


def test_what_a_file_cannot_hold_is_refused(refused: Refused, cli: Cli, tmp_path: Path) -> None:
    study = tmp_path / "two.toml"
    study.write_text(
        'title = "t"\nprotocols = ["reno", "cubic"]\n'
        'workload = { kind = "bulk", duration = "1s", flows = 2 }\n'
        'path = { rate = "1Mbit/s", delay = "5ms", queue = "20pkt" }\n'
    )
    common = ["trace", str(study), "--format", "qlog"]
    one = [*common, "--protocol", "reno"]
    refused([*common, "--protocol", "reno", "--protocol", "cubic"], 2, ["one connection"])
    refused([*one, "--flow", "nobody"], 2, ['--flow: this trial has no flow "nobody"'])
    refused([*one, "--flow", "sender", "--flow", "receiver"], 2, ["--flow: takes one flow"])
    refused([*one, "--chart", "rtt"], 2, ["--chart"])
    refused([*one, "--side", "both"], 2, ["--side"])
    refused(["trace", "arq/loss", "--protocol", "saw", "--format", "qlog"], 2, ["", "TCP and QUIC"])
