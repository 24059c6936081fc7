"""`explain`: captures with known causes, paths and controllers; boundaries; other files."""

from __future__ import annotations

import gzip
import json
import re
import socket
import struct
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import scipy
from tests.conftest import Cli

import longfat as lf
from longfat.analysis.captures import confidence, explained
from longfat.api import explanation_replay

PARTS = Path(__file__).parents[2] / "benchmarks/captures/parts.py"
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    explained.BANDWIDTH: (
        {"congestion": "cubic"},
        {"rate": "10Mbit/s", "delay": "20ms", "queue": "25pkt"},
        {"kind": "bulk", "duration": "10s"},
    ),
    explained.BUFFERBLOAT: (
        {"congestion": "reno"},
        {"rate": "5Mbit/s", "delay": "15ms", "queue": "100pkt"},
        {"kind": "bulk", "duration": "20s"},
    ),
    explained.WINDOW: (
        {"congestion": "cubic", "receive_buffer": "100kB"},
        {"rate": "50Mbit/s", "delay": "30ms", "queue": "500pkt"},
        {"kind": "bulk", "duration": "5s"},
    ),
    explained.LOSS: (
        {"congestion": "cubic"},
        {"rate": "50Mbit/s", "delay": "20ms", "queue": "200pkt", "loss": "1%"},
        {"kind": "bulk", "duration": "10s"},
    ),
    explained.LATENCY: (
        {"congestion": "cubic"},
        {"rate": "50Mbit/s", "delay": "60ms", "queue": "1000pkt"},
        {"kind": "file", "size": "150kB"},
    ),
    explained.APPLICATION: (
        {"congestion": "cubic"},
        {"rate": "20Mbit/s", "delay": "20ms", "queue": "100pkt"},
        {"kind": "bulk", "rate": "3Mbit/s", "duration": "5s"},
    ),
    explained.BURSTS: (
        {"congestion": "reno"},
        {"rate": "50Mbit/s", "delay": "40ms", "queue": "40pkt"},
        {"kind": "request-response", "request_size": "300kB", "response_size": "100B", "requests": 30},
    ),
    explained.POLICER: (
        {"congestion": "cubic"},
        {
            "rate": "50Mbit/s",
            "delay": "25ms",
            "queue": {"kind": f"{PARTS}:Policer", "rate_mbps": 8.0, "burst": 40_000},
            "reverse": {"queue": "100pkt"},
        },
        {"kind": "bulk", "duration": "20s"},
    ),
    explained.PACING: (
        {"congestion": {"kind": f"{PARTS}:Constant", "rate_mbps": 6.0}},
        {"rate": "20Mbit/s", "delay": "20ms", "queue": "100pkt"},
        {"kind": "bulk", "duration": "5s"},
    ),
}
"""A transfer for each limit: protocol, path, workload."""

Capture = Callable[[str], Path]


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Capture:
    """Returns the capture of a case, made once."""
    folder = tmp_path_factory.mktemp("captures")

    def made(limit: str) -> Path:
        file = folder / f"{limit.replace(' ', '-')}.pcapng"
        if not file.exists():
            protocol, path, workload = CASES[limit]
            settings = {"kind": "tcp", **protocol}
            lf.trace(settings, path, workload=workload, pcapng=file, snap=96, samples=False)
        return file

    return made


@pytest.mark.parametrize("limit", CASES)
def test_names_the_cause(limit: str, capture: Capture) -> None:
    found = lf.explain(capture(limit), replay=False)
    assert found.limit == limit
    assert found.limits[limit] > 0.6
    assert sum(found.limits.values()) == pytest.approx(1)


@pytest.mark.parametrize("limit", [explained.BANDWIDTH, explained.BUFFERBLOAT])
def test_measures_the_path(limit: str, capture: Capture) -> None:
    found = lf.explain(capture(limit), replay=False)
    assert found.one is not None
    _, path, _ = CASES[limit]
    rtt = 2 * float(path["delay"].removesuffix("ms")) / 1e3
    assert found.one.path["base_rtt_s"] == pytest.approx(rtt, rel=0.01)
    payload = float(path["rate"].removesuffix("Mbit/s")) * 1e6 * 1448 / 1500
    assert found.one.path["rate_bps"] == pytest.approx(payload, rel=0.02)
    assert found.one.path["position"] == "sender"


