"""A traced connection as qlog, the log format of QUIC implementations, as JSON text sequence (RFC 7464).

Follows draft-ietf-quic-qlog-main-schema-13 and draft-ietf-quic-qlog-quic-events-12. No schema for TCP
exists, so its events are in a namespace `tcp` with the columns of longfat's table of events.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from longfat.presentation.trace.drawing import Trace, one_flow
from longfat.system.parameters import ParameterError

_SEPARATOR = b"\x1e"
_SCHEMAS = {"quic": "urn:ietf:params:qlog:events:quic", "tcp": "urn:example:longfat:qlog:events:tcp"}
_PACKETS = {
    "initial": "initial",
    "handshake": "handshake",
    "0-rtt": "0RTT",
    "1-rtt": "1RTT",
    "retry": "retry",
}
_NAMES = {
    ("quic", "send"): "packet_sent",
    ("quic", "receive"): "packet_received",
    ("tcp", "send"): "segment_sent",
    ("tcp", "receive"): "segment_received",
}
_METRICS = {
    "congestion_window": ("cwnd_bytes", 1),
    "ssthresh": ("ssthresh_bytes", 1),
    "bytes_in_flight": ("in_flight_bytes", 1),
    "latest_rtt": ("rtt_s", 1e3),
    "smoothed_rtt": ("srtt_s", 1e3),
    "pacing_rate": ("pacing_bps", 1),
}
"""Fields of qlog (B, ms and bit/s): the column of samples, and its factor."""
_HEADER = ("sequence", "acknowledgement", "window", "sack")


def encoded(
    traces: Sequence[Trace],
    flows: Sequence[str],
    side: str,
    span: tuple[float | None, float | None] = (None, None),
) -> bytes:
    """Returns what one end of a connection sent, received and measured.

    Args:
        traces: One traced trial with samples.
        flows: Name of the flow; by default the first.
        side: "sender" or "receiver".
        span: First and last time in s; by default all.

    Raises:
        ParameterError: for several trials or flows, an unknown flow, and protocols other than TCP and QUIC.
    """
    if len(traces) != 1:
        raise ParameterError("format", "a qlog file has one connection; choose one protocol and one world")
    if side == "both":
        raise ParameterError("side", "a qlog file has one end; choose sender or receiver")
    (trace,) = traces
    number, name = one_flow(trace.record, flows)
    events = [event for event in trace.record["events"] if event["flow"] == number]
    own = [event for event in events if event["host"] == side]
    namespace = _namespace(trace, own)
    logged = [*_events(namespace, own)]
    if side == _sampled(events):
        logged += _metrics(namespace, trace, number)
    first, last = (None if time is None else _milliseconds(time) for time in span)
    logged = [
        event
        for event in logged
        if (first is None or event["time"] >= first) and (last is None or event["time"] <= last)
    ]
    logged.sort(key=lambda event: event["time"])
    head = {
        "file_schema": "urn:ietf:params:qlog:file:sequential",
        "serialization_format": "application/qlog+json-seq",
        "title": trace.title,
        "description": "; ".join(text for text in (trace.subtitle, name) if text),
        "trace": {
            "common_fields": {
                "group_id": f"{trace.protocol} {number}",
                "reference_time": {"clock_type": "monotonic", "epoch": "unknown"},
            },
            "vantage_point": {"name": side, "type": "client" if side == "sender" else "server"},
            "event_schemas": [_SCHEMAS[namespace]],
        },
    }
    return b"".join(
        _SEPARATOR + json.dumps(record, separators=(",", ":")).encode() + b"\n" for record in (head, *logged)
    )


def _sampled(events: list[dict[str, Any]]) -> str:
    """Returns the end that the samples are of: the one that sends more payload."""
    sent: Counter[str] = Counter()
    for event in events:
        if event["what"] == "send":
            sent[event["host"]] += event.get("length", 0)
    return max(("sender", "receiver"), key=lambda host: sent[host])


def _namespace(trace: Trace, events: list[dict[str, Any]]) -> str:
    frames = {event.get("frame") for event in events}
    if frames & set(_PACKETS):
        return "quic"
    if "syn" in frames:
        return "tcp"
    raise ParameterError("format", f"qlog is for TCP and QUIC; {trace.protocol} is neither")


def _events(namespace: str, events: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for event in events:
        time = _milliseconds(event["time"])
        if event["what"] == "timeout":
            timer = {"timer_type": "pto" if namespace == "quic" else "rto", "event_type": "expired"}
            yield {"time": time, "name": f"{namespace}:timer_updated", "data": timer}
        name = _NAMES.get((namespace, event["what"]))
        if name is None:
            continue
        described = _packets(event) if namespace == "quic" else [_segment(event)]
        for data in described:
            yield {"time": time, "name": f"{namespace}:{name}", "data": data}


def _segment(event: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "header": {"type": event["frame"], **{key: event[key] for key in _HEADER if key in event}},
        "raw": {"length": event["size"], "payload_length": event.get("length", 0)},
        **({"retransmission": True} if event.get("retransmission") else {}),
    }


def _packets(event: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields the packets of a datagram, which has the ID of the simulation. Each path has its numbers."""
    for packet in event["packets"]:
        number = packet["number"]
        yield {
            "header": {
                "packet_type": _PACKETS[packet["kind"]],
                **({} if number is None else {"packet_number": number}),
            },
            **({"path_id": event["subflow"]} if "subflow" in event else {}),
            "frames": [_frame(frame) for frame in packet["frames"]],
            "raw": {"length": packet["length"]},
            "datagram_id": event["id"],
        }


def _frame(frame: Mapping[str, Any]) -> dict[str, Any]:
    own = {key: value for key, value in frame.items() if key != "length"}
    return own | ({"raw": {"payload_length": frame["length"]}} if "length" in frame else {})


def _metrics(namespace: str, trace: Trace, flow: int) -> Iterator[dict[str, Any]]:
    """Yields the values of samples that differ from those before."""
    name = f"{namespace}:{'recovery_metrics_updated' if namespace == 'quic' else 'metrics_updated'}"
    for series in trace.record["series"]["flows"]:
        if series["flow"] != flow:
            continue
        last: dict[str, Any] = {}
        for place, time in enumerate(series["time"]):
            new = {}
            for field, (column, factor) in _METRICS.items():
                values = series.get(column) or ()
                if len(values) > place and values[place] is not None:
                    value = values[place] * factor
                    new[field] = round(value, 6) if factor != 1 else int(value)
            changed = {field: value for field, value in new.items() if last.get(field) != value}
            if changed:
                yield {"time": _milliseconds(time), "name": name, "data": changed}
            last = new


def _milliseconds(seconds: float) -> float:
    return round(seconds * 1e3, 6)
