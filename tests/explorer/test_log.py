"""The page that shows qlog files."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from pathlib import Path

import pytest
from tests.explorer import log_samples as samples
from tests.explorer.driver import press
from tests.explorer.log_driver import LogPage, Record, named, read

STUDY = """
title = "One Reno on a bottleneck"
worlds = ["sim"]
path = { rate = "10Mbit/s", delay = "10ms", queue = "30pkt" }
workload = { kind = "bulk", duration = "2s" }

[[protocols]]
name = "reno"
kind = "tcp"
congestion = "reno"
"""


def trace(*arguments: object) -> None:
    command = [sys.executable, "-P", "-m", "longfat", "trace", *map(str, arguments)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)


@pytest.fixture(scope="module")
def quic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The server of a page load: it sends the payload and has the window."""
    file = tmp_path_factory.mktemp("logs") / "page.qlog"
    trace("quic/page-load", "--protocol", "quic", "--side", "receiver", "--out", file)
    return file


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("logs") / "client.qlog"
    trace("quic/page-load", "--protocol", "quic", "--side", "sender", "--out", file)
    return file


@pytest.fixture(scope="module")
def tcp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("logs")
    study = folder / "reno.toml"
    study.write_text(STUDY)
    trace(study, "--out", folder / "reno.qlog")
    return folder / "reno.qlog"


Numbers = dict[str, list[int]]


def by_space(packets: list[Record]) -> Numbers:
    """The packet numbers by space, once per packet."""
    found: Numbers = {}
    for one in packets:
        found.setdefault(one["header"]["packet_type"], []).append(one["header"]["packet_number"])
    return found


def acknowledged(sent: Numbers, received: list[Record]) -> dict[str, set[int]]:
    """The sent numbers of each space that ACKs cover."""
    covered: dict[str, set[int]] = {space: set() for space in sent}
    for one in received:
        space = one["header"]["packet_type"]
        for frame in one["frames"]:
            for low, high in frame.get("acked_ranges", ()):
                covered[space] |= set(range(low, high + 1)) & set(sent[space])
    return covered


@pytest.mark.parametrize("side", ["quic", "client"])
def test_a_quic_log_has_the_sums_of_its_events(
    log_page: LogPage, side: str, request: pytest.FixtureRequest
) -> None:
    file = request.getfixturevalue(side)
    log_page.open(file)
    _, events = read(file)
    facts = log_page.facts()
    sent, received = named(events, "packet_sent"), named(events, "packet_received")
    assert facts["events"] == len(events)
    assert facts["duration"] == pytest.approx((events[-1]["time"] - events[0]["time"]) / 1e3)
    assert (facts["packets-sent"], facts["packets-received"]) == (len(sent), len(received))
    assert facts["bytes-sent"] == sum(one["raw"]["length"] for one in sent)
    assert facts["bytes-received"] == sum(one["raw"]["length"] for one in received)
    numbers = by_space(sent)
    covered = acknowledged(numbers, received)
    assert facts["acknowledged"] == sum(map(len, covered.values()))
    # The simulation logs no event for losses.
    quiet = {"ack", "padding", "connection_close"}
    unanswered = [
        one
        for one in sent
        if (number := one["header"]["packet_number"]) not in covered[(space := one["header"]["packet_type"])]
        and number < max(covered[space], default=-1)
        and {frame["frame_type"] for frame in one["frames"]} - quiet
    ]
    assert facts["lost"] == 0
    assert facts["unanswered"] == len(unanswered)
    assert log_page.status == f"{file.name}: {len(events):,} events."
    options = log_page.texts("#log-space option")
    assert options[0].startswith("application data (")
    assert len(options) == 3


def test_rtts_and_rates_are_those_of_the_log(log_page: LogPage, quic: Path) -> None:
    log_page.open(quic)
    _, events = read(quic)
    facts = log_page.facts()
    rtts = [one["latest_rtt"] for one in named(events, "recovery_metrics_updated") if "latest_rtt" in one]
    assert facts["min-rtt"] == pytest.approx(min(rtts))
    assert facts["median-rtt"] == pytest.approx(statistics.median(rtts))
    ends: dict[int, int] = {}
    for one in named(events, "packet_sent"):
        for frame in one["frames"]:
            if frame["frame_type"] == "stream":
                end = frame["offset"] + frame["raw"]["payload_length"]
                ends[frame["stream_id"]] = max(ends.get(frame["stream_id"], 0), end)
    assert facts["new-sent"] == pytest.approx(sum(ends.values()) * 8 / facts["duration"])


