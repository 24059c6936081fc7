"""Time series of a trial: reading, thinning and drawing a trace in the simulator's format."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from itertools import pairwise
from typing import Any

import pytest
from tests.analysis.fake_trace import ISN, MSS, RTT, trace

from longfat.analysis import series, series_sequence
from longfat.analysis.series_sequence import Piece, TimeSequence
from longfat.presentation.charts import files as chart_files
from longfat.presentation.formatting import DASH
from longfat.presentation.trace import bars, charts
from longfat.presentation.trace.drawing import OVER_TIME, Trace, View, draw

ALL = ["window", "rtt", "queue", "goodput", "sequence"]


def read(record: dict[str, Any]) -> tuple[series.Series, tuple[TimeSequence, ...]]:
    shown = series.read(record["series"])
    return shown, series_sequence.read(record["events"], {flow.number: flow.name for flow in shown.flows})


def test_positions_count_from_the_first_byte_and_survive_wrapping() -> None:
    _, (one,) = read(trace(seconds=2.0))
    assert ISN + one.sent[-1].high > 2**32
    assert one.sent[0].low == 0
    new = [piece for piece in one.sent if piece.kind == "sent"]
    assert all(after.low == before.high for before, after in pairwise(new))
    assert one.edges[-1].acknowledged <= max(piece.high for piece in one.sent)
    reached = [edge.acknowledged for edge in one.edges]
    assert reached == sorted(reached)
    assert one.edges[-1].allowed == one.edges[-1].acknowledged + 400_000


def test_losses_retransmissions_and_sacks_are_those_of_the_events() -> None:
    record = trace(seconds=2.0)
    _, (one,) = read(record)
    drops = [event for event in record["events"] if event["what"] == "drop"]
    assert [loss.reason for loss in one.lost] == ["queue"] * len(drops)
    assert one.retransmissions == len(drops) > 0
    for loss, again in zip(one.lost, (p for p in one.sent if p.kind == "retransmitted"), strict=True):
        assert (again.low, again.high) == (loss.low, loss.high) == (again.low, again.low + MSS)
    # Data kept beyond a loss is drawn once, block by block.
    beyond = [piece for piece in one.kept if one.lost[0].time < piece.time < one.lost[1].time]
    assert beyond[0].low == one.lost[0].high
    assert all(after.low == before.high for before, after in pairwise(beyond))


def event(what: str, direction: str, frame: str, **more: Any) -> dict[str, Any]:
    host = "sender" if (what == "send") == (direction == "forward") else "receiver"
    common = {"time": 0.0, "flow": 0, "id": 1, "size": 52, "sequence": 0, "acknowledgement": 0, "length": 0}
    return {**common, "what": what, "direction": direction, "frame": frame, "host": host, **more}


def test_a_block_below_or_inside_another_is_a_duplicate() -> None:
    # RFC 2883, sections 4.1 and 4.2: below the acknowledgement, and inside the second block.
    events = [
        event("send", "forward", "syn", sequence=99, id=1),
        event("send", "forward", "data", sequence=100, length=4000, id=2),
        event("receive", "reverse", "ack", acknowledgement=1100, sack=[[600, 1100]], time=1.0),
        event("receive", "reverse", "ack", acknowledgement=1100, sack=[[2100, 2600], [1600, 3100]], time=2.0),
        event("receive", "reverse", "ack", acknowledgement=1100, sack=[[1600, 3600]], time=3.0),
    ]
    (one,) = series_sequence.read(events, {0: "s1"})
    twice, kept = "duplicate (D-SACK)", "received (SACK)"
    assert [(p.time, p.low, p.high, p.kind) for p in one.kept] == [
        (1.0, 500, 1000, twice),
        (2.0, 2000, 2500, twice),
        (2.0, 1500, 3000, kept),
        (3.0, 3000, 3500, kept),
    ]


def test_protocols_that_number_packets_have_a_sequence_too() -> None:
    def frame(what: str, direction: str, frame: str, time: float, **more: Any) -> dict[str, Any]:
        built = event(what, direction, frame, time=time, **more)
        del built["length"]
        return built

    events = [
        frame("send", "forward", "open", 0.0, id=1),
        frame("send", "forward", "data", 0.1, id=2, sequence=0, size=1084),
        frame("send", "forward", "data", 0.2, id=3, sequence=1, size=1084),
        frame("receive", "reverse", "ack", 0.3, id=4, acknowledgement=1, sack=[[3, 5]]),
    ]
    (one,) = series_sequence.read(events, {0: "sender"})
    assert one.unit == "packets"
    assert [(piece.low, piece.high) for piece in one.sent] == [(0, 1), (1, 2)]
    assert [(edge.acknowledged, edge.allowed) for edge in one.edges] == [(1, None)]


def test_thinning_hides_no_byte_and_no_retransmission() -> None:
    _, (one,) = read(trace(seconds=4.0, lose_every=60))
    assert one.retransmissions > 10
    drawn = series_sequence.thinned(one.sent, RTT)
    assert len(drawn) < len(one.sent) / 4

    def covered(pieces: list[Piece], kind: str) -> set[int]:
        return {at for piece in pieces if piece.kind == kind for at in range(piece.low, piece.high, MSS)}

    for kind in ("sent", "retransmitted"):
        assert covered(drawn, kind) == covered(list(one.sent), kind)
    edges = series_sequence.thinned_edges(one.edges, RTT)
    assert (edges[0], edges[-1]) == (one.edges[0], one.edges[-1])
    assert len(edges) < len(one.edges) / 4


def test_thinned_samples_keep_extremes_and_gaps() -> None:
    values = tuple(None if 400 <= i < 500 else float(i % 97) for i in range(1000))
    values = (*values[:700], 1e6, *values[701:])
    one = series.Samples("s", tuple(i / 10 for i in range(1000)), {"y": values})
    drawn = series.points(one, "y", 100)
    assert len(drawn) <= 110
    assert (70.0, 1e6) in drawn
    assert any(value is None for _, value in drawn)
    assert series.points(one, "y", 1000) == list(zip(one.time, values, strict=True))


def test_an_unset_threshold_is_not_drawn() -> None:
    record = trace(seconds=2.0)
    flow = record["series"]["flows"][0]
    flow["ssthresh_bytes"] = [2**62 if value is None else value for value in flow["ssthresh_bytes"]]
    shown = series.read(record["series"])
    assert max(shown.flows[0].known("ssthresh_bytes")) < 1e6


def test_flows_are_chosen_by_name_and_cut_by_time() -> None:
    shown, _ = read(trace(flows=3, seconds=1.0))
    assert [flow.name for flow in series.choose(shown, ["s2"]).flows] == ["s2"]
    with pytest.raises(ValueError, match='no flow "s4"'):
        series.choose(shown, ["s4"])
    part = series.cut(shown, 0.5, 0.7)
    assert all(0.5 <= time <= 0.7 for one in (*part.flows, *part.queues) for time in one.time)
    with pytest.raises(ValueError, match="--from and --to"):
        series.cut(shown, 9.0, None)


def test_two_flows_of_one_host_have_different_names() -> None:
    record = trace(flows=2, seconds=0.5)
    for flow in record["series"]["flows"]:
        flow["name"] = "sender"
    assert [flow.name for flow in series.read(record["series"]).flows] == ["sender #0", "sender #1"]


def nested(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns all parts with their layers."""
    inner = [*spec.get("vconcat", ()), *spec.get("layer", ())]
    return [part for one in inner for part in (one, *nested(one))]


