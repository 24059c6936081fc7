"""SIGKILL of either end of a transfer at random times: files arrive intact, and no byte is sent twice.

LONGFAT_KILLS sets the number of kills of each end.
"""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from tests.cli.conftest import Make, Receive, Running, Start, at_rate, names, partial
from tests.effort import count
from tests.waiting import wait_until

KILLS = count("LONGFAT_KILLS", 6)
LARGE = "file.bin"
SIZES = {"first": 30_000, "empty": 0, LARGE: 2_500_000, "last": 30_000}
SLOW = at_rate("8Mbit/s")


def sources(make: Make, number: int) -> list[Path]:
    """Creates the files of a transfer."""
    return [make(name, size, number) for name, size in SIZES.items()]


def arrived(place: Path, paths: list[Path]) -> None:
    """Checks that exactly these files arrived, and removes them."""
    assert names(place) == sorted(path.name for path in paths)
    for path in paths:
        assert (place / path.name).read_bytes() == path.read_bytes()
        (place / path.name).unlink()


def done(place: Path) -> int:
    """Returns the total size of the receiver's files in bytes."""
    return sum(path.stat().st_size for path in place.iterdir())


def kill(running: Running) -> None:
    running.process.kill()
    running.process.wait()


@pytest.mark.slow
def test_a_killed_sender_resumes(start: Start, receive: Receive, place: Path, make: Make) -> None:
    draw, transfers, during_file, number = random.Random(14), 0, 0, 0
    receiver, address = receive()
    paths = sources(make, transfers)
    before = 0
    resumes = False
    while number < KILLS or resumes:
        last = number >= KILLS
        sender = start("send", *paths, address, *SLOW, "--json")
        if not last:
            # The kills range from before the first packet to after the last one.
            time.sleep(draw.uniform(0.2, draw.choice((2.5, 5.0))))
        if not last and sender.process.poll() is None:
            kill(sender)
            number += 1
            now = done(place)
            assert now >= before, f"kill {number}: {before} bytes before, {now} after"
            during_file += partial(place, LARGE).exists()
            before, resumes = now, True
            continue
        assert sender.finish() == 0, f"after {number} kills: {sender.err}"
        document = sender.document()
        assert document["bytes"] <= sum(SIZES.values()) - before, (before, document)
        arrived(place, paths)
        transfers, before, resumes = transfers + 1, 0, False
        paths = sources(make, transfers)
    assert receiver.process.poll() is None, receiver.err
    print(f"{KILLS} senders killed, {during_file} of them during a file; {transfers} transfers")


@pytest.mark.slow
def test_a_killed_receiver_resumes(start: Start, receive: Receive, place: Path, make: Make) -> None:
    draw, transfers, number, reconnections = random.Random(41), 0, 0, 0
    slowest = 0.0
    receiver, address = receive()
    while number < KILLS:
        paths = sources(make, transfers)
        sender = start("send", *paths, address, *SLOW, "--json", "--wait", "60s")
        wait_until(lambda: names(place))
        while number < KILLS and sender.process.poll() is None:
            before = done(place)
            # The kills occur during handshakes, files and their confirmations.
            time.sleep(draw.uniform(0.0, draw.choice((0.5, 5.0))))
            kill(receiver)
            number += 1
            assert done(place) >= before
            time.sleep(draw.choice((0.0, 0.0, 1.0)))
            receiver, _ = receive("--listen", address)
        started = time.monotonic()
        assert sender.finish() == 0, f"after {number} kills: {sender.err}"
        slowest = max(slowest, time.monotonic() - started)
        reconnections += sender.document()["reconnections"]
        arrived(place, paths)
        transfers += 1
    print(
        f"{KILLS} receivers killed; {transfers} transfers, {reconnections} reconnections, "
        f"{slowest:.1f} s from a restart to the end"
    )