def test_measures_the_rate_of_a_policer(capture: Capture) -> None:
    found = lf.explain(capture(explained.POLICER), replay=False)
    assert found.one is not None
    # After each loss the sender is slower for a while, and the bucket overflows.
    assert found.one.document["policer_bps"] == pytest.approx(8e6 * 1448 / 1500, rel=0.12)


def test_losses_of_other_causes_show_no_policer(capture: Capture) -> None:
    for limit in (explained.LOSS, explained.BURSTS, explained.BANDWIDTH):
        found = lf.explain(capture(limit), replay=False)
        assert found.one is not None
        assert found.one.document["policer_bps"] is None
        assert not found.one.path["changes"]


def test_intervals_cover_the_transfer_without_gaps(capture: Capture) -> None:
    found = lf.explain(capture(explained.LOSS), replay=False)
    rows = found.to_polars()
    assert rows["start_s"][0] == 0
    assert rows["cause"][0] == "handshake"
    assert rows["start_s"].to_list()[1:] == pytest.approx(rows["end_s"].to_list()[:-1], abs=0.001)
    assert found.one is not None
    assert found.one.time == pytest.approx(rows["end_s"][-1] - rows["start_s"][0], rel=0.01)


def test_pauses_start_and_end_where_the_application_is_silent(tmp_path: Path) -> None:
    file = tmp_path / "pauses.pcapng"
    path = {"rate": "10Mbit/s", "delay": "20ms", "queue": "100pkt"}
    workload = {"kind": "on-off", "rate": "8Mbit/s", "on": "500ms", "off": "1s", "duration": "10s"}
    traces = lf.trace("reno", path, workload=workload, pcapng=file, snap=96, samples=False)
    data = traces.events.filter(what="send", frame="data")["time"].sort()
    rtt = 0.04
    # Silence starts when the last data is acknowledged, one RTT after it was sent.
    silences = [(a + rtt, b) for a, b in pairwise(data) if b - a > 4 * rtt]
    assert len(silences) > 2
    found = lf.explain(file, replay=False).to_polars().filter(cause="application")
    for start, end in silences:
        covering = found.filter((found["start_s"] <= start + 2 * rtt) & (found["end_s"] >= end - 2 * rtt))
        assert covering.height == 1, (start, end, found)


def test_two_causes_in_sequence_are_two_phases(tmp_path: Path) -> None:
    # 40 ms and a window of 69 kB: 13.8 Mbit/s, until packet 3000 is the first one of many that are lost.
    lost = [*range(3000, 20_000, 60)]
    path = {
        "rate": "50Mbit/s",
        "delay": "20ms",
        "queue": "500pkt",
        "loss": {"kind": "packets", "packets": lost},
        "reverse": {"loss": "0%"},
    }
    file = tmp_path / "window-loss.pcapng"
    protocol = {"kind": "tcp", "congestion": "cubic", "receive_buffer": "110kB"}
    workload = {"kind": "bulk", "duration": "8s"}
    traces = lf.trace(protocol, path, workload=workload, pcapng=file, snap=96, samples=False)
    drops = traces.events.filter(what="drop")["time"]
    found = lf.explain(file, replay=False).phases
    assert [phase.limit for phase in found] == [explained.WINDOW, explained.LOSS]
    assert found[0].end == pytest.approx(drops.min(), abs=2 * 0.04)


def test_slow_start_before_an_application_is_a_phase(tmp_path: Path) -> None:
    # The link has 500 packets per RTT: a first block of 1 MB ends within slow start, and pauses follow.
    file = tmp_path / "slow-start.pcapng"
    path = {"rate": "100Mbit/s", "delay": "30ms", "queue": "500pkt"}
    workload = {
        "kind": "request-response",
        "request_size": "1MB",
        "response_size": "100B",
        "requests": 2,
        "think": "1s",
    }
    protocol = {"kind": "tcp", "congestion": "cubic"}
    traces = lf.trace(protocol, path, workload=workload, pcapng=file, snap=96, samples=False)
    data = traces.events.filter(what="send", frame="data", length=1448)["time"].sort()
    pause = next(a for a, b in pairwise(data) if b - a > 0.5)
    found = lf.explain(file, replay=False).phases
    assert [phase.limit for phase in found[:2]] == [explained.LATENCY, explained.APPLICATION]
    assert found[0].end == pytest.approx(pause + 0.06, abs=2 * 0.06)