def views(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the unit charts of all parts."""
    return [part for part in nested(spec) if "mark" in part]


def test_charts_show_every_part_over_one_time() -> None:
    shown, sequences = read(trace(seconds=2.0))
    spec = charts.draw(shown, sequences, ALL, "reno: tcp <1>", "trial 0")
    assert len(spec["vconcat"]) == len(ALL)
    domains = {tuple(view["encoding"]["x"]["scale"]["domain"]) for view in views(spec)}
    assert len(domains) == 1
    assert set(spec["params"][0]["views"]) <= {view["name"] for view in views(spec) if "name" in view}
    rows = [row for part in nested(spec) for row in part.get("data", {}).get("values", [])]
    marked = {row["what"] for row in rows if "what" in row}
    assert marked >= {"sent", "retransmitted", "lost", "acknowledged", "received (SACK)"}
    assert {row["quantity"] for row in rows if "quantity" in row} >= {"congestion window", "in flight", "RTT"}
    assert {row["state"] for row in rows if "state" in row} == {"recovery"}
    again = [row for row in rows if row.get("what") == "retransmitted"]
    assert len({row["time"] for row in again}) == sequences[0].retransmissions
    svg = chart_files.render(spec, "svg").decode()
    assert ET.fromstring(svg) is not None
    assert "reno: tcp &lt;1&gt;" in svg


def test_the_number_of_drawn_flows_is_limited_by_colours() -> None:
    shown, sequences = read(trace(flows=11, seconds=0.3))
    spec = charts.draw(shown, sequences, ["goodput", "sequence"], "t", "s")
    assert len(spec["vconcat"]) == 1 + charts.MOST_SEQUENCES
    subtitle = " ".join(spec["title"]["subtitle"])
    assert "8 of 11 flows" in subtitle
    assert "4 of 11 flows" in subtitle


def test_text_shows_figures_and_losses() -> None:
    shown, sequences = read(trace(seconds=2.0))
    text = bars.draw(shown, sequences, ALL, "reno: tcp", "trial 0", 100)
    assert max(map(len, text.splitlines())) <= 100
    for phrase in (
        "congestion window",
        "smoothed RTT",
        "queue of bottleneck",
        "2 retransmissions",
        "ms later",
    ):
        assert phrase in text
    (line,) = [line for line in text.splitlines() if line.strip().startswith("congestion window")]
    assert "█" in line
    assert bars.draw(shown, sequences, ["rtt"], "", "").count("goodput") == 0


def of(*records: dict[str, Any]) -> list[Trace]:
    """Returns traced trials of the protocols a, b, and so on."""
    return [Trace(name, "sim", record, "t", "s") for name, record in zip("abcd", records, strict=False)]


@pytest.mark.parametrize("chart", [*OVER_TIME, "all"])
def test_every_chart_is_drawn_in_every_format(chart: str) -> None:
    record = trace(flows=2, seconds=0.5)
    text = draw(View("text", chart), of(record)).decode()
    assert text.startswith("t\ns\n")
    svg = draw(View("svg", chart, ("s2",), 0.1, 0.4), of(record))
    assert svg.startswith(b"<svg")


def test_pages_are_self_contained() -> None:
    page = draw(View("html", "window"), of(trace(seconds=0.5))).decode()
    assert "cdn." not in page.split("<script", 1)[0]
    assert 'src="http' not in page
    assert draw(View("png", "rtt"), of(trace(seconds=0.5))).startswith(b"\x89PNG")


def test_protocols_are_overlaid_in_a_colour_each() -> None:
    both = of(trace(seconds=0.5), trace(seconds=0.5, lose_every=50))
    (svg,) = [draw(View("svg", "window"), both).decode()]
    assert "s1 (a)" in svg
    assert "s1 (b)" in svg
    strokes = re.findall(r'aria-roledescription="line mark"[^>]*stroke="(#\w+)"', svg)
    assert len(set(strokes)) == 2
    text = draw(View("text", "all"), both).decode()
    for phrase in ("s1 (a)\n", "s1 (b)\n", "queue of bottleneck (b)", "s1 (a): ", "s1 (b): "):
        assert phrase in text


def test_a_trial_without_samples_has_no_charts() -> None:
    record = json.loads(json.dumps(trace(seconds=0.2)))
    del record["series"]
    with pytest.raises(ValueError, match="chart: window"):
        draw(View("text", "window"), of(record))


@pytest.mark.parametrize(
    ("label", "name"), [("TCP Reno", "sender (TCP Reno)"), ("Go-Back-N (gbn)", "sender (Go-Back-N, gbn)")]
)
def test_labels_of_overlaid_flows_have_one_pair_of_parentheses(label: str, name: str) -> None:
    sender = series.Samples("sender", (0.0,), {})
    (flow,) = series.labelled(series.Series(0.01, (sender,), ()), label).flows
    assert flow.name == name


def test_panels_of_controllers_name_their_flows() -> None:
    """The state of one controller is not shown as that of another, and never as that of the whole trial."""
    record = trace(flows=3, seconds=2.0)
    flows = record["series"]["flows"]
    flows[0]["controller"] = {"base_seconds": [0.02] * len(flows[0]["time"])}
    shown, sequences = read(record)
    spec = charts.draw(shown, sequences, ["controller"], "s1: TCP Own", "")

    def about(panel: dict[str, Any]) -> tuple[str, list[str]]:
        encoding = panel["layer"][0]["encoding"]
        return encoding["y"]["title"], encoding["color"]["scale"]["domain"]

    assert [about(panel) for panel in spec["vconcat"]] == [
        ("Controller: base (ms)", ["s1"]),
        ("Controller: w max (kB)", ["s2", "s3"]),
    ]
    one = series.choose(shown, ["s1"])
    (panel,) = charts.draw(one, [], ["controller"], "", "")["vconcat"]
    assert panel["layer"][0]["encoding"]["color"]["scale"]["domain"] == ["base"]


def test_panels_of_measured_flows_are_before_those_of_traffic() -> None:
    record = trace(flows=9, seconds=2.0)
    for flow in record["series"]["flows"][:8]:
        flow["name"] = f"rivals ({flow['name']})"
    shown, _ = read(record)
    spec = charts.draw(shown, [], ["controller"], "", "")
    color = spec["vconcat"][0]["layer"][0]["encoding"]["color"]
    assert color["scale"]["domain"] == ["s9", *(f"rivals (s{number})" for number in range(1, 8))]


def test_a_state_that_controllers_share_by_name_alone_has_a_panel_for_each() -> None:
    record = trace(flows=2, seconds=2.0)
    first = record["series"]["flows"][0]
    first["controller"] = {**first["controller"], "base_seconds": [0.02] * len(first["time"])}
    shown, _ = read(record)
    panels = charts.draw(shown, [], ["controller"], "", "")["vconcat"]
    named = [panel["layer"][0]["encoding"]["color"]["scale"]["domain"] for panel in panels]
    assert named == [["s1"], ["s1"], ["s2"]]


def test_the_range_of_a_loss_includes_its_last_position() -> None:
    """Ranges are half-open in the analysis; text has the packet, or the bytes, that were lost."""
    packets = [
        {"time": 0.1 * n, "flow": 0, "id": n, "size": 1000, "sequence": n, "frame": "data", "host": "sender",
         "what": "send", "direction": "forward"}
        for n in range(40)
    ]  # fmt: skip
    drop = {**packets[30], "time": 3.05, "what": "drop", "reason": "queue"}
    (one,) = series_sequence.read([*packets, drop], {0: "sr"})
    assert "packet 30 lost (queue)" in bars.draw(None, [one], ["sequence"], "", "")
    _, (tcp,) = read(trace(seconds=2.0))
    loss = tcp.lost[0]
    assert f"bytes {loss.low}{DASH}{loss.high - 1} lost (queue)" in bars.draw(
        None, [tcp], ["sequence"], "", ""
    )