def test_rtts_come_from_packets_and_acks_if_the_log_has_none(log_page: LogPage, client: Path) -> None:
    log_page.open(client)
    _, events = read(client)
    at = {
        (one["header"]["packet_type"], one["header"]["packet_number"]): one["time"]
        for one in named(events, "packet_sent")
    }
    first = next(one for one in named(events, "packet_received") if one["frames"][0]["frame_type"] == "ack")
    # The path of the study has an RTT of about 50 ms.
    rtt = first["time"] - at["initial", 0]
    assert log_page.facts()["min-rtt"] == pytest.approx(rtt, rel=0.05)
    assert "from packets and ACKs" in log_page.fact("min-rtt")
    assert "RTT of packets and their ACKs (ms)" in log_page.texts("#log-charts h2")


def test_a_tcp_log_has_the_sums_of_its_events(log_page: LogPage, tcp: Path) -> None:
    log_page.open(tcp)
    _, events = read(tcp)
    facts = log_page.facts()
    sent, received = named(events, "segment_sent"), named(events, "segment_received")
    data = [one for one in sent if one["raw"]["payload_length"] > 0]
    assert (facts["segments-sent"], facts["segments-received"]) == (len(sent), len(received))
    assert facts["bytes-sent"] == sum(one["raw"]["length"] for one in sent)
    again = sum("retransmission" in one for one in sent)
    assert again > 0
    assert facts["retransmissions"] == again
    assert f"of {len(data):,} data segments" in log_page.fact("retransmissions")
    assert facts["acknowledged"] == max(one["header"]["acknowledgement"] for one in received) - 1
    rtts = [one["latest_rtt"] for one in named(events, "metrics_updated") if "latest_rtt" in one]
    assert facts["min-rtt"] == pytest.approx(min(rtts))
    assert facts["median-rtt"] == pytest.approx(statistics.median(rtts))
    end = max(one["header"]["sequence"] - 1 + one["raw"]["payload_length"] for one in data)
    assert facts["new-sent"] == pytest.approx(end * 8 / facts["duration"])
    titles = log_page.texts("#log-charts h2")
    assert titles[:3] == ["Sent: sequence numbers (bytes)", "Windows (kB)", "RTT (ms)"]
    assert log_page.fact("implementation") == "longfat"
    assert log_page.fact("protocol") == "TCP"
    # Marks that the log has not are not in the legend.
    hidden = log_page.browser.evaluate(
        "[...document.querySelector('#log-marks').children].map(one => one.hidden)"
    )
    assert hidden == [False, True, True]


def visible(log_page: LogPage, events: list[Record]) -> int:
    """How many events are in the period of the page."""
    first, last = (
        log_page.browser.evaluate(f"document.querySelector('#log-{one}').valueAsNumber")
        for one in ("from", "to")
    )
    # The fields have whole microseconds.
    return sum(first - 1e-6 <= one["time"] / 1e3 <= last + 1e-6 for one in events)


def test_zoom_by_dragging_filters_the_list(log_page: LogPage, quic: Path) -> None:
    log_page.open(quic)
    _, events = read(quic)
    log_page.shown(len(events), len(events))
    assert log_page.browser.evaluate("document.querySelector('#log-all').disabled")
    for chart in (0, 3):
        log_page.drag(chart, 0.25, 0.5)
        start, end = events[0]["time"] / 1e3, events[-1]["time"] / 1e3
        from_ = log_page.browser.evaluate("document.querySelector('#log-from').valueAsNumber")
        to = log_page.browser.evaluate("document.querySelector('#log-to').valueAsNumber")
        assert from_ == pytest.approx(start + 0.25 * (end - start), rel=0.02)
        assert to == pytest.approx(start + 0.5 * (end - start), rel=0.02)
        expected = visible(log_page, events)
        assert 0 < expected < len(events)
        log_page.shown(expected, len(events))
        log_page.browser.evaluate("document.querySelector('#log-all').click()")
        log_page.shown(len(events), len(events))


