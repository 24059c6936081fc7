"""The reader of qlog files in node."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.explorer import log_samples as samples
from tests.explorer.bundled import run

READ = """
const read = async text => {
    let log
    try {
        log = module.readLog(text)
    } catch (error) {
        return { error: error.message }
    }
    const traces = []
    for (const trace of log.traces) {
        const events = new module.Events(trace)
        const { metrics, marks, lost, spaces, sent, rtts } =
            await events.read(() => new module.Connection(events.clock.unit), async () => {})
        const { times, names, counts, invalid, truncated, clock } = events
        const numbers = Object.fromEntries([...spaces].map(([name, space]) =>
            [name, [space.sent, space.acknowledged, space.lost, space.received].map(points => points.y)]))
        traces.push({
            times, names, counts, invalid, truncated, lost,
            start: clock.start?.toISOString() ?? null,
            spaces: numbers,
            metrics: metrics.columns,
            marks: marks.map(({ label }) => label),
            bytes: sent.total,
            fresh: sent.fresh,
            rtts: rtts.value.map(value => Math.round(value * 1e6) / 1e3),
        })
    }
    const version = module.versionNote(log.header) ?? null
    return { serialization: log.serialization, notes: log.notes, version, traces }
}
console.log(JSON.stringify(await Promise.all(texts.map(read))))
"""
"""Reads `texts`, and prints what the page has of each."""


def readings(tmp_path: Path, *texts: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = run(tmp_path, "log/reader", f"const texts = {json.dumps(texts)};{READ}")
    return found


def cut(tmp_path: Path, text: str, lengths: list[int]) -> list[dict[str, Any]]:
    """Reads the start of a text, for each of these lengths."""
    texts = f"{json.dumps(lengths)}.map(length => {json.dumps(text)}.slice(0, length))"
    found: list[dict[str, Any]] = run(tmp_path, "log/reader", f"const texts = {texts};{READ}")
    return found


def reading(tmp_path: Path, text: str) -> dict[str, Any]:
    """The only trace of a text."""
    (found,) = readings(tmp_path, text)
    trace: dict[str, Any]
    (trace,) = found.pop("traces")
    return found | trace


def test_logs_of_version_0_3_have_categories(tmp_path: Path) -> None:
    found = reading(tmp_path, samples.go())
    assert (found["serialization"], found["version"], found["invalid"]) == ("JSON-SEQ", None, 0)
    # Packet number spaces are separate.
    assert found["spaces"]["Initial"] == [[0], [0], [], [0]]
    assert found["spaces"]["application data"] == [[0, 1, 2, 3, 4], [2, 0, 4], [1], [7, 8]]
    assert found["marks"] == ["slow start", "loss of 1", "recovery", "PTO expires"]
    # The largest number is first in an ACK, or last. Number 2 left at 32 ms, and its ACK came at 55 ms.
    assert found["rtts"] == [20, 23, 35]
    # A retransmission is no new data.
    assert found["fresh"] == [0, 1200, 1200, 1200, 0, 0]
    assert found["metrics"]["smoothedRtt"] == [20.5, 20.5]
    assert found["metrics"]["bytesInFlight"] == [None, 1250]
    assert found["start"] == "2023-11-14T22:13:20.000Z"


def test_missing_fields_are_no_errors(tmp_path: Path) -> None:
    found = reading(tmp_path, samples.rust())
    assert (found["serialization"], found["invalid"]) == ("NDJSON", 0)
    assert found["spaces"]["application data"] == [[10], [10], [], []]
    assert found["spaces"]["Handshake"] == [[10], [], [], []]
    assert found["metrics"]["ssthresh"] == [None]


@pytest.mark.parametrize(
    ("text", "rtt", "window"), [(samples.meta(), 20, 12_520), (samples.pico(), 30, 15_360)]
)
def test_logs_before_version_0_3_have_lists_and_microseconds(
    tmp_path: Path, text: str, rtt: float, window: int
) -> None:
    found = reading(tmp_path, text)
    assert "draft-00" in found["version"]
    assert found["serialization"] == "JSON"
    assert found["invalid"] == 0
    assert found["metrics"]["latestRtt"] == [rtt]
    assert found["metrics"]["congestionWindow"] == [window]
    assert found["times"][1] == pytest.approx(0.02 if rtt == 20 else 0.0301)
    assert found["bytes"] == (1252 if rtt == 20 else 900)


@pytest.mark.parametrize(
    ("common", "times", "expected"),
    [
        ({}, [5, 6, 8], [0.005, 0.006, 0.008]),
        ({"time_format": "relative"}, [5, 6, 8], [0.005, 0.006, 0.008]),
        ({"time_format": "relative_to_epoch"}, [1e12 + 5, 1e12 + 6], [0, 0.001]),
        ({"time_format": "absolute"}, [1e12, 1e12 + 2], [0, 0.002]),
        ({"time_format": "delta"}, [5, 1, 2], [0.005, 0.006, 0.008]),
        ({"time_format": "relative_to_previous_event"}, [0, 1, 2], [0, 0.001, 0.003]),
        ({}, [8, 5, 6], [0.005, 0.006, 0.008]),
        ({}, ["5", 6.5], [0.005, 0.0065]),
    ],
)
def test_times_have_every_format(
    tmp_path: Path, common: dict[str, str], times: list[float], expected: list[float]
) -> None:
    events = [samples.event(time, "quic:packet_sent") for time in times]
    found = reading(tmp_path, samples.contained(samples.trace("t", *events, **common)))
    assert found["times"] == pytest.approx(expected)


def test_a_format_of_one_event_replaces_the_common_one(tmp_path: Path) -> None:
    events = [samples.event(5, "quic:a"), {**samples.event(2, "quic:a"), "time_format": "delta"}]
    found = reading(tmp_path, samples.contained(samples.trace("t", *events)))
    assert found["times"] == pytest.approx([0.005, 0.007])


def test_wall_clock_of_the_current_draft(tmp_path: Path) -> None:
    time = {"clock_type": "monotonic", "epoch": "unknown", "wall_clock_time": "2025-03-01T10:00:00.000Z"}
    found = reading(
        tmp_path, samples.contained(samples.trace("t", samples.event(1, "quic:a"), reference_time=time))
    )
    assert found["start"] == "2025-03-01T10:00:00.000Z"


def test_several_traces(tmp_path: Path) -> None:
    one = samples.trace("one", samples.event(1, "quic:a"))
    two = samples.trace("two", samples.event(1, "quic:b"), samples.event(2, "quic:b"))
    (found,) = readings(tmp_path, samples.contained(one, {"error_description": "lost"}, two))
    assert [trace["names"] for trace in found["traces"]] == [["quic:a"], ["quic:b"]]
    assert found["notes"] == ["1 of 3 traces without events left out"]


@pytest.mark.parametrize("text", [samples.go(), samples.rust()], ids=["sequence", "lines"])
def test_a_record_that_was_cut_is_left_out(tmp_path: Path, text: str) -> None:
    events = len(reading(tmp_path, text)["times"])
    # A missing line feed is not a missing event.
    for missing, found in zip((1, 2, 7, 30), cut(tmp_path, text, [-1, -2, -7, -30]), strict=True):
        (trace,) = found["traces"]
        assert len(trace["times"]) == events - (missing > 1)
        assert (trace["truncated"], trace["invalid"]) == (missing > 1, int(missing > 1))


def test_every_cut_of_a_document_leaves_its_whole_events(tmp_path: Path) -> None:
    events = [samples.event(number, "quic:a", text='a]"}\\', list=[1, [2]]) for number in range(4)]
    text = samples.contained(samples.trace("t", *events, group_id="g"))
    start = text.index('"events": [') + len('"events": [')
    ends = [start + sum(len(json.dumps(one)) + 2 for one in events[: place + 1]) - 2 for place in range(4)]
    lengths = list(range(start, len(text) - 1))
    for length, found in zip(lengths, cut(tmp_path, text, lengths), strict=True):
        (trace,) = found["traces"]
        assert len(trace["times"]) == sum(end <= length for end in ends), text[:length]
        assert found["notes"] == ["the file ends in the middle of a record, which is left out"]


def test_invalid_records_between_others_are_left_out(tmp_path: Path) -> None:
    text = samples.lines(
        {"qlog_version": "0.3", "trace": {}},
        [samples.event(1, "quic:a"), 5, {"name": "quic:a"}, samples.event(2, "quic:a")],
    )
    found = reading(tmp_path, text.replace("\n5\n", "\n{5\n\n"))
    assert (found["times"], found["invalid"], found["truncated"]) == ([0.001, 0.002], 2, False)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "the file is empty"),
        (" \n", "the file is empty"),
        ("hello", "not a qlog file: qlog is JSON, and starts with { or a record separator"),
        ("{", "not a qlog file: it is not valid JSON"),
        ("{}", "not a qlog file: its header has neither qlog_version nor file_schema"),
        ('{"a": 1}\n{"b": 2}\n', "not a qlog file: its header has neither qlog_version nor file_schema"),
        ("\x1e[1]\n", "the first record, the header of the log, is not valid JSON"),
        ('{"qlog_version": "0.3"}', "the file has no trace with events"),
        ('{"qlog_version": "0.3", "traces": [{"a": 1}]}', "the file has no trace with events"),
    ],
)
def test_other_files_are_errors(tmp_path: Path, text: str, error: str) -> None:
    assert readings(tmp_path, text) == [{"error": error}]


def test_numbers_of_packets_may_arrive_in_any_order(tmp_path: Path) -> None:
    sent = [
        samples.event(time, "quic:packet_sent", **samples.packet("1RTT", number, 100, samples.stream(0, 1)))
        for time, number in enumerate([3, 9, 5, 4, 12, 1])
    ]
    ranges = [[4, 5], [1, 1], [0, 9], [0, 9]]
    received = [
        samples.event(
            10 + place, "quic:packet_received", **samples.packet("1RTT", place, 50, samples.ack(one))
        )
        for place, one in enumerate(ranges)
    ]
    found = reading(tmp_path, samples.contained(samples.trace("t", *sent, *received)))
    assert found["spaces"]["application data"][1] == [4, 5, 1, 3, 9]


def test_paths_have_their_own_numbers(tmp_path: Path) -> None:
    def on(path: int, *frames: dict[str, Any]) -> dict[str, Any]:
        return {**samples.packet("1RTT", 0, 100, *frames), "path_id": path}

    events = [
        samples.event(0, "quic:packet_sent", **on(0, samples.stream(0, 1))),
        samples.event(1, "quic:packet_sent", **on(1, samples.stream(1, 1))),
        samples.event(2, "quic:packet_received", **on(1, samples.ack([0, 0]))),
        samples.event(
            5,
            "quic:packet_received",
            **on(0, {**samples.ack([0, 0]), "frame_type": "path_ack", "path_id": 1}),
        ),
    ]
    found = reading(tmp_path, samples.contained(samples.trace("t", *events)))
    assert [found["spaces"][f"application data, path {path}"][1] for path in (0, 1)] == [[0], [0]]
    assert found["rtts"] == [2, 4]


def test_new_data_leaves_out_what_arrived_before(tmp_path: Path) -> None:
    parts = [(0, 10), (20, 10), (40, 10), (15, 10), (5, 60), (0, 65), (70, 0), (80, 5), (60, 30)]
    seen: set[int] = set()
    expected = []
    for offset, length in parts:
        expected.append(len(set(range(offset, offset + length)) - seen))
        seen |= set(range(offset, offset + length))
    events = [
        samples.event(time, "quic:packet_sent", **samples.packet("1RTT", time, 100, samples.stream(*part)))
        for time, part in enumerate(parts)
    ]
    found = reading(tmp_path, samples.contained(samples.trace("t", *events)))
    assert found["fresh"] == expected