def test_confidence_is_that_of_the_place_of_the_capture(capture: Capture, tmp_path: Path) -> None:
    found = lf.explain(capture(explained.WINDOW), replay=False)
    shown = found.to_json()["explained"]["confidence"][explained.WINDOW]
    assert (shown["right"], shown["named"], shown["word"]) == (38, 38, "high")
    # At the receiver, losses by policers and bursts are reported as loss, too.
    file = tmp_path / "receiver.pcapng"
    protocol, path, workload = CASES[explained.POLICER]
    settings = {"kind": "tcp", **protocol}
    lf.trace(settings, path, workload=workload, pcapng=file, side="receiver", snap=96, samples=False)
    found = lf.explain(file, replay=False)
    assert found.limit == explained.LOSS
    shown = found.to_json()["explained"]["confidence"][explained.LOSS]
    assert (shown["right"], shown["named"], shown["word"]) == (30, 90, "low")


@pytest.mark.parametrize(
    ("right", "named", "word"),
    [
        (32, 32, "high"),
        (20, 20, "medium"),
        (96, 100, "high"),
        (95, 100, "medium"),
        (10, 13, "low"),
        (9, 9, "not measured"),
    ],
)
def test_the_word_is_that_of_the_lower_bound(right: int, named: int, word: str) -> None:
    found = confidence.Confidence(right, named)
    exact = scipy.stats.binomtest(right, named, alternative="greater").proportion_ci(0.95, "exact")
    assert found.least == pytest.approx(exact.low)
    assert found.word == word


def test_replays_the_transfer_and_names_the_controller(capture: Capture) -> None:
    found = lf.explain(capture(explained.LOSS), trials=3)
    assert found.replay is not None
    assert found.replay.problem is None
    assert found.replay.controller == "cubic"
    assert found.replay.simulated is not None
    assert found.replay.simulated.value == pytest.approx(found.replay.captured, rel=0.05)
    # The transfer without a change is in the interval of the same trials.
    baseline = found.replay.baseline
    assert baseline is not None
    assert baseline.rtt is not None
    assert baseline.duration.low < found.replay.captured < baseline.duration.high
    assert baseline.name not in [one.name for one in found.replay.changes]
    changes = {one.name: one.duration.value for one in found.replay.changes}
    # 1 % of loss leaves a small part of the link; without it the file takes little more than its size needs.
    assert changes["no random loss"] < 0.5 * found.replay.captured
    assert changes["BBRv1"] < 0.7 * found.replay.captured
    assert changes["twice the rate"] == pytest.approx(found.replay.captured, rel=0.25)


def test_burst_losses_show_the_queue(capture: Capture) -> None:
    one = lf.explain(capture(explained.BURSTS), replay=False).one
    assert one is not None
    assert one.document["overflow_packets"] == 0 < one.document["burst_packets"]
    assert not explanation_replay.is_queue_assumed(one)
    queue = float(explanation_replay.path_model(one)["queue"].removesuffix("pkt"))
    assert queue == pytest.approx(40, abs=4)


def test_a_short_queue_is_full_when_it_loses_packets_of_slow_start(tmp_path: Path) -> None:
    # The rest of a burst is lost, too, so that the packets behind it meet a shorter queue.
    file, queue = tmp_path / "short.pcapng", 10
    path = {"rate": "5Mbit/s", "delay": "19.2ms", "queue": f"{queue}pkt"}
    lf.trace({"kind": "tcp", "congestion": "reno"}, path, "1MB", pcapng=file, snap=96, samples=False)
    one = lf.explain(file, replay=False).one
    assert one is not None
    assert one.document["random_loss_packets"] == 0 < one.document["overflow_packets"]
    model = explanation_replay.path_model(one)
    assert float(model["queue"].removesuffix("pkt")) == pytest.approx(queue, abs=1)


