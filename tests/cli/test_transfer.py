"""`longfat send` and `longfat recv`: complete and interrupted transfers."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest
from tests.cli.conftest import CODE, SIZE, SLOW, Make, Receive, Start, names, partial, under_way
from tests.waiting import wait_until

from longfat.api.protection import INSECURE
from longfat.api.receiving import Receiving
from longfat.api.transfer_progress import Transfers
from longfat.system.progress import Lines


def test_files_arrive_and_are_not_sent_twice(start: Start, receive: Receive, place: Path, make: Make) -> None:
    receiver, address = receive()
    paths = [make("a.bin", 3_000_000, 1), make("empty", 0), make("naïve name.txt", 10, 3)]
    sender = start("send", *paths, address)
    assert sender.finish() == 0, sender.err
    *lines, summary = sender.out.splitlines()
    assert [line.partition(": ")[2].split(",")[0] for line in lines] == [
        f"stored as {path.name}" for path in paths
    ]
    assert summary.startswith("3.00 MB in ")
    assert "bit/s; " in summary
    assert " retransmission" in summary
    assert names(place) == sorted(path.name for path in paths)
    for path in paths:
        assert (place / path.name).read_bytes() == path.read_bytes()

    again = start("send", *paths, address)
    assert again.finish() == 0
    assert again.out.count("already there as ") == 3
    assert "nothing sent" in again.out

    make("a.bin", 1000, 2)
    other = start("send", paths[0], address)
    assert other.finish() == 0
    assert "stored as a (1).bin" in other.out
    assert receiver.finish(signal.SIGINT) == 0
    assert receiver.out == "7 files received, 6.00 MB; 3 of them already there\n"


def test_documents(start: Start, receive: Receive, make: Make) -> None:
    receiver, address = receive("--once", "--json")
    time.sleep(0.5)
    started = time.monotonic()
    sender = start("send", make("a.bin", 100_000), address, "--json")
    assert sender.finish() == 0
    duration = time.monotonic() - started
    assert receiver.finish() == 0
    sent = sender.document()
    assert sent["files"][0] == {**sent["files"][0], "size": 100_000, "outcome": "stored", "detail": "a.bin"}
    assert sent["bytes"] == 100_000
    assert sent["goodput_bps"] > 0
    *events, received = receiver.events()
    assert [event["event"] for event in events] == [
        "listening",
        "connected",
        "started",
        "stored",
        "disconnected",
    ]
    assert (events[0]["address"], events[0]["code"]) == (address, CODE)
    (file,) = received["files"]
    assert (file["name"], file["size"], file["already"]) == ("a.bin", 100_000, False)
    assert 0 < file["seconds"] < duration
    assert received["failures"] == received["cut"] == []


@pytest.mark.parametrize(
    "options",
    [
        ["--protocol", "stop-and-wait"],
        ["--protocol", "go-back-n", "--window", "32", "--rto", "100ms"],
        ["--protocol", "go-back-n"],
        ["--protocol", "selective-repeat", "--window", "32", "--mss", "1000B"],
        ["--congestion", "cubic"],
        ["--congestion", "reno", "--rto", "adaptive"],
        ["--window", "auto", "--set", "congestion.initial_window=4"],
    ],
    ids=" ".join,
)
@pytest.mark.slow
def test_every_protocol(options: list[str], start: Start, receive: Receive, place: Path, make: Make) -> None:
    receiver, address = receive("--once")
    path = make("a.bin", 200_000)
    sender = start("send", path, address, *options)
    assert sender.finish() == 0, sender.err
    assert (place / "a.bin").read_bytes() == path.read_bytes()
    assert receiver.finish() == 0


@pytest.mark.slow
def test_a_restarted_receiver_resumes(start: Start, receive: Receive, place: Path, make: Make) -> None:
    path = make("file.bin", SIZE)
    receiver, address = receive()
    sender = start("send", path, address, *SLOW, "--wait", "0s")
    under_way(place)
    receiver.process.kill()
    receiver.process.wait()
    assert names(place) == [partial(place).name]
    receive("--listen", address)
    sender.fails_with(address, "arrived; send again to resume")
    again = start("send", path, address, "--json")
    assert again.finish() == 0, again.err
    assert again.document()["files"][0]["resumed"] >= SIZE // 8
    assert again.document()["bytes"] <= SIZE - SIZE // 8
    assert names(place) == ["file.bin"]
    assert (place / "file.bin").read_bytes() == path.read_bytes()


def test_a_sender_tries_all_addresses_of_a_name(
    start: Start, receive: Receive, place: Path, make: Make
) -> None:
    # localhost is ::1 before 127.0.0.1 on most systems.
    path = make("file.bin", 1000)
    _, address = receive("--listen", "127.0.0.1:0")
    sender = start("send", path, f"localhost:{address.rpartition(':')[2]}")
    assert sender.finish() == 0, sender.err
    assert (place / "file.bin").read_bytes() == path.read_bytes()


@pytest.mark.slow
def test_a_sender_waits_for_its_receiver(start: Start, receive: Receive, place: Path, make: Make) -> None:
    path = make("file.bin", SIZE // 2)
    receiver, address = receive()
    sender = start("send", path, address, *SLOW, "--json")
    under_way(place, SIZE // 16)
    receiver.process.kill()
    receiver.process.wait()
    sender.wait_for("The receiver is gone: waiting for its return")
    receive("--listen", address)
    assert sender.finish() == 0, sender.err
    assert sender.document()["reconnections"] == 1
    assert (place / "file.bin").read_bytes() == path.read_bytes()


@pytest.mark.slow
def test_a_restarted_sender_resumes(start: Start, receive: Receive, place: Path, make: Make) -> None:
    path = make("file.bin", SIZE)
    receiver, address = receive()
    sender = start("send", path, address, *SLOW)
    under_way(place)
    sender.process.kill()
    sender.process.wait()
    again = start("send", path, address)
    assert again.finish() == 0, again.err
    assert "of it from an earlier transfer" in again.out
    assert names(place) == ["file.bin"]
    assert (place / "file.bin").read_bytes() == path.read_bytes()
    assert receiver.finish(signal.SIGTERM) == 0
    assert "1 file received" in receiver.out


@pytest.mark.slow
def test_standard_input_is_sent(start: Start, receive: Receive, place: Path) -> None:
    receiver, address = receive("--json")
    content = random.Random(1).randbytes(3_000_000)
    reading, writing = os.pipe()
    with os.fdopen(reading) as source:
        sender = start("send", "-", address, "--name", "dump.bin", "--json", stdin=source)
    with os.fdopen(writing, "wb") as out:
        out.write(content[:10])
        out.flush()
        # The first bytes arrive before the rest exists.
        part = place / ".dump.bin.longfat-part"
        wait_until(lambda: part.exists() and part.stat().st_size == 10)
        out.write(content[10:])
    assert sender.finish() == 0, sender.err
    assert (place / "dump.bin").read_bytes() == content
    (file,) = sender.document()["files"]
    assert (file["size"], file["outcome"]) == (len(content), "stored")
    assert receiver.finish(signal.SIGTERM) == 0
    started, stored = (event for event in receiver.events() if event["event"] in ("started", "stored"))
    assert (started["size"], stored["size"]) == (None, len(content))


def test_standard_input_keeps_to_the_limit(start: Start, receive: Receive, place: Path, make: Make) -> None:
    _, address = receive("--max-bytes", "1MB")
    with make("large", 3_000_000).open() as source:
        sender = start("send", "-", address, stdin=source)
    sender.fails_with("exceed the receiver's limit (--max-bytes)")
    wait_until(lambda: names(place) == [])


def test_interrupted_standard_input_leaves_no_file(start: Start, receive: Receive, place: Path) -> None:
    _, address = receive()
    reading, writing = os.pipe()
    with os.fdopen(reading) as source, os.fdopen(writing, "wb") as out:
        sender = start("send", "-", address, stdin=source)
        out.write(bytes(100_000))
        out.flush()
        wait_until(lambda: names(place) == [".stdin.longfat-part"])
        assert sender.finish(signal.SIGINT) == 130
        wait_until(lambda: names(place) == [])
    assert sender.err.startswith("longfat: stopped")
    assert "resume" not in sender.err.replace("cannot be resumed", "")


def test_ctrl_c_at_the_sender(start: Start, receive: Receive, place: Path, make: Make) -> None:
    receiver, address = receive("--once")
    sender = start("send", make("file.bin", SIZE), address, *SLOW)
    under_way(place)
    assert sender.finish(signal.SIGINT) == 130
    (line,) = sender.err.splitlines()
    assert line.startswith("longfat: stopped; ")
    assert "of 8.00 MB arrived" in line
    assert receiver.finish() == 1
    assert "0 files received, 0 B; 1 failed" in receiver.out
    assert names(place) == [partial(place).name]


def test_ctrl_c_at_the_receiver(start: Start, receive: Receive, place: Path, make: Make) -> None:
    receiver, address = receive("--json")
    sender = start("send", make("file.bin", SIZE), address, *SLOW)
    under_way(place)
    assert receiver.finish(signal.SIGINT) == 130
    assert receiver.events()[-1]["cut"] == ["file.bin"]
    sender.fails_with("arrived; send again")
    assert names(place) == [partial(place).name]


def test_ctrl_c_stops_an_idle_receiver(receive: Receive) -> None:
    receiver, _ = receive()
    assert receiver.finish(signal.SIGINT) == 0
    assert receiver.out == "0 files received, 0 B\n"
    assert len(receiver.err.splitlines()) == 2
    once, _ = receive("--once")
    assert once.finish(signal.SIGINT) == 130


def test_an_insecure_public_address_prints_a_warning(receive: Receive) -> None:
    receiver, _ = receive("--listen", "0.0.0.0:0", "--insecure")
    receiver.wait_for("Every host that reaches this address may send files")
    assert receiver.finish(signal.SIGINT) == 0


@pytest.mark.slow
def test_a_receiver_at_its_connection_limit_is_busy(
    start: Start, receive: Receive, place: Path, make: Make
) -> None:
    _, address = receive("--max-connections", 1)
    first = start("send", make("file.bin", SIZE), address, *SLOW)
    under_way(place)
    start("send", make("b.bin", 10), address).fails_with(address, "busy")
    assert first.process.poll() is None
    under_way(place, partial(place).stat().st_size + 1)


@pytest.mark.slow
def test_a_receiver_serves_several_senders_at_once(
    start: Start, receive: Receive, place: Path, make: Make
) -> None:
    receiver, address = receive()
    paths = [make(f"{number}.bin", 1_000_000, number) for number in range(3)]
    senders = [start("send", path, address) for path in paths]
    assert [sender.finish() for sender in senders] == [0, 0, 0]
    assert all((place / path.name).read_bytes() == path.read_bytes() for path in paths)
    assert receiver.finish(signal.SIGINT) == 0
    assert receiver.err.count(": stored after ") == 3


def test_a_renamed_file_is_matched_by_its_offered_name(capsys: pytest.CaptureFixture[str]) -> None:
    received = Receiving(Transfers(Lines()), INSECURE)
    for file, name in enumerate(("a.bin", "b.bin")):
        event = {"event": "started", "peer": "p", "file": file, "name": name, "size": 1000, "resumed": 0}
        received.handle(event)
    # The second file is stored first, under another name. Both files have the same size.
    stored = {"peer": "p", "file": 1, "offered": "b.bin", "name": "b (1).bin", "size": 1000}
    received.handle({"event": "stored", **stored, "already": False, "seconds": 0.1})
    assert [one["name"] for one in received.active.values()] == ["a.bin"]
    assert "p: b.bin: stored as b (1).bin after 100 ms, 1.00 kB" in capsys.readouterr().err
