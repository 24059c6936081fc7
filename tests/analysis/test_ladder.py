from __future__ import annotations

import itertools
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from tests.analysis.fake_trace import MSS, trace

from longfat import _native
from longfat.analysis import ladder, series_events
from longfat.presentation.trace.ladder import labels, lines, svg

GOLDEN = Path(__file__).parent / "go_back_n_ladder.txt"


def traced(kind: str, packets: list[int], **keys: Any) -> ladder.Ladder:
    """Returns the ladder of a file of 12 packets; the link loses the packets with these numbers."""
    path = {
        "rate": "10Mbit/s",
        "delay": "5ms",
        "loss": {"packets": packets},
        "reverse": {"loss": "0%"},
    }
    spec = {
        "path": path,
        "protocol": {"kind": kind, **keys},
        "workload": {"kind": "file", "size": "12000B"},
        "seed": 1,
        "trial": 0,
    }
    record = json.loads(_native.trace(json.dumps(spec)))
    return ladder.read(record["events"])


# The first two packets on the link belong to the handshake.
LOST = [6]


def test_go_back_n_retransmits_its_window() -> None:
    whole = traced("go-back-n", LOST, window=4)
    (lost,) = [flight for flight in whole.flights if flight.dropped is not None]
    assert (lost.frame, lost.data, lost.forward, lost.reason) == ("data", (3, 4), True, "loss")
    (timeout,) = [mark for mark in whole.marks if mark.kind == "timeout"]
    assert timeout.text == "timeout: retransmits 3-6"
    assert [flight.label for flight in whole.flights if flight.is_retransmission] == [
        f"data {n}" for n in (3, 4, 5, 6)
    ]
    assert [mark.text for mark in whole.marks if mark.kind == "discarded"] == [
        "discards 4",
        "discards 5",
        "discards 6",
    ]
    delivered = [mark.text for mark in whole.marks if mark.kind == "delivered"]
    assert delivered == [f"delivers {n}" for n in range(12)]


def test_selective_repeat_retransmits_the_lost_packet_only() -> None:
    whole = traced("selective-repeat", LOST, window=4)
    assert [flight.label for flight in whole.flights if flight.is_retransmission] == ["data 3"]
    assert [mark.text for mark in whole.marks if mark.kind == "kept"] == ["keeps 4", "keeps 5", "keeps 6"]
    assert "delivers 3-6" in [mark.text for mark in whole.marks]
    assert "ack 3 +4-6" in [flight.label for flight in whole.flights]


def test_the_part_shown_is_around_the_first_loss() -> None:
    whole = traced("go-back-n", [14], window=4)
    shown = ladder.cut(whole, packets=8)
    assert len(shown.flights) == 8
    assert any(flight.dropped is not None for flight in shown.flights) or shown.more > 0
    begin = next(flight for flight in shown.flights if flight.frame == "data")
    assert begin.data is not None
    assert begin.data[0] > 0
    none = ladder.cut(traced("go-back-n", [], window=4))
    assert none.flights[0].frame == "open"


def test_the_shown_part_is_selectable() -> None:
    whole = traced("go-back-n", LOST, window=4)
    shown = ladder.cut(whole, 0.02, 0.03)
    assert all(0.02 <= flight.sent <= 0.03 for flight in shown.flights)
    assert shown.more == len([flight for flight in whole.flights if flight.sent > 0.03])
    with pytest.raises(ValueError, match="--from"):
        ladder.cut(whole, 100.0)


def test_svg_is_complete_and_contains_every_packet() -> None:
    shown = ladder.cut(traced("go-back-n", LOST, window=4))
    drawing = svg.draw(shown, "gbn <4>", "path.loss & more")
    root = ET.fromstring(drawing)
    texts = ["".join(element.itertext()) for element in root.iter() if element.tag.endswith("}text")]
    for flight in shown.flights:
        assert flight.label in texts
    for word in (
        "sender",
        "receiver",
        "lost",
        "timeout",
        "retransmits 3-6",
        "discards 4",
        "delivers 3",
        "gbn <4>",
    ):
        assert word in texts
    assert not re.search(r'(href|src)="', drawing)
    height = float(root.attrib["height"])
    places = [float(element.attrib["y"]) for element in root.iter() if element.tag.endswith("}text")]
    assert max(places) < height