def test_a_pause_of_the_path_is_no_queue(tmp_path: Path) -> None:
    file, queue = tmp_path / "queue.pcapng", 150
    path = {"rate": "50Mbit/s", "delay": "20ms", "queue": f"{queue}pkt"}
    lf.trace({"kind": "tcp", "congestion": "reno"}, path, "10MB", pcapng=file, snap=96, samples=False)
    # A host or an emulator that stands still adds 200 ms to the RTTs of one flight, as much as 800 packets.
    file.write_bytes(_paused(file.read_bytes(), at=1.2, pause=0.2))
    one = lf.explain(file, replay=False).one
    assert one is not None
    assert one.document["overflow_packets"] > 100
    assert one.document["random_loss_packets"] == 0
    model = explanation_replay.path_model(one)
    assert "loss" not in model
    assert float(model["queue"].removesuffix("pkt")) == pytest.approx(queue, rel=0.05)


def _paused(capture: bytes, at: float, pause: float) -> bytes:
    """Returns a pcapng capture (in ns) in which all packets after `at` seconds are `pause` seconds later."""
    found, place, first = bytearray(capture), 0, None
    while place < len(found):
        kind, length = struct.unpack_from("<2I", found, place)
        if kind == 6:  # Enhanced packet block
            high, low = struct.unpack_from("<2I", found, place + 12)
            time = high << 32 | low
            first = time if first is None else first
            if time - first > at * 1e9:
                time += round(pause * 1e9)
            struct.pack_into("<2I", found, place + 12, time >> 32, time & 0xFFFFFFFF)
        place += length
    return bytes(found)


def test_reordering_is_not_simulated(capture: Capture) -> None:
    one = lf.explain(capture(explained.LOSS), replay=False).one
    assert one is not None
    causes = [{"cause": "reordering", "time_s": 2.0}, {"cause": "bandwidth", "time_s": 8.0}]
    reordered = replace(one, document={**one.document, "causes": causes})
    found = explanation_replay.replay(reordered, 1, lambda _: pytest.fail("a simulation was started"))
    assert "reorders packets" in (found.problem or "")
    assert found.controllers == {}
    assert found.is_queue_assumed
    assert "queue" in found.model


def test_predicts_nothing_for_an_application_that_is_silent(capture: Capture) -> None:
    found = lf.explain(capture(explained.APPLICATION))
    assert found.replay is not None
    assert found.replay.problem is not None
    assert not found.replay.changes


def test_capture_of_the_receiver(tmp_path: Path) -> None:
    file = tmp_path / "receiver.pcapng"
    protocol, path, workload = CASES[explained.BANDWIDTH]
    settings = {"kind": "tcp", **protocol}
    lf.trace(settings, path, workload=workload, pcapng=file, side="receiver", snap=96, samples=False)
    found = lf.explain(file, replay=False)
    assert found.one is not None
    assert found.limit == explained.BANDWIDTH
    assert found.one.path["position"] == "receiver"
    assert found.one.path["base_rtt_s"] == pytest.approx(0.04, rel=0.01)


def test_a_receivers_capture_lasts_as_long_as_the_transfer(tmp_path: Path) -> None:
    """The queue of 1.6 s at the end does not delay the last ACKs."""
    file = tmp_path / "receiver.pcapng"
    path = {"rate": "5Mbit/s", "delay": "20ms", "queue": "1500pkt"}
    settings = {"kind": "tcp", "congestion": "cubic"}
    lf.trace(settings, path, "5MB", pcapng=file, side="receiver", snap=96, samples=False)
    found = lf.explain(file, replay=False).one
    assert found is not None
    took = lf.simulate(settings, path, "5MB").metrics["completion_s"]
    assert found.document["duration_s"] == pytest.approx(took, rel=0.01)


