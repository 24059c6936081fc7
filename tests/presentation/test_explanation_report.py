"""The charts and the HTML report of an explained capture."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.browser import Browser
from tests.presentation.captured import (
    Document,
    capture,
    connection,
    direction,
    interval,
    lossy,
    point,
    shown,
)

from longfat.analysis.captures import confidence, explained
from longfat.analysis.captures.replayed import Change, Replay
from longfat.api.explanations import Explanation
from longfat.presentation.charts.files import render
from longfat.presentation.measured import explanation_charts, explanation_sequence, explanation_text
from longfat.presentation.measured.explanation_charts import over_time
from longfat.presentation.measured.explanation_evidence import evidence
from longfat.presentation.measured.explanation_page import page as report
from longfat.results.run import Interval

REPLAY = Replay(
    1.0,
    {},
    {"cubic": 0.9, "reno": 0.1},
    Interval(1.05, 0.95, 1.15),
    (
        Change("half the RTT", Interval(0.61, 0.5, 0.7), 0.03),
        Change("no random loss", Interval(0.4, 0.3, 0.5), None),
    ),
    Change("no change", Interval(1.04, 0.8, 1.4), 0.061),
)


def explanation(*more: Document, replay: Replay | None = None, **figures: Any) -> Explanation:
    """Returns the explanation of a lossy transfer."""
    document = capture(connection(0, lossy(**figures)), *more)
    return Explanation(document, explained.directions(document["connections"][0])[0], replay)


def objects(part: Any) -> Iterator[dict[str, Any]]:
    """Yields all objects of a specification."""
    if isinstance(part, dict):
        yield part
    inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    for one in inner:
        yield from objects(one)


def channels(spec: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Returns the encodings of a channel, in order."""
    return [one["encoding"][name] for one in objects(spec) if name in one.get("encoding", ())]


def titles(spec: dict[str, Any]) -> list[str]:
    """Returns the titles of the vertical axes."""
    return list(dict.fromkeys(y["title"] for y in channels(spec, "y") if "title" in y))


def top(panel: dict[str, Any]) -> float:
    """Returns the end of a panel's vertical axis."""
    end: float = channels(panel, "y")[0]["scale"]["domain"][1]
    return end


def rows(panel: dict[str, Any], **wanted: str) -> list[dict[str, Any]]:
    """Returns the rows of a panel with these values."""
    values = [row for one in objects(panel) for row in one.get("values", ())]
    return [row for row in values if all(row.get(key) == value for key, value in wanted.items())]


def legend(panel: dict[str, Any]) -> list[str]:
    """Returns the entries of a panel's lines. The first colours are those of the causes."""
    names: list[str] = channels(panel, "color")[1]["scale"]["domain"]
    return names


def content(html: str) -> str:
    """Returns a page without its scripts, drawings and styles."""
    return re.sub(r"<(script|svg|style)\b.*?</\1>", "", html, flags=re.DOTALL)