def test_fields_of_the_period_zoom_with_the_keyboard(log_page: LogPage, quic: Path) -> None:
    log_page.open(quic)
    _, events = read(quic)
    log_page.enter("log-from", "0.2")
    log_page.enter("log-to", "0.3")
    log_page.shown(sum(200 <= one["time"] <= 300 for one in events), len(events))
    # A period outside of the log changes nothing.
    log_page.enter("log-from", "17")
    log_page.shown(sum(200 <= one["time"] <= 300 for one in events), len(events))
    assert log_page.browser.evaluate("document.querySelector('#log-from').value") == "0.2"


def test_the_list_filters_by_name_and_text(log_page: LogPage, quic: Path) -> None:
    log_page.open(quic)
    _, events = read(quic)
    sent = [one for one in events if one["name"] == "quic:packet_sent"]
    names = log_page.texts("#log-names option")
    assert f"quic:packet_sent ({len(sent):,})" in names
    place = names.index(f"quic:packet_sent ({len(sent):,})")
    value = log_page.browser.evaluate(f"document.querySelector('#log-names').options[{place}].value")
    log_page.enter("log-names", value)
    log_page.shown(len(sent), len(events))
    log_page.enter("log-text", "HANDSHAKE_done", "input")
    chosen = [one for one in sent if "handshake_done" in json.dumps(one)]
    log_page.shown(len(chosen), len(events))
    assert log_page.choose(0) == chosen[0]


def test_a_click_in_a_chart_chooses_the_nearest_event(log_page: LogPage, quic: Path) -> None:
    log_page.open(quic)
    _, events = read(quic)
    log_page.drag(0, 0.5, 0.5)
    log_page.browser.wait("document.querySelector('#log-event').textContent.startsWith('{')")
    start, end = events[0]["time"], events[-1]["time"]
    assert log_page.fields()["time"] == pytest.approx(start + (end - start) / 2, rel=0.02)
    log_page.shown(len(events), len(events))


def test_keys_choose_events(log_page: LogPage, quic: Path) -> None:
    log_page.open(quic)
    _, events = read(quic)
    log_page.browser.evaluate("document.querySelector('#log-events').focus()")
    for key, place in [("ArrowDown", 0), ("ArrowDown", 1), ("ArrowUp", 0), ("End", -1), ("Home", 0)]:
        press(log_page.browser, key)
        assert log_page.fields() == events[place]
        active = log_page.browser.evaluate(
            "document.getElementById(document.querySelector('#log-events').getAttribute('aria-activedescendant'))"
            ".getAttribute('aria-selected')"
        )
        assert active == "true"
    press(log_page.browser, "PageDown")
    # 17 rows are visible; one of them remains.
    assert log_page.fields() == events[16]


def test_packet_number_spaces_have_their_own_charts(log_page: LogPage) -> None:
    log_page.open(samples.go())
    assert "Sent: packet numbers (application data)" in log_page.texts("#log-charts h2")
    log_page.enter("log-space", "Initial")
    assert "Sent: packet numbers (Initial)" in log_page.texts("#log-charts h2")