@pytest.mark.parametrize("side", ["sender", "receiver"])
def test_lost_packets_have_their_numbers(side: str, tmp_path: Path) -> None:
    """Those that a receiver's capture lacks, too. The replay loses the same ones, which shows the sender."""
    lost = [30, 400, 401, 900]
    file, path = tmp_path / "lossy.pcapng", {"rate": "20Mbit/s", "delay": "20ms", "queue": "500pkt"}
    losses = {"loss": {"kind": "packets", "packets": lost}, "reverse": {"loss": "0%"}}
    reno = {"kind": "tcp", "congestion": "reno"}
    lf.trace(reno, path | losses, "2MB", pcapng=file, side=side, snap=96, samples=False)  # type: ignore[arg-type]
    found = lf.explain(file, trials=2)
    assert found.one is not None
    assert found.one.document["lost"] == lost
    assert found.replay is not None
    assert (found.replay.controller, found.replay.is_controller_clear) == ("reno", True)
    assert found.replay.simulated is not None
    assert found.replay.simulated.value == pytest.approx(found.replay.captured, rel=0.05)


def test_a_receivers_capture_has_the_idle_rtt_of_small_packets(tmp_path: Path) -> None:
    """The first packet after the SYN-ACK has data, which the link takes 6 ms to transmit."""
    file = tmp_path / "slow.pcapng"
    path = {"rate": "2Mbit/s", "delay": "50ms"}
    lf.trace(
        {"kind": "tcp", "congestion": "cubic"},
        path,
        "500kB",
        pcapng=file,
        side="receiver",
        snap=96,
        samples=False,
    )
    found = lf.explain(file, replay=False).one
    assert found is not None
    assert found.path["base_rtt_s"] == pytest.approx(0.1, rel=0.01)


def test_the_rate_of_an_application_is_not_that_of_the_link(tmp_path: Path) -> None:
    """At the receiver, the time until the application writes looks like a queue of less than a packet."""
    file = tmp_path / "writes.pcapng"
    reno, path = {"kind": "tcp", "congestion": "reno"}, {"rate": "5Mbit/s", "delay": "40ms", "queue": "66pkt"}
    workload = {"kind": "bulk", "duration": "5s", "rate": "1.287Mbit/s"}
    lf.trace(reno, path, workload=workload, pcapng=file, side="receiver", snap=96, samples=False)
    found = lf.explain(file, replay=False)
    assert found.one is not None
    assert found.limit == explained.APPLICATION
    assert found.one.path["rate_bps"] is None


def test_the_model_is_a_path(capture: Capture, tmp_path: Path) -> None:
    model = tmp_path / "model.toml"
    lf.explain(capture(explained.BANDWIDTH), replay=False).write_model(model)
    trial = lf.simulate("cubic", lf.load_study(_study(model)).path, "1MB")
    assert trial.goodput == pytest.approx(9.6e6, rel=0.2)


def _study(model: Path) -> Path:
    study = model.with_name("study.toml")
    rest = (
        'title = "Model"\n[workload]\nkind = "file"\nsize = "1MB"\n[[protocols]]\nname = "a"\nkind = "tcp"\n'
    )
    study.write_text(f"{rest}{model.read_text()}")
    return study


def test_compressed_captures(capture: Capture, tmp_path: Path) -> None:
    plain = capture(explained.LATENCY)
    packed = tmp_path / "capture.pcapng.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert lf.explain(packed, replay=False).limits == lf.explain(plain, replay=False).limits


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "empty file"),
        (b"hello, world", "neither pcap nor pcapng"),
        (b"\x0a\x0d\x0d\x0a", "neither pcap"),
    ],
)
def test_other_files_are_one_line(content: bytes, text: str, tmp_path: Path) -> None:
    file = tmp_path / "other"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=text) as raised:
        lf.explain(file)
    assert "\n" not in str(raised.value)
    assert str(file) in str(raised.value)


