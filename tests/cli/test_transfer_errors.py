"""Errors of `longfat send` and `longfat recv`: one clear line and no partial files."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import (
    SIZE,
    Make,
    Receive,
    Refused,
    Start,
    at_rate,
    names,
    partial,
    under_way,
)
from tests.conftest import Cli, only_lines

NOWHERE = "127.0.0.1:9"


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a socket that never replies."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as quiet:
        quiet.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{quiet.getsockname()[1]}"


def without_privilege() -> None:
    """Applies file permissions to the superuser, too (Linux: without CAP_DAC_OVERRIDE)."""
    drop, override = 24, 1
    if os.geteuid() == 0:
        ctypes.CDLL(None).prctl(drop, override, 0, 0, 0)


unprivileged = pytest.mark.skipif(
    sys.platform != "linux" and os.geteuid() == 0, reason="the superuser may write everywhere"
)


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        ([], "Missing argument 'ADDR'"),
        (["{file}"], 'ADDR: "'),
        ([NOWHERE], "no file to send: write longfat send FILE... ADDR"),
        (["{file}", "127.0.0.1"], 'ADDR: "127.0.0.1" is not an address'),
        (["{file}", "127.0.0.1:x"], '"127.0.0.1:x" is not an address: write HOST:PORT'),
        (["{file}", "::1:9000"], "put IPv6 addresses in brackets"),
        (["{file}", "127.0.0.1:0"], "port 0 is out of range: 1 to 65535"),
        (["{file}", "127.0.0.1:65536"], "port 65536 is out of range: 1 to 65535"),
        (["{file}", NOWHERE, "--protocol", "tcp"], "--protocol: tcp: unknown kind; allowed: stop-and-wait,"),
        (["{file}", NOWHERE, "--rto", "200"], '--rto: "200" has no unit'),
        (["{file}", NOWHERE, "--mss", "1400"], '--mss: "1400" has no unit'),
        (["{file}", NOWHERE, "--mss", "1MB"], "--mss: 1MB is out of range"),
        (["{file}", NOWHERE, "--window", "0"], "--window: 0 is out of range"),
        (["{file}", NOWHERE, "--window", "nan"], "--window: "),
        (["{file}", NOWHERE, "--congestion", "vegas-ish"], 'unknown congestion controller "vegas-ish"'),
        (["{file}", NOWHERE, "--window", "4", "--congestion", "bbr"], 'it needs window = "auto"'),
        (["{file}", NOWHERE, "--set", "windwo=4"], '--set: windwo: unknown key: did you mean "window"'),
        (["{file}", NOWHERE, "--set", "window"], "write KEY=VALUE"),
        (["{file}", NOWHERE, "--wait", "5"], '--wait: "5" is not a duration'),
        (["{file}", NOWHERE, "--widnow", "4"], "No such option: --widnow"),
        (["{file}", NOWHERE, "--name", "x"], "--name is the name of standard input: it needs - as FILE"),
        (["-", "{file}", NOWHERE], "FILE: - is sent alone"),
    ],
)
def test_invalid_arguments_to_send_are_refused(
    words: list[str], reported: str, refused: Refused, make: Make
) -> None:
    path = str(make("a.bin", 10))
    refused(["send", *(path if word == "{file}" else word for word in words)], 2, [reported])


def test_a_failure_has_a_document(make: Make, start: Start) -> None:
    path = make("a.bin", 10)
    sender = start("send", path, NOWHERE, "--json")
    assert sender.finish() == 1
    assert sender.document() == {
        "error": f"nothing listens at {NOWHERE}: start longfat recv there",
        "arrived_bytes": 0,
        "bytes": 10,
    }
    receiver = start("recv", "--listen", "192.0.2.1:0", "--dir", path.parent, "--json")
    assert receiver.finish() == 1
    (end,) = receiver.events()
    assert end["error"].startswith("cannot listen at 192.0.2.1:0: ")
    assert end["files"] == end["failures"] == end["cut"] == []


@pytest.mark.parametrize(
    ("options", "code", "reported"),
    [
        (["--dir", "missing/in"], 2, "--dir missing/in: cannot be created: No such file"),
        (["--dir", "file"], 2, "--dir file: is a file, not a folder"),
        (["--listen", "9000"], 2, '--listen: "9000" is not an address: write HOST:PORT'),
        (["--listen", "192.0.2.1:0"], 1, "cannot listen at 192.0.2.1:0: "),
        (["--max-connections", "0"], 2, "--max-connections"),
    ],
)
def test_invalid_arguments_to_recv_are_refused(
    options: list[str],
    code: int,
    reported: str,
    refused: Refused,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    refused(["recv", *options], code, [reported])


def test_receive_reports_a_port_in_use(refused: Refused, place: Path, silent: str) -> None:
    refused(["recv", "--dir", str(place), "--listen", silent], 1, [f"cannot listen at {silent}: "])


def test_send_reports_an_unreachable_receiver(refused: Refused, make: Make, silent: str) -> None:
    path = str(make("a.bin", 10))
    refused(["send", path, NOWHERE], 1, [f"nothing listens at {NOWHERE}: start longfat recv there"])
    refused(["send", path, silent, "--keep-alive", "400ms", "--give-up", "1s"], 1, [silent])
    refused(["send", path, "host.invalid:9000"], 2, ['"host.invalid:9000" is not an address'])


def test_send_reports_what_is_not_a_regular_file(
    refused: Refused, receive: Receive, place: Path, make: Make, tmp_path: Path
) -> None:
    _, address = receive()
    good = str(make("a.bin", 10))
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for bad, reason in (
        (tmp_path / "missing", "No such file"),
        (tmp_path, "is a directory"),
        (pipe, "is not a regular file"),
    ):
        refused(["send", good, str(bad), address], 1, [reason])
    assert names(place) == []


@pytest.mark.slow
def test_a_file_that_shrinks_during_the_transfer_fails(
    start: Start, receive: Receive, place: Path, make: Make
) -> None:
    receiver, address = receive("--once")
    # Longer than the read-ahead of a sender.
    path = make("file.bin", 6 * SIZE)
    sender = start("send", path, address, *at_rate("40Mbit/s"))
    under_way(place, SIZE // 16)
    os.truncate(path, SIZE // 32)
    sender.fails_with(str(path), "shorter")
    assert receiver.finish() == 1
    assert not (place / "file.bin").exists()


@pytest.mark.slow
def test_a_file_that_changes_during_the_transfer_fails(
    start: Start, receive: Receive, place: Path, make: Make
) -> None:
    _, address = receive()
    path, other = make("file.bin", 2 * SIZE), make("other.bin", 1000)
    sender = start("send", path, other, address, *at_rate("40Mbit/s"))
    under_way(place, SIZE // 16)
    with path.open("r+b") as file:
        file.write(b"changed")
    sender.fails_with(str(path), "changed")
    assert "stored as other.bin" in sender.out
    assert names(place) == ["other.bin"]


@pytest.mark.slow
@unprivileged
def test_a_folder_without_write_permission_is_refused(
    start: Start, receive: Receive, place: Path, make: Make
) -> None:
    receiver, address = receive(prepare=without_privilege)
    place.chmod(0o555)
    try:
        start("send", make("a.bin", 10), address).fails_with(
            "a.bin: failed: refused by the receiver: cannot write", "Permission denied"
        )
        start("recv", "--dir", place, "--listen", "127.0.0.1:0", prepare=without_privilege).fails_with(
            f"--dir {place}: cannot be written to: Permission denied", code=2
        )
    finally:
        place.chmod(0o755)
    assert receiver.finish(signal.SIGINT) == 0
    assert "0 files received, 0 B; 1 failed" in receiver.out
    assert names(place) == []


@pytest.mark.slow
def test_a_full_disk_is_reported_and_the_transfer_resumes(
    start: Start, receive: Receive, place: Path, make: Make
) -> None:
    room = 1 << 20

    def small_disk() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    path = make("file.bin", 4 << 20)
    receiver, address = receive("--once", prepare=small_disk)
    sender = start("send", path, address)
    sender.fails_with(str(path), "refused by the receiver: cannot write", "too large")
    assert receiver.finish() == 1
    assert names(place) == [partial(place).name]

    _, address = receive()
    again = start("send", path, address, "--json")
    assert again.finish() == 0
    assert again.document()["files"][0]["resumed"] == room
    assert (place / "file.bin").read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    "name", ["..\\..\\evil", "C:\\evil", "\x1b[2Jevil", "two\nlines", ".x.longfat-part", "gpj.\u202eexe"]
)
def test_unsafe_names_are_refused(
    name: str, cli: Cli, receive: Receive, place: Path, make: Make, tmp_path: Path
) -> None:
    receiver, address = receive()
    done = cli("send", make(name, 10), address, ok=False)
    assert done.returncode == 1
    only_lines(done.stderr, ["failed: refused by the receiver: the name "])
    line = done.stderr.removesuffix("\n")
    assert line.isprintable()
    assert receiver.finish(signal.SIGINT) == 0
    assert all(text.isprintable() for text in receiver.err.splitlines())
    assert names(place) == []
    assert [path.name for path in tmp_path.rglob(f"*{name[-4:]}") if path.parent.name != "source"] == []


@pytest.mark.slow
def test_a_failed_start_leaves_no_new_folder(start: Start, receive: Receive, tmp_path: Path) -> None:
    _, address = receive()
    before = folders(tmp_path)
    for words in ([], ["--dir", tmp_path / "new"]):
        start("recv", "--listen", address, *words).fails_with(f"cannot listen at {address}")
        assert folders(tmp_path) == before


def folders(place: Path) -> list[Path]:
    return sorted(one for one in place.rglob("*") if one.is_dir())