def test_time_runs_down_and_text_does_not_overlap() -> None:
    shown = ladder.cut(traced("go-back-n", LOST, window=4))
    scale = svg.Scale(shown)
    assert scale.places == sorted(scale.places)
    positions = sorted(scale(mark.time) for mark in shown.marks if mark.host == "receiver")
    assert all(b - a >= svg.ROW - 1e-9 for a, b in itertools.pairwise(positions))
    # The scale covers times between and after those of the packets.
    assert scale(-1.0) == scale.places[0]
    assert scale(1e6) == scale.end


def test_long_idle_periods_are_shortened_and_marked() -> None:
    shown = ladder.cut(traced("go-back-n", LOST, window=4, rto="5s"))
    scale = svg.Scale(shown)
    assert scale.breaks
    assert scale.end < 2000


def test_text_matches_the_golden_file() -> None:
    shown = ladder.cut(traced("go-back-n", LOST, window=4))
    assert lines.draw(shown, "gbn", "one loss") == GOLDEN.read_text(encoding="utf-8")


def test_page_is_html_around_the_drawing() -> None:
    page = svg.page(["<svg></svg>"], "a & b")
    assert page.startswith("<!doctype html>")
    assert "<title>a &amp; b</title>" in page


def at_once(kind: str, packets: list[int], **keys: Any) -> ladder.Ladder:
    """Returns the ladder of a file over a link of unlimited rate: a window arrives within one nanosecond."""
    spec = {
        "path": {"delay": "5ms", "loss": {"packets": packets}, "reverse": {"loss": "0%"}},
        "protocol": {"kind": kind, "window": 4, **keys},
        "workload": {"kind": "file", "size": "8192B"},
        "seed": 1,
        "trial": 0,
    }
    return ladder.read(json.loads(_native.trace(json.dumps(spec)))["events"])


def test_packets_that_arrive_at_once_are_each_delivered_once() -> None:
    # The two packets before the data belong to the handshake.
    whole = at_once("selective-repeat", [4])
    texts = [mark.text for mark in whole.marks if mark.kind != "timeout"]
    assert texts[:3] == ["delivers 0", "keeps 2", "keeps 3"]
    delivered = [piece for mark in whole.marks if mark.kind == "delivered" for piece in mark.data]
    assert series_events.joined(delivered) == [(0, 8)]
    drawn = lines.draw(whole, "", "")
    for mark in (mark for mark in whole.marks if mark.kind != "timeout"):
        assert drawn.count(f"  {mark.text}\n") == 1, mark.text


def test_simultaneous_arrivals_share_a_mark() -> None:
    whole = at_once("go-back-n", [])
    texts = [mark.text for mark in ladder.together(whole.marks)]
    assert texts == ["delivers 0-3", "delivers 4-7"]
    drawing = svg.draw(whole, "", "")
    assert drawing.count("delivers") == 2


def test_a_tcp_ladder_shows_bytes() -> None:
    whole = ladder.read(trace(seconds=0.3, lose_every=20)["events"])
    assert [flight.label for flight in whole.flights[:3]] == ["syn", "syn-ack", f"data 0-{MSS}"]
    lost = next(flight for flight in whole.flights if flight.dropped is not None)
    assert lost.label == f"data {19 * MSS}-{20 * MSS}"
    kept = [mark.text for mark in whole.marks if mark.kind == "kept"]
    assert kept[0] == f"keeps {20 * MSS}-{21 * MSS}"
    # The retransmission is delivered together with the data kept beyond the loss.
    delivery = next(mark for mark in whole.marks if mark.text.startswith(f"delivers {19 * MSS}-"))
    again = next(flight for flight in whole.flights if flight.is_retransmission)
    assert delivery.packet == again.number
    assert delivery.data[0][1] > 20 * MSS
    ack = next(flight for flight in whole.flights if flight.sack)
    assert ack.label == f"ack {19 * MSS} +{20 * MSS}-{21 * MSS}"
    assert svg.draw(ladder.cut(whole), "tcp", "").startswith("<svg")


