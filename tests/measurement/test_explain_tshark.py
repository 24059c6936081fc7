"""Counts of explained captures, compared with those of tshark for each connection and direction."""

from __future__ import annotations

import json
import random
import shutil
import struct
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.requirements import skip

import longfat
from longfat import _native

FIELDS = {
    "retransmissions": "retransmission",
    "fast_retransmissions": "fast_retransmission",
    "spurious_retransmissions": "spurious_retransmission",
    "out_of_order": "out_of_order",
    "duplicate_acks": "duplicate_ack",
    "zero_windows": "zero_window",
    "lost_segments": "lost_segment",
    "acked_unseen": "ack_lost_segment",
    "keep_alives": "keep_alive",
}
Counts = dict[tuple[int, str], Counter[str]]

SYN, FIN, RST, ACK = 2, 1, 4, 16
HOSTS = {"a": bytes([10, 0, 0, 1]), "b": bytes([10, 0, 0, 2])}
PORTS = {"a": 1000, "b": 2000}

PATHS: dict[str, dict[str, Any]] = {
    "losses": {"loss": "3%", "reverse": {"loss": "3%"}},
    "reordering": {"reorder": {"probability": "5%", "delay": "12ms"}},
    "duplicates": {"duplicate": "2%", "loss": "1%"},
    "outage": {"down": ["500ms..1500ms"]},
    "jitter": {"jitter": "5ms"},
}


@pytest.fixture(scope="module")
def version() -> str:
    """The version of tshark."""
    if shutil.which("tshark") is None:
        skip("programs", "tshark is not installed")
    text = subprocess.run(["tshark", "-v"], capture_output=True, text=True, timeout=60, check=True).stdout
    return text.split("(Wireshark) ")[1].split(" ")[0].rstrip(".")


@pytest.mark.parametrize("side", ["sender", "receiver"])
@pytest.mark.parametrize("path", PATHS)
def test_simulated_captures_have_the_counts_of_tshark(
    version: str, tmp_path: Path, path: str, side: Any
) -> None:
    file = tmp_path / "capture.pcapng"
    settings = {"rate": "20Mbit/s", "delay": "8ms", "queue": "40pkt", **PATHS[path]}
    longfat.trace("reno", settings, "300kB", pcapng=file, side=side, snap=96, samples=False, seed=2)
    _compare(file, version)


def test_a_capture_of_both_hosts_has_the_counts_of_the_first(tmp_path: Path) -> None:
    found = {}
    for side in ("sender", "both"):
        file = tmp_path / f"{side}.pcapng"
        settings = {"rate": "20Mbit/s", "delay": "8ms", "queue": "40pkt", **PATHS["losses"]}
        longfat.trace("reno", settings, "300kB", pcapng=file, side=side, snap=96, samples=False, seed=2)
        found[side] = _explained(file)
    assert found["both"] == found["sender"]


@pytest.mark.parametrize("seed", range(4))
def test_random_packets_have_the_counts_of_tshark(version: str, tmp_path: Path, seed: int) -> None:
    if not version.startswith("4.0."):
        skip("programs", f"tshark {version} has other rules for numbers that no TCP has")
    file = tmp_path / "random.pcap"
    file.write_bytes(_file(_random_packets(random.Random(seed), 1500)))
    _compare(file, version)


def _compare(file: Path, version: str) -> None:
    found, expected = _explained(file), _analysed(file)
    assert sum(sum(counts.values()) for counts in expected.values()) > 0
    if not version.startswith("4.0."):
        # Other versions have another threshold between both.
        for counts in (*found.values(), *expected.values()):
            counts["retransmissions"] += counts.pop("out_of_order", 0)
    assert found == expected


def _explained(file: Path) -> Counts:
    document = json.loads(_native.explain_capture(str(file), lambda _: None))
    return {
        (connection["stream"], sender): Counter(
            {name: count for name, count in direction["wireshark"].items() if count}
        )
        for connection in document["connections"]
        for sender, direction in zip(
            (connection["client"], connection["server"]), connection["directions"], strict=True
        )
        if direction["packets"]
    }


def _analysed(file: Path) -> Counts:
    columns = ["tcp.stream", "ip.src", "tcp.srcport", *(f"tcp.analysis.{field}" for field in FIELDS.values())]
    command = ["tshark", "-r", str(file), "-Y", "tcp", "-T", "fields", "-E", "occurrence=f"]
    command += [part for column in columns for part in ("-e", column)]
    rows = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    found: Counts = {}
    for row in rows.splitlines():
        stream, address, port, *flags = row.split("\t")
        counts = found.setdefault((int(stream), f"{address}:{port}"), Counter())
        counts.update(name for name, flag in zip(FIELDS, flags, strict=True) if flag)
    return found


def _random_packets(draw: random.Random, count: int) -> Iterator[tuple[float, str, int, int, int, int, int]]:
    """Yields times, senders, numbers, ACK numbers, flags, windows and lengths near those of a connection."""
    first = {"a": 2**32 - 300, "b": draw.randrange(1, 2**32)}
    highest = dict(first)
    time = 1.0
    last: tuple[str, int, int, int, int, int] | None = None
    for _ in range(count):
        time += draw.choice([0, 0.0005, 0.001, 0.0029, 0.003, 0.0031, 0.019, 0.021, 0.05, 0.5])
        if last and draw.random() < 0.1:
            yield (time, *last)
            continue
        sender, other = ("a", "b") if draw.random() < 0.6 else ("b", "a")
        flags = draw.choices([ACK, SYN, SYN | ACK, ACK | FIN, RST, RST | ACK, 0], [90, 2, 2, 4, 1, 1, 1])[0]
        length = draw.choice([0, 0, 0, 1, 1, 10, 10, 10, 20])
        number = highest[sender] + draw.choice([0, 0, 0, 0, -1, -1, 1, 10, -10, -20, -11, 30])
        if flags == SYN and draw.random() < 0.5:
            number, length = first[sender], 0
        ack = highest[other] + draw.choice([0, 0, 0, 0, 0, -10, -20, 10, 30]) if flags & ACK else 0
        window = draw.choice([1000, 1000, 1000, 1000, 0, 2000])
        last = (sender, number % 2**32, ack % 2**32, flags, window, length)
        yield (time, *last)
        highest[sender] = max(highest[sender], number + length + bool(flags & (SYN | FIN)))


def _file(packets: Iterator[tuple[float, str, int, int, int, int, int]]) -> bytes:
    """Returns packets as a pcap file of raw IP."""
    parts = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)]
    for time, sender, number, ack, flags, window, length in packets:
        other = "b" if sender == "a" else "a"
        tcp = struct.pack(
            ">HHIIBBHHH", PORTS[sender], PORTS[other], number, ack, 5 << 4, flags, window, 0, 0
        ) + bytes(length)
        ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0, HOSTS[sender], HOSTS[other])
        micros = round(time * 1e6)
        head = struct.pack("<IIII", micros // 10**6, micros % 10**6, len(ip + tcp), len(ip + tcp))
        parts += [head, ip, tcp]
    return b"".join(parts)
