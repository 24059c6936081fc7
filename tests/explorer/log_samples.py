"""qlog files in the shapes of other implementations, and of other versions of the schema."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

Fields = dict[str, Any]


def sequence(head: Fields, events: Iterable[Any]) -> str:
    """A JSON text sequence (RFC 7464)."""
    return "".join(f"\x1e{json.dumps(record)}\n" for record in (head, *events))


def lines(head: Fields, events: Iterable[Any]) -> str:
    """Newline-delimited JSON."""
    return "".join(f"{json.dumps(record)}\n" for record in (head, *events))


def packet(kind: str, number: int, size: int, *frames: Fields, **more: Any) -> Fields:
    """The data of a packet with the fields of version 0.3 and later."""
    header = {"packet_type": kind, "packet_number": number}
    return {"header": header, "raw": {"length": size}, "frames": list(frames), **more}


def stream(offset: int, length: int) -> Fields:
    return {"frame_type": "stream", "stream_id": 0, "offset": offset, "length": length}


def ack(*ranges: list[int]) -> Fields:
    return {"frame_type": "ack", "ack_delay": 0.1, "acked_ranges": list(ranges)}


def event(time: float, name: str, **data: Any) -> Fields:
    return {"time": time, "name": name, "data": data}


def go() -> str:
    """As quic-go: version 0.3, JSON-SEQ, with categories, losses, states, timers and unknown events."""
    head = {
        "qlog_format": "JSON-SEQ",
        "qlog_version": "0.3",
        "title": "quic-go qlog",
        "code_version": "v0.1",
        "trace": {
            "vantage_point": {"type": "server"},
            "common_fields": {
                "ODCID": "ab",
                "reference_time": 1_700_000_000_000.5,
                "time_format": "relative",
            },
        },
    }
    events = [
        event(0, "transport:connection_started", src_ip="192.0.2.1"),
        event(1, "transport:packet_sent", **packet("initial", 0, 1200, {"frame_type": "crypto"})),
        event(21, "transport:packet_received", **packet("initial", 0, 1200, ack([0]))),
        event(22, "recovery:congestion_state_updated", new="slow_start"),
        event(
            23,
            "recovery:metrics_updated",
            latest_rtt=20.5,
            smoothed_rtt=20.5,
            min_rtt=20.5,
            congestion_window=40_000,
        ),
        event(30, "transport:packet_sent", **packet("1RTT", 0, 1250, stream(0, 1200))),
        event(31, "transport:packet_sent", **packet("1RTT", 1, 1250, stream(1200, 1200))),
        event(32, "transport:packet_sent", **packet("1RTT", 2, 1250, stream(2400, 1200))),
        event(33, "transport:packet_sent", **packet("1RTT", 3, 40, ack([0, 4]))),
        event(55, "transport:packet_received", **packet("1RTT", 7, 40, ack([2, 2], [0, 0]))),
        event(
            56,
            "recovery:packet_lost",
            header={"packet_type": "1RTT", "packet_number": 1},
            trigger="time_threshold",
        ),
        event(57, "recovery:congestion_state_updated", new="recovery"),
        event(
            58, "recovery:metrics_updated", latest_rtt=24.5, congestion_window=20_000, bytes_in_flight=1250
        ),
        event(60, "transport:packet_sent", **packet("1RTT", 4, 1250, stream(1200, 1200))),
        event(
            90,
            "recovery:loss_timer_updated",
            event_type="expired",
            timer_type="pto",
            packet_number_space="application_data",
        ),
        event(95, "transport:packet_received", **packet("1RTT", 8, 40, ack([4]))),
        event(96, "quic-go:key_thing", note="unknown"),
    ]
    return sequence(head, events)


def rust() -> str:
    """As crates in Rust: version 0.4 as newline-delimited JSON, with few fields and an event for ACKs."""
    head = {
        "qlog_version": "0.4",
        "qlog_format": "NDJSON",
        "trace": {
            "vantage_point": {"name": "client", "type": "client"},
            "configuration": {"time_offset": 0.0},
        },
    }
    events = [
        event(0.5, "quic:packet_sent", header={"packet_type": "1RTT", "packet_number": 10}),
        event(0.6, "quic:packet_sent", header={"packet_type": "handshake", "packet_number": 10}),
        event(1.5, "quic:packets_acked", packet_number_space="application_data", packet_numbers=[10]),
        event(
            2, "quic:recovery_metrics_updated", ssthresh=18_446_744_073_709_551_615, congestion_window=12_000
        ),
        {"time": 3, "name": "quic:packet_sent"},
    ]
    return lines(head, events)


def meta() -> str:
    """As mvfst: one JSON document, version draft-00, events as lists, and numbers as text in µs."""
    events = [
        [
            "0",
            "transport",
            "packet_sent",
            {
                "header": {"packet_number": "0", "packet_size": 1252},
                "packet_type": "INITIAL",
                "frames": [{"frame_type": "CRYPTO"}],
            },
        ],
        [
            "20000",
            "transport",
            "packet_received",
            {
                "header": {"packet_number": "0", "packet_size": 1252},
                "packet_type": "INITIAL",
                "frames": [{"frame_type": "ACK", "acked_ranges": [["0", "0"]]}],
            },
        ],
        [
            "25000",
            "metric_update",
            "metric_update",
            {"latest_rtt": "20000", "current_cwnd": "12520", "bytes_in_flight": "0"},
        ],
    ]
    trace = {
        "vantage_point": {"name": "client", "type": "client"},
        "title": "mvfst qlog",
        "configuration": {"time_units": "us"},
        "common_fields": {"reference_time": "0"},
        "event_fields": ["relative_time", "CATEGORY", "EVENT_TYPE", "DATA"],
        "events": events,
    }
    return json.dumps({"qlog_version": "draft-00", "title": "mvfst qlog", "traces": [trace]})


def pico() -> str:
    """As picoquic: lists with a path, and one value more than there are names."""
    events = [
        [
            100,
            0,
            "transport",
            "packet_sent",
            {"packet_type": "1RTT", "header": {"packet_number": 5, "packet_size": 900}, "frames": []},
        ],
        [
            30_100,
            0,
            "recovery",
            "metrics_updated",
            "default",
            {"cwnd": 15_360, "latest_rtt": 30_000, "min_rtt": 30_000},
        ],
        [31_100, 0, "recovery", "packet_lost", {"packet_type": "1RTT", "packet_number": 5}],
    ]
    trace = {
        "vantage_point": {"name": "backend", "type": "client"},
        "title": "picoquic",
        "configuration": {"time_units": "us"},
        "common_fields": {"protocol_type": "QUIC_HTTP3", "reference_time": "0"},
        "event_fields": ["relative_time", "path_id", "category", "event", "data"],
        "events": events,
    }
    return json.dumps({"qlog_version": "draft-00", "title": "picoquic", "traces": [trace]}, indent=1)


def contained(*traces: Fields) -> str:
    """One JSON document with several traces, as the current draft has it."""
    return json.dumps(
        {
            "file_schema": "urn:ietf:params:qlog:file:contained",
            "serialization_format": "application/qlog+json",
            "title": "several",
            "traces": list(traces),
        }
    )


def trace(title: str, *events: Fields, **common: Any) -> Fields:
    return {
        "title": title,
        "common_fields": common,
        "vantage_point": {"type": "client"},
        "event_schemas": ["urn:ietf:params:qlog:events:quic-12"],
        "events": list(events),
    }