def test_a_part_shows_every_ack_of_its_arrivals() -> None:
    """A part ends at a time: it contains both an arrival and its ACK, or neither."""
    whole = traced("selective-repeat", LOST, window=4)
    for packets in range(3, 30):
        shown = ladder.cut(whole, 0.0, packets=packets)
        assert packets <= len(shown.flights) < packets + 5
        arrivals = sum(len(f.arrived) for f in shown.drawn if f.forward and f.frame == "data")
        acks = [f for f in shown.flights if not f.forward and f.frame == "ack"]
        assert len(acks) == arrivals
        assert all(mark.time <= shown.end for mark in shown.marks)
    late = ladder.cut(whole, 0.02, 0.03)
    acks = [f for f in late.flights if not f.forward and f.frame == "ack"]
    assert len(acks) == sum(
        f.forward and f.frame == "data" for f in late.drawn for t in f.arrived if t >= 0.02
    )
    assert any(f.sent < 0.02 for f in late.arriving)


def test_packets_in_flight_are_drawn_up_to_the_edge() -> None:
    shown = ladder.cut(traced("go-back-n", LOST, window=4), 0.0, 0.012)
    (on_the_way, *_) = [flight for flight in shown.flights if flight.later]
    assert on_the_way.arrived == ()
    drawing = svg.draw(shown, "gbn", "")
    heads = drawing.count('Z"')
    assert heads == sum(len(flight.arrived) for flight in shown.drawn)
    assert "delivers" not in lines.draw(ladder.cut(shown, 0.0, 0.011), "", "")


def test_ladders_share_a_time_scale() -> None:
    wholes = [traced(kind, LOST, window=4) for kind in ("go-back-n", "selective-repeat")]
    parts = ladder.cut_alike(wholes, packets=20)
    assert len({(part.begin, part.end) for part in parts}) == 1
    assert 20 <= max(len(part.flights) for part in parts) < 24
    drawing = svg.draw_panels([svg.Panel(part, name, "") for part, name in zip(parts, "ab", strict=True)])
    root = ET.fromstring(drawing)
    assert float(root.attrib["width"]) == 2 * svg.WIDTH
    lost = [float(e.attrib["y"]) for e in root.iter() if e.tag.endswith("}text") and e.text == "lost"]
    # Each label occurs once per legend and once per ladder; a packet has the same height in both ladders.
    assert len(lost) == 4
    assert len(set(lost)) == 2


@pytest.mark.parametrize(("fmt", "magic"), [("png", b"\x89PNG"), ("pdf", b"%PDF-")])
def test_a_ladder_exports_as_picture(fmt: Any, magic: bytes) -> None:
    shown = ladder.cut(traced("go-back-n", LOST, window=4))
    drawing = svg.draw(shown, "gbn", "one loss")
    assert svg.picture(drawing, fmt).startswith(magic)


def test_a_picture_has_the_colours_of_the_drawing() -> None:
    drawing = svg.draw(ladder.cut(traced("go-back-n", LOST, window=4)), "gbn", "")
    static = svg.static(drawing)
    assert "var(" not in static
    assert "prefers-color-scheme" not in static
    assert "#d55e00" in static


@pytest.mark.parametrize("kind", ["go-back-n", "selective-repeat"])
def test_labels_do_not_overlap(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    created: list[labels.LabelPlaces] = []

    class Recorded(labels.LabelPlaces):
        def __init__(self) -> None:
            super().__init__()
            created.append(self)

    monkeypatch.setattr(svg, "LabelPlaces", Recorded)
    whole = traced(kind, [2, 4, 8, 9], window=6)
    drawing = svg.draw(whole, "t", "s")
    (places,) = created
    assert len(places.taken) >= len(whole.flights)
    assert not any(a.overlaps(b) for a, b in itertools.combinations(places.taken, 2))
    # The labels are where their boxes are.
    drawn = set(re.findall(r"translate\(([\d.]+ [\d.]+)\) rotate", drawing))
    assert drawn <= {f"{box.x:.1f} {box.y:.1f}" for box in places.taken}
    assert all(f"data {number}<" in drawing for number in range(12))


def test_the_handshake_is_explained_where_it_shows() -> None:
    whole = traced("go-back-n", LOST, window=4)
    for part, shown in ((whole, True), (ladder.cut(whole, first=0.03), False)):
        assert (ladder.SETUP in lines.draw(part, "t", "s")) == shown
        assert ("challenge: returns a token" in svg.draw(part, "t", "s")) == shown
