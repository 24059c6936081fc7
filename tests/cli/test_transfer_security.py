"""Security options of transfers: codes, keys and insecure transfers."""

from __future__ import annotations

import os
import pty
import signal
import stat
from pathlib import Path

import pytest
from tests.cli.conftest import CODE, Make, Receive, Refused, Start, names
from tests.conftest import Cli, only_lines

from longfat import _native

NOWHERE = "127.0.0.1:9"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sets an empty configuration folder."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config" / "longfat"


def test_the_printed_command_sends(
    start: Start, place: Path, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LONGFAT_CODE")
    receiver = start("recv", "--dir", place / "new", "--listen", "127.0.0.1:0", "--once")
    words = receiver.wait_for(r"To send: longfat (send FILE \S+ --code \S+)").split()
    path = make("a.bin", 1000)
    sender = start(*(path if word == "FILE" else word for word in words))
    assert sender.finish() == 0, sender.err
    assert receiver.finish() == 0
    assert (place / "new" / "a.bin").read_bytes() == path.read_bytes()


def test_every_receiver_has_a_new_code(start: Start, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LONGFAT_CODE")
    receivers = [start("recv", "--dir", place, "--listen", "127.0.0.1:0") for _ in range(2)]
    codes = {receiver.wait_for(r"--code (\S+)") for receiver in receivers}
    assert len(codes) == 2
    for receiver in receivers:
        assert receiver.finish(signal.SIGINT) == 0


@pytest.mark.slow
def test_each_sender_needs_a_new_code(
    start: Start, place: Path, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LONGFAT_CODE")
    receiver = start("recv", "--dir", place, "--listen", "127.0.0.1:0")
    code, address, path = receiver.wait_for(r"--code (\S+)"), receiver.address(), make("a.bin", 1000)
    for number in range(2):
        sender = start("send", path, address, "--code", code)
        assert sender.finish() == 0, sender.err
        start("send", path, address, "--code", code).fails_with("the code is wrong or used")
        code = receiver.wait_for(rf"(?s)(?:--code \S+.*){{{number + 1}}}For the next sender: .* --code (\S+)")
    assert receiver.finish(signal.SIGINT) == 0


@pytest.mark.slow
def test_a_chosen_code_stays_valid(start: Start, receive: Receive, place: Path, make: Make) -> None:
    receiver, address = receive("--code", CODE)
    for name in ("a.bin", "b.bin"):
        sender = start("send", make(name, 1000), address, "--code", CODE)
        assert sender.finish() == 0, sender.err
    assert receiver.finish(signal.SIGINT) == 0
    assert names(place) == ["a.bin", "b.bin"]


def test_without_a_folder_a_new_one_is_created(
    start: Start, place: Path, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    (place / "received").touch()
    receiver = start("recv", "--listen", "127.0.0.1:0", "--once")
    assert start("send", make("a.bin", 10), receiver.address()).finish() == 0
    assert receiver.finish() == 0
    assert names(place) == ["received", "received-1"]
    assert names(place / "received-1") == ["a.bin"]


@pytest.mark.parametrize(
    ("receiving", "sending", "reported"),
    [
        ((), ("--code", "other"), "the code is wrong or used: type the newest one that the receiver prints"),
        ((), ("--insecure",), "the peer requires encryption"),
        (("--insecure",), (), "the receiver does not encrypt: it accepts insecure senders only"),
    ],
    ids=["another code", "insecure sender", "insecure receiver"],
)
@pytest.mark.slow
def test_mismatched_security_options_are_refused(
    receiving: tuple[str, ...],
    sending: tuple[str, ...],
    reported: str,
    start: Start,
    receive: Receive,
    place: Path,
    make: Make,
) -> None:
    receiver, address = receive(*receiving)
    options = [_native.new_code() if word == "other" else word for word in sending]
    start("send", make("a.bin", 10), address, *options).fails_with(f"{address}: {reported}")
    assert receiver.finish(signal.SIGINT) == 0
    assert names(place) == []


@pytest.mark.slow
def test_keys(start: Start, receive: Receive, place: Path, make: Make, cli: Cli, tmp_path: Path) -> None:
    ends = {}
    for end in ("laptop", "server"):
        identity = tmp_path / end
        ends[end] = cli("key", "--identity", identity).stdout.strip()
        assert stat.S_IMODE(identity.stat().st_mode) == 0o600
        assert cli("key", "--identity", identity).stdout.strip() == ends[end]
    friends = {"laptop": "server", "server": "laptop"}
    for end, other in friends.items():
        trusted = tmp_path / f"{end}.trusted"
        cli("key", "--trusted", trusted, "--trust", ends[other], "--name", other)
        assert "trusted already" in cli("key", "--trusted", trusted, "--trust", ends[other]).stdout
        assert trusted.read_text() == f"{ends[other]} {other}\n"

    def options(end: str) -> tuple[object, ...]:
        return "--identity", tmp_path / end, "--trusted", tmp_path / f"{end}.trusted"

    receiver, address = receive(*options("server"))
    path = make("a.bin", 100_000)
    sender = start("send", path, address, *options("laptop"))
    assert sender.finish() == 0, sender.err
    assert (place / "a.bin").read_bytes() == path.read_bytes()
    # The server does not trust its own key.
    stranger = start(
        "send", path, address, "--identity", tmp_path / "server", "--trusted", tmp_path / "laptop.trusted"
    )
    stranger.fails_with(f"{address}: the receiver does not trust this key")
    start("send", path, address, "--code", CODE).fails_with("requires a trusted key instead of a code")
    assert receiver.finish(signal.SIGINT) == 0
    assert "laptop" in receiver.err


def test_the_default_files_of_keys(cli: Cli, home: Path, refused: Refused, make: Make) -> None:
    path = str(make("a.bin", 10))
    refused(["send", path, NOWHERE, "--keys"], 2, [f"{home}/identity: no such key (longfat key creates one)"])
    created = cli("key")
    assert f"created {home}/identity" in created.stderr
    refused(["send", path, NOWHERE, "--keys"], 2, [f"{home}/trusted: no such file"])
    (home / "trusted").write_text("# nobody\n")
    refused(["send", path, NOWHERE, "--keys"], 2, [f"{home}/trusted: no trusted key"])
    cli("key", "--trust", created.stdout)
    refused(["send", path, NOWHERE, "--keys"], 1, [f"nothing listens at {NOWHERE}: start longfat recv there"])
    with (home / "trusted").open("a") as trusted:
        trusted.write(f"{created.stdout.strip()[:-1]}! me\n")
    refused(["send", path, NOWHERE, "--keys"], 2, [f"{home}/trusted:3: the key contains the character '!'"])
    (home / "identity").chmod(0o644)
    refused(["key"], 2, [f"{home}/identity: other users can access this secret key (fix: chmod 600 "])


@pytest.mark.slow
def test_a_code_can_be_made_before_its_receiver(
    cli: Cli, start: Start, receive: Receive, place: Path, make: Make
) -> None:
    made = cli("key", "--code").stdout.strip()
    receiver, address = receive("--code", made)
    path = make("a.bin", 1000)
    for _ in range(2):
        assert start("send", path, address, "--code", made).finish() == 0
    assert start("send", path, address, "--code", _native.new_code()).finish() == 1
    assert receiver.wait_for(r"127\.0\.0\.1:\d+: refused: its code is wrong or used\n")
    assert names(place) == ["a.bin"]
    only_lines(cli("key", "--code", "--trust", "KEY", ok=False).stderr, ["--code prints a new code"])


@pytest.mark.parametrize(
    ("options", "reported"),
    [
        (
            ["--code", "123"],
            "--code: the code has 3 characters instead of 24; use one that longfat recv or",
        ),
        (["--code", CODE[:-1] + ("1" if CODE.endswith("0") else "0")], "typing error: its checksum differs"),
        (["--code", CODE + "u"], "--code: the code contains the character 'u'"),
        (["--insecure", "--keys"], "choose one of --code, --keys and --insecure"),
        (["--code", _native.new_code(), "--insecure"], "choose one of --code, --keys and --insecure"),
    ],
    ids=["short", "mistyped", "letter", "two", "code and insecure"],
)
def test_contradictory_options_are_refused(
    options: list[str], reported: str, refused: Refused, make: Make
) -> None:
    refused(["send", str(make("a.bin", 10)), NOWHERE, *options], 2, [reported])


def test_a_missing_code(
    refused: Refused, make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("LONGFAT_CODE")
    path = str(make("a.bin", 10))
    with (tmp_path / "nothing").open("w+") as nothing:
        monkeypatch.setattr("sys.stdin", nothing)
        refused(["send", path, NOWHERE], 2, ["no code: longfat recv prints it for --code CODE"])
    # At a terminal, the user types the code.
    leader, follower = pty.openpty()
    with os.fdopen(follower) as terminal:
        monkeypatch.setattr("sys.stdin", terminal)
        os.write(leader, f"{CODE}\n".encode())
        refused(["send", path, NOWHERE], 1, [f"nothing listens at {NOWHERE}: start longfat recv there"])
    os.close(leader)


def test_folders(start: Start, receive: Receive, place: Path, make: Make) -> None:
    _, address = receive("--once")
    folder = make("a.bin", 1000).parent
    (folder / "sub").mkdir()
    (folder / "sub" / "b.bin").write_bytes(b"b")
    (folder / "link").symlink_to("/etc/passwd")
    sender = start("send", "-r", folder, address)
    assert sender.finish() == 0, sender.err
    assert "links and special files skipped: 1" in sender.err
    assert (place / "source" / "sub" / "b.bin").read_bytes() == b"b"
    assert names(place / "source") == ["a.bin", "sub"]


@pytest.mark.slow
def test_limits(start: Start, receive: Receive, place: Path, make: Make, refused: Refused) -> None:
    _, address = receive("--max-bytes", "1kB")
    hidden, large, small = make(".profile", 10), make("large", 1001), make("small", 1000)
    hidden.chmod(0o755)
    small.chmod(0o755)
    start("send", hidden, address).fails_with("refused by the receiver: the name starts with a dot")
    start("send", large, address).fails_with(
        "its 1001 bytes exceed the receiver's limit (--max-bytes): 1000 bytes left"
    )
    assert start("send", small, address).finish() == 0
    assert names(place) == ["small"]
    assert not (place / "small").stat().st_mode & 0o111
    _, address = receive("--dotfiles", "--executables")
    assert start("send", hidden, address).finish() == 0
    assert (place / ".profile").stat().st_mode & 0o100
    refused(["recv", "--max-bytes", "1"], 2, ['--max-bytes: "1" is not a size'])
    refused(["recv", "--ask"], 2, ["--ask needs a terminal"])


@pytest.mark.parametrize("answer", ["y", "n", "\x04"], ids=["yes", "no", "end"])
def test_ask_waits_for_an_answer(answer: str, start: Start, place: Path, make: Make) -> None:
    leader, follower = pty.openpty()
    with os.fdopen(follower) as terminal:
        receiver = start("recv", "--dir", place, "--listen", "127.0.0.1:0", "--once", "--ask", stdin=terminal)
        sender = start("send", make("a.bin", 1000), make("b.bin", 1000), receiver.address())
        receiver.wait_for(r"offers 2 files, e.g. a.bin, 2.00 kB. Accept\? \[y/N\]")
        assert names(place) == []
        os.write(leader, f"{answer}\n".encode())
        accepted = answer == "y"
        assert sender.finish() == (0 if accepted else 1), sender.err
        assert names(place) == (["a.bin", "b.bin"] if accepted else [])
        assert "refused by the receiver: declined" in sender.err or accepted
        assert receiver.finish() == (0 if accepted else 1)
    os.close(leader)


def test_invalid_keys_are_refused(refused: Refused, home: Path) -> None:
    refused(["key", "--trust", "ssh-ed25519"], 2, ['--trust: the key does not start with "longfat-key-"'])
    refused(["key", "--name", "me"], 2, ["it needs --trust KEY"])
    assert not home.exists()