def test_a_cut_capture_is_explained_up_to_the_cut(capture: Capture, tmp_path: Path) -> None:
    whole = capture(explained.BANDWIDTH).read_bytes()
    cut = tmp_path / "cut.pcapng"
    cut.write_bytes(whole[: len(whole) // 2])
    found = lf.explain(cut, replay=False)
    assert found.limit == explained.BANDWIDTH
    assert any("ends early" in line for line in found.remarks())


def test_unknown_connections_name_the_allowed_ones(capture: Capture) -> None:
    with pytest.raises(ValueError, match="7 is not a connection; allowed: 0 to 0"):
        lf.explain(capture(explained.LATENCY), flow=7)


def test_subflows_of_multipath_tcp_are_one_connection(tmp_path: Path) -> None:
    file = tmp_path / "multipath.pcapng"
    links = [
        lf.Path(rate="10Mbit/s", delay="10ms", queue="50pkt"),
        lf.Path(rate="5Mbit/s", delay="30ms", queue="50pkt"),
    ]
    topology = lf.Topology("multipath", path=links)
    lf.trace(lf.Mptcp(), topology=topology, size="5MB", pcapng=file, snap=128, samples=False)
    found = lf.explain(file)
    assert found.one is not None
    both = explained.subflows(found.document, found.one)
    assert sorted(one.connection["stream"] for one in both) == [0, 1]
    assert {one.connection["multipath"] for one in both} == {0}
    assert sum(one.bytes for one in both) >= 5_000_000
    assert len(explained.groups(found.document)) == 1
    assert any("Multipath TCP with 2 subflows" in line for line in found.remarks())
    assert found.replay is not None
    assert "Multipath TCP" in (found.replay.problem or "")


def test_quic_has_volume_handshake_and_spin_bit(cli: Cli, tmp_path: Path) -> None:
    def frame(time: float, client: bool, start: bytes) -> bytes:
        ends = [socket.inet_aton("10.0.0.1"), socket.inet_aton("10.0.0.2")]
        ports = (5000, 443)
        if not client:
            ends, ports = ends[::-1], ports[::-1]
        payload = start + bytes(1200 - len(start))
        udp = struct.pack(">4H", *ports, 8 + len(payload), 0) + payload
        ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0) + ends[0] + ends[1]
        packet = ip + udp
        micros = round(time * 1e6)
        return struct.pack("<4I", micros // 10**6, micros % 10**6, len(packet), len(packet)) + packet

    initial = b"\xc0\x00\x00\x00\x01"
    frames = [frame(0.0, True, initial), frame(0.02, False, initial)]
    for number in range(400):
        spin = 0x20 if number // 40 % 2 else 0
        frames.append(frame(0.025 + number / 1000, True, bytes([0x40 | spin])))
    file = tmp_path / "quic.pcap"
    file.write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101) + b"".join(frames))
    found = lf.explain(file)
    (one,) = found.document["quic"]
    assert (one["client"], one["server"]) == ("10.0.0.1:5000", "10.0.0.2:443")
    assert one["bytes"] == [401 * 1200, 1200]
    assert one["handshake_s"] == pytest.approx(0.025)
    assert one["spin_rtt_s"] == pytest.approx(0.04, rel=0.01)
    (line,) = found.remarks()[:1]
    shown = re.search(r"RTT ([\d.]+) ms \(spin bit\)", line)
    assert shown is not None
    assert float(shown[1]) == pytest.approx(40, rel=0.01)
    assert "encrypted" in line
    for options in ([], ["--connections"]):
        shown_lines = cli("explain", file, *options).stdout.splitlines()
        assert shown_lines[:2] == ["402 frames, no TCP connection", line]


class TestCommand:
    """`longfat explain`."""

    def test_prints_an_answer_of_at_most_25_lines(self, cli: Cli, capture: Capture) -> None:
        printed = cli("explain", str(capture(explained.LOSS)), "--trials", "2").stdout
        assert "Limited by loss" in printed
        assert "Sender: probably CUBIC" in printed
        assert "no random loss" in printed
        assert len(printed.splitlines()) <= 25

    def test_writes_json_a_report_and_a_model(self, cli: Cli, capture: Capture, tmp_path: Path) -> None:
        report, model = tmp_path / "report.html", tmp_path / "model.toml"
        file = str(capture(explained.WINDOW))
        words = ["explain", file, "--no-replay", "--json", "--out", str(report), "--model", str(model)]
        document = json.loads(cli(*words).stdout)
        assert document["explained"]["limit"] == explained.WINDOW
        assert "Limited by the receive window" in report.read_text()
        assert 'delay = "30' in model.read_text()

    def test_a_missing_file_is_one_line(self, cli: Cli, tmp_path: Path) -> None:
        done = cli("explain", tmp_path / "missing.pcap", ok=False)
        assert done.returncode == 1
        assert len(done.stderr.strip().splitlines()) == 1
        assert "missing.pcap" in done.stderr