def text_of(html: str) -> str:
    """Returns the text of a page."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", content(html))).replace("\N{NO-BREAK SPACE}", " ")


def headings(html: str) -> list[str]:
    return re.findall(r"<h2>(.*?)</h2>", content(html))


def test_every_cause_has_a_colour_a_name_and_a_limit() -> None:
    assert set(explanation_charts.COLOURS) == set(explained.GROUPS) == set(explanation_text.CAUSES)
    assert len(set(explanation_charts.COLOURS.values())) == len(explained.GROUPS)


def test_panels_share_the_time_axis_and_the_causes() -> None:
    one = explanation().one
    assert one is not None
    spec = over_time(one)
    assert titles(spec) == ["Window (kB)", "RTT (ms)", "Throughput (Mbit/s)"]
    band, *panels = spec["vconcat"]
    assert band["data"] == {"name": "causes"}
    assert [panel["layer"][0]["data"] for panel in panels] == [{"name": "causes"}] * 3
    assert all(x["scale"]["domain"] == [0, pytest.approx(1.0)] for x in channels(spec, "x"))
    assert [row["cause"] for row in spec["datasets"]["causes"]] == [
        "handshake",
        "slow start",
        "loss without a queue",
    ]
    assert [row["frames"] for row in spec["datasets"]["causes"]] == ["\N{EN DASH}", "4 to 90", "91 to 1400"]
    assert len(spec["params"][0]["views"]) == 4
    assert b"loss without a queue" in render(spec, "svg")


def test_the_chart_is_valid_in_notebooks() -> None:
    made = explanation(packets=PACKETS).chart()
    assert len(made.vconcat) == 5


def test_a_slice_shows_its_figures_and_its_cause_under_the_pointer() -> None:
    spec = over_time(shown(lossy()["series"], lossy()["intervals"]))
    again = spec["datasets"]["slices"][3]
    assert again == {
        "time": pytest.approx(0.2),
        "until": pytest.approx(0.25),
        "when": "0.2000 s to 0.2500 s (50.0 ms)",
        "cause": "loss without a queue",
        "frames": "91 to 1400",
        "flight": "10.0 kB",
        "window": "64.0 kB",
        "rtt": "50.0 ms",
        "rate": "8.00 Mbit/s",
        "again": 2,
    }


def test_lines_show_references_in_the_unit_of_their_panel() -> None:
    _, window, rtt, throughput = over_time(shown(lossy()["series"], lossy()["intervals"]))["vconcat"]
    assert legend(window) == ["bytes in flight", "receive window"]
    assert max(row["y"] for row in rows(window, quantity="bytes in flight")) == 40
    assert {row["y"] for row in rows(rtt, quantity="idle RTT 50.0 ms")} == {50}
    assert {row["y"] for row in rows(throughput, quantity="bottleneck 10.0 Mbit/s of payload")} == {10}
    (mark,) = rows(throughput, quantity="retransmissions")
    assert mark["time"] == pytest.approx(0.225)


def test_references_far_above_the_measured_values_do_not_hide_them() -> None:
    series = [point(0.075 + 0.05 * step, window=900_000) for step in range(9)]
    _, window, _, throughput = over_time(shown(series, [], path={"rate_bps": 100e6}))["vconcat"]
    assert legend(window)[1] == "receive window, above: 900 kB or more"
    assert legend(throughput)[1] == "bottleneck, above: 100 Mbit/s of payload"
    assert top(window) == pytest.approx(12.5)
    assert top(throughput) == pytest.approx(10.0)


def test_lines_stop_in_pauses() -> None:
    pause = point(0.6, flight=0, window=0, rtt_s=None, rate_bps=0.0)
    intervals = [
        interval(0.05, 0.1, "slow-start", 4, 9),
        interval(0.1, 1.1, "application"),
        interval(1.1, 1.2, "slow-start", 10, 12),
    ]
    _, window, rtt, _ = over_time(
        shown([point(0.075, window=15_000), pause, point(1.15, window=15_000)], intervals)
    )["vconcat"]
    for panel, name in ((window, "receive window"), (rtt, "RTT")):
        drawn = rows(panel, quantity=name)
        assert len({row["piece"] for row in drawn}) == 2
        assert [row["time"] for row in drawn] == pytest.approx([0.05, 0.1, 1.1, 1.2])
    assert len({row["piece"] for row in rows(window, quantity="bytes in flight")}) == 1


def test_panels_without_data_are_absent() -> None:
    series = [point(0.075, rtt_s=None), point(0.125, rtt_s=None)]
    spec = over_time(shown(series, [interval(0.05, 0.15, "application", 1, 2)], path={"rate_bps": None}))
    assert titles(spec) == ["Window (kB)", "Throughput (Mbit/s)"]
    assert legend(spec["vconcat"][-1]) == ["throughput"]
    only = over_time(shown([], [interval(0.0, 0.05, "handshake")]))
    assert len(only["vconcat"]) == 1
    assert only["vconcat"][0]["encoding"]["x"]["axis"].get("labels", True)


def test_charts_of_long_captures_are_bounded() -> None:
    series = [point(0.075 + 0.05 * step, repeated=1) for step in range(4096)]
    intervals = [
        interval(
            0.05 + 0.1 * step, 0.15 + 0.1 * step, ("bandwidth", "random-loss")[step % 2], step + 1, step + 1
        )
        for step in range(2048)
    ]
    spec = over_time(shown(series, intervals))
    assert len(spec["datasets"]["slices"]) <= explanation_charts.MOST_SLICES
    assert len(spec["datasets"]["causes"]) <= explanation_charts.MOST_BANDS
    assert all(
        len(rows(panel, quantity=name)) <= 2 * explanation_charts.MOST_SLICES
        for panel in spec["vconcat"][1:]
        for name in legend(panel)
    )


def packet(time: float, kind: str, low: int, high: int, frame: int) -> Document:
    return {"time_s": time, "kind": kind, "from": low, "to": high, "frame": frame}


PACKETS = [
    packet(0.1, "data", 0, 1000, 4),
    packet(0.1, "data", 1000, 2000, 5),
    packet(0.2, "ack", 0, 1000, 6),
    packet(0.2, "window", 1000, 2100, 6),
    packet(0.3, "sack", 1500, 2000, 7),
    packet(0.4, "again", 1000, 1500, 8),
    packet(0.5, "ack", 1000, 2000, 9),
    packet(0.5, "window", 2000, 90_000, 9),
]


def test_packets_are_a_time_sequence_graph_with_frames() -> None:
    series, intervals = lossy()["series"], lossy()["intervals"]
    spec = over_time(shown(series, intervals, packets=PACKETS))
    panel = spec["vconcat"][-1]
    assert titles(panel) == ["Sequence (kB)"]
    assert legend(panel) == ["sent", "retransmitted", "acknowledged", "received (SACK)", "receive window"]
    sent = rows(panel, what="sent")
    assert [(row["y"], row["high"], row["frame"]) for row in sent] == [(0, 2, 4)]
    # As tick and as mark.
    assert [(row["y"], row["high"], row["frame"]) for row in rows(panel, what="retransmitted")] == [
        (1, 1.5, 8)
    ] * 2
    assert {(row["time"], row["y"], row["frame"]) for row in rows(panel, what="acknowledged")} == {
        (0.2, 1, 6),
        (0.5, 2, 9),
    }
    # The last window is far above the data.
    assert [row["y"] for row in rows(panel, what="receive window")] == [2.1]
    assert "Sequence (kB)" not in titles(over_time(shown(series, intervals)))
    assert b"retransmitted" in render(spec, "svg")


def test_the_time_sequence_graph_is_bounded() -> None:
    packets = []
    for step in range(20_000):
        packets.append(packet(0.001 * step, "data", 3000 * step, 3000 * step + 1000, 2 * step + 1))
        packets.append(packet(0.001 * step, "ack", 0, 3000 * step, 2 * step + 2))
    spec = over_time(shown([point(10.0)], [interval(0.05, 20.0, "bandwidth", 1, 40_000)], packets=packets))
    panel = spec["vconcat"][-1]
    for what in ("sent", "acknowledged"):
        # ACKs are a line and marks for the pointer.
        assert 0 < len(rows(panel, what=what)) <= 2 * explanation_sequence.MOST


def test_the_report_has_every_part() -> None:
    others = [
        connection(stream, direction([], [interval(0, 1, "bandwidth", 1, 9)])) for stream in range(1, 14)
    ]
    times = {"random-loss": 0.7, "slow-start": 0.15, "application": 0.1, "handshake": 0.05}
    causes = [{"cause": cause, "time_s": time} for cause, time in times.items()]
    found = explanation(*others, replay=REPLAY, unseen_bytes=4344, causes=causes)
    html = report(found)
    text = text_of(html)
    assert found.verdict in text
    assert headings(html) == [
        "Causes",
        "Over time",
        "Replay",
        "Path",
        "Connections",
        "Notes",
        "All figures",
    ]
    for shown_text in (
        "handshake 5.0 %",
        "slow start 15 %",
        "Sender: probably CUBIC 90 %",
        "no random loss 0.400 [0.300, 0.500] \N{EN DASH}",
        "half the RTT 0.610 [0.500, 0.700] 30.0",
        "RTT 50.0 ms idle",
        "10.0.0.1:40009 to 10.0.0.2:443",
        "4.34 kB were acknowledged but not captured",
    ):
        assert shown_text in text, shown_text
    assert "10.0.0.1:40010" not in text
    assert text.index("no random loss") < text.index("half the RTT")
    assert text.count("Duration (s)") == 1
    # One file without others.
    assert not re.search(r"\b(src|href)=", content(html))


@pytest.mark.parametrize(
    ("cause", "text"),
    [
        ("random-loss", "9 of 100 packets retransmitted; a queue below 5.00 ms would look the same"),
        ("queue-overflow", "9 of 100 packets retransmitted"),
        ("burst", "9 of 100 packets retransmitted"),
        ("timeout", "1 timeout"),
        ("policer", "9 retransmissions; 5.18 Mbit/s between losses"),
        ("reordering", "1 unnecessary retransmission (DSACK)"),
        ("pacing", "full segments at regular intervals, flight of 10.0 kB"),
        ("send-buffer", "flight of 10.0 kB"),
        ("slow-start", "flight grew from 5.00 kB to 10.0 kB"),
        ("window-growth", "flight grew from 5.00 kB to 10.0 kB"),
        ("bufferbloat", "payload at 8.00 Mbit/s, mean queue of 80.0 ms"),
        ("application", "small or late writes: 100 packets in 400 ms"),
    ],
)
def test_the_evidence_of_a_cause_is_that_of_its_longest_interval(cause: str, text: str) -> None:
    figures: dict[str, Any] = {"repeated": 9, "spurious": 1, "timeouts": 1, "queue_s": 0.08}
    others: dict[str, Any] = {
        "packets": 7,
        "repeated": 3,
        "spurious": 3,
        "timeouts": 3,
        "flight": 60_000,
        "first_flight": 1,
        "queue_s": 0.01,
        "rate_bps": 1e6,
    }
    intervals = [interval(0.0, 0.1, cause, **others), interval(0.4, 0.8, cause, **figures)]
    document = {"policer_bps": 5e6, "path": {"flight": 60_000, "standing_queue_s": 0.02}}
    assert evidence(shown([], intervals, **document), cause) == text


@pytest.mark.parametrize("cause", ["application", "request"])
def test_pauses_are_counted(cause: str) -> None:
    pauses = [interval(0.0, 0.1, cause, packets=0), interval(0.4, 0.8, cause, packets=0)]
    assert evidence(shown([], pauses[1:]), cause) == "pause of 400 ms"
    assert evidence(shown([], pauses), cause) == "2 pauses, the longest 400 ms"


def test_a_small_receive_window_is_compared_with_the_path() -> None:
    one = shown([], [interval(0.0, 1.0, "receive-window", window=20_000)])
    assert evidence(one, "receive-window") == "window of 20.0 kB per 50.0 ms; the path needs 62.5 kB"
    unknown = shown([], [interval(0.0, 1.0, "receive-window")], path={"rate_bps": None})
    assert evidence(unknown, "receive-window") == "window of 64.0 kB per 50.0 ms"


def test_confidence_is_high_only_in_the_largest_limit() -> None:
    parts = {"random-loss": 0.65, "slow-start": 0.2, "application": 0.1, "bufferbloat": 0.05}
    causes = [{"cause": cause, "time_s": time} for cause, time in parts.items()]
    one = shown([], [], causes=causes)
    assert [confidence.of_cause(one, cause) for cause in parts] == ["high", "medium", "medium", "low"]
    # Next to a cause of the same limit.
    parts = {"random-loss": 0.95, "queue-overflow": 0.05}
    causes = [{"cause": cause, "time_s": time} for cause, time in parts.items()]
    one = shown([], [], causes=causes)
    assert [confidence.of_cause(one, cause) for cause in parts] == ["high", "low"]


def test_changes_are_compared_with_the_transfer_without_a_change() -> None:
    table = explanation_text.changes(REPLAY)
    assert [row[0] for row in table.rows] == ["no change", "no random loss", "half the RTT"]
    assert table.rows[0][1:] == ("1.04 [0.800, 1.40]", "61.0")
    simulated, brackets = explanation_text.replayed(REPLAY)[1:3]
    assert simulated.startswith("Simulated: 1.05 s (captured 1.00 s;")
    assert brackets == "With changes ([95 % of such transfers]):"


def test_subflows_are_no_further_connections() -> None:
    found = explanation(connection(1, direction([], [])), connection(2, direction([], [])))
    for one in found.document["connections"][:2]:
        one["multipath"] = 0
    assert "1 more connection (--connections" in "\n".join(explanation_text.notes(found.document, found.one))


@pytest.mark.parametrize("client", ["127.0.0.1:40000", "[::1]:40000"])
def test_a_connection_on_loopback_may_hide_the_path_of_a_relay(client: str) -> None:
    found = explanation()
    assert explanation_text.notes(found.document, found.one) == []
    found.document["connections"][0]["client"] = client
    (note,) = explanation_text.notes(found.document, found.one)
    assert note.startswith("Both ends are on this machine. A connection to a relay")


def test_parts_without_content_are_absent() -> None:
    assert headings(report(explanation())) == ["Causes", "Over time", "Path", "All figures"]


def test_a_replay_that_does_not_fit_shows_why() -> None:
    html = report(explanation(replay=Replay(1.0, {}, {}, problem="the simulation takes 3.00 times as long")))
    assert "No predictions: the simulation takes 3.00 times as long" in text_of(html)
    assert "<th>Change" not in html


def test_the_figures_have_no_lists_over_time() -> None:
    found = explanation(*(connection(stream, direction([], [])) for stream in range(1, 30)))
    code = re.search(r"<code>(.*?)</code>", report(found), re.DOTALL)
    assert code is not None
    figures = json.loads(code[1].replace("&quot;", '"').replace("&#x27;", "'"))
    assert [one["stream"] for one in figures["connections"]] == list(range(explanation_text.MOST_CONNECTIONS))
    first = figures["connections"][0]["directions"][0]
    assert {"series", "intervals"} & set(first) == set()
    assert first["packets"] == 700
    assert first["path"]["base_rtt_s"] == 0.05
    assert figures["explained"]["limit"] == "loss"
    # The document itself stays whole.
    assert found.document["connections"][0]["directions"][0]["series"]


def test_text_of_a_capture_is_escaped() -> None:
    found = explanation()
    document = {**found.document, "ended_early": "<b>cut</b>"}
    assert "&lt;b&gt;cut&lt;/b&gt;" in report(Explanation(document, found.one))


def test_a_capture_without_tcp_has_no_report(tmp_path: Path) -> None:
    empty = Explanation(capture(), None)
    with pytest.raises(ValueError, match="no TCP connection"):
        report(empty)
    assert empty.drawing() is None


DRAWN = "document.querySelector('.vega-embed svg')"


@pytest.mark.slow
def test_the_report_fits_screens_and_phones_in_both_schemes(page: Browser, tmp_path: Path) -> None:
    explanation(replay=REPLAY, packets=PACKETS).write(tmp_path / "report.html")
    for width in (1280, 400):
        for scheme in ("light", "dark"):
            page.resize(width)
            page.emulate("prefers-color-scheme", scheme)
            assert page.open((tmp_path / "report.html").as_uri()) == []
            page.wait(DRAWN)
            assert page.complaints() == []
            assert page.overflow() == 0
            assert (
                page.evaluate("(c => c.scrollWidth - c.clientWidth)(document.querySelector('.chart'))") == 0
            )
            fill = page.evaluate("getComputedStyle(document.querySelector('.role-axis-label text')).fill")
            assert (max(map(int, re.findall(r"\d+", fill))) > 128) == (scheme == "dark")
    page.emulate("prefers-color-scheme", "light")


@pytest.mark.slow
def test_panels_show_figures_and_frames_under_the_pointer(page: Browser, tmp_path: Path) -> None:
    explanation().write(tmp_path / "report.html")
    page.resize(1280)
    page.open((tmp_path / "report.html").as_uri())
    page.wait(DRAWN)
    page.evaluate(f"{DRAWN}.scrollIntoView()")
    left, top = page.evaluate(f"(r => [r.left, r.top])({DRAWN}.getBoundingClientRect())")
    for y in (50, 180):
        page.call("Input.dispatchMouseEvent", type="mouseMoved", x=left + 700, y=top + y)
        page.wait("document.querySelector('#vg-tooltip-element.visible')")
        text = page.evaluate("document.querySelector('#vg-tooltip-element').textContent")
        assert "91 to 1400" in text
        assert ("Bytes in flight" in text) == (y == 180)