def test_losses_states_and_timers_are_marks(log_page: LogPage) -> None:
    log_page.open(samples.go())
    facts = log_page.facts()
    assert facts["lost"] == 1
    assert facts["loss-share"] == pytest.approx(1 / 6)
    assert log_page.fact("implementation") == "quic-go v0.1"
    assert log_page.fact("start") == "2023-11-14T22:13:20.000Z"
    legend = "[...document.querySelector('#log-marks').children].map(one => one.hidden)"
    assert log_page.browser.evaluate(legend) == [False, False, False]
    assert log_page.status == "sample.qlog: 17 events; 2 events of 2 names only in the list."
    rows = log_page.texts("#log-kinds tr")
    assert rows[0].startswith("transport:packet_sent6")
    assert "quic-go:key_thing1list only" in rows


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (samples.rust(), "5 events."),
        (
            samples.meta(),
            "3 events; qlog version draft-00 is older than 0.3, so the charts may lack fields.",
        ),
        (samples.pico(), "3 events; qlog version draft-00"),
        (samples.go()[:-30], "16 events; the last record is incomplete and left out; 1 event of 1 name"),
        (samples.contained(samples.trace("t")), "the log has no events."),
        (
            samples.contained(
                samples.trace(
                    "t", *[samples.event(1, "quic:packet_sent", **samples.packet("1RTT", 3, 100))] * 3
                )
            ),
            "3 events; 2 sent packets with a number of an earlier one, as of several paths",
        ),
        (
            samples.contained(
                samples.trace(
                    "t", *({**samples.event(1, "quic:packet_sent"), "group_id": one} for one in ("a", "b"))
                )
            ),
            "2 events; events of 2 connections (group_id) share the charts.",
        ),
        (
            samples.lines({"qlog_version": "7.0", "trace": {}}, [3, samples.event(1, "quic:packet_sent"), 3]),
            (
                "1 event; qlog version 7.0 is unknown to this page, so the charts may lack fields; "
                "2 records without a valid event or time left out."
            ),
        ),
    ],
    ids=["rust", "mvfst", "picoquic", "cut", "no-events", "paths", "connections", "version"],
)
def test_other_shapes_are_read_with_a_note(log_page: LogPage, text: str, status: str) -> None:
    log_page.open(text)
    assert log_page.message == ""
    assert log_page.status.startswith(f"sample.qlog: {status}")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "the file is empty"),
        ("<html>", "not a qlog file: qlog is JSON, and starts with { or a record separator"),
        ('{"a": 1}', "not a qlog file: its header has neither qlog_version nor file_schema"),
    ],
    ids=["empty", "html", "json"],
)
def test_other_files_are_one_message(log_page: LogPage, text: str, error: str) -> None:
    log_page.open(text)
    assert log_page.message == f"sample.qlog: {error}"
    assert log_page.status == ""
    assert log_page.browser.evaluate("document.querySelector('#log').hidden")
    # The next file replaces the message.
    log_page.drop("next.qlog", samples.rust())
    assert log_page.message == ""
    assert log_page.facts()["events"] == 5


def test_a_log_replaces_another_one(log_page: LogPage) -> None:
    log_page.open(samples.go())
    assert any(title.startswith("Rate") for title in log_page.texts("#log-charts h2"))
    metrics = samples.event(7, "quic:recovery_metrics_updated", congestion_window=1200)
    log_page.drop("next.qlog", samples.contained(samples.trace("t", metrics, {**metrics, "time": 9})))
    log_page.shown(2, 2)
    assert log_page.texts("#log-charts h2") == ["Windows (kB)"]
    log_page.enter("log-from", "0.008")
    log_page.shown(1, 2)
    assert log_page.browser.complaints() == []


def test_one_of_several_traces_is_shown(log_page: LogPage) -> None:
    one = samples.trace("one", samples.event(1, "quic:packet_sent"))
    two = samples.trace("two", samples.event(1, "quic:a"), samples.event(2, "quic:b"))
    log_page.open(samples.contained(one, two))
    assert log_page.texts("#log-trace option") == ["1: one, 1 event", "2: two, 2 events"]
    assert log_page.fact("title") == "one"
    log_page.enter("log-trace", "1")
    log_page.browser.wait("document.querySelector('[data-fact=title]').textContent === 'two'")
    log_page.shown(2, 2)


@pytest.mark.slow
def test_many_events_have_few_elements(log_page: LogPage) -> None:
    events = (
        samples.event(number / 10, "quic:packet_sent", **samples.packet("1RTT", number, 1200))
        for number in range(300_000)
    )
    log_page.open(samples.sequence({"qlog_version": "0.3", "trace": {}}, events))
    log_page.shown(300_000, 300_000)
    press_end = "(one => { one.scrollTop = one.scrollHeight })(document.querySelector('#log-events'))"
    log_page.browser.evaluate(press_end)
    log_page.browser.wait("document.querySelector('#log-events').textContent.includes('29.999900 s')")
    assert log_page.browser.evaluate("document.querySelectorAll('#log-events [role=option]').length") < 60
