"""SIGINT and SIGTERM stop every command that runs for long, in Python and in native code."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.conftest import command
from tests.extensions.endless import STARTED
from tests.waiting import PATIENCE_S

from longfat.system.interpreter import python_command

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")

CLASSES = Path(__file__).parent.parent / "extensions" / "endless.py"
STUDY = f"""\
title = "Longer than any test"
path = {{ rate = "1Gbit/s", delay = "1ms" }}
workload = {{ kind = "bulk", duration = "36000s" }}
protocols = [{{ name = "p", kind = "mptcp", policy = "{CLASSES}:Started" }}]
repeats = 4
"""
PROGRAM = """\
import sys
import longfat
study = {
    "title": "t",
    "path": {"rate": "10Mbit/s", "delay": "10ms"},
    "workload": {"kind": "file", "size": "1MB"},
    "protocols": [{"name": "p", "kind": "tcp", "congestion": "%s:%s"}],
}
try:
    longfat.run(study, out="program")
except KeyboardInterrupt:
    sys.exit(130)
"""
AT_ONCE = 8
"""Commands that run at the same time."""
INTERRUPTED = 130
TERMINATED = -signal.SIGTERM
SAME_IN_A_SHELL = {INTERRUPTED: (INTERRUPTED, -signal.SIGINT)}
"""Python ends itself by the signal if Ctrl-C comes while it runs a string as code, as dataclasses do."""


def with_class(kind: str) -> list[str]:
    return ["--set", f'protocols=[{{name="p", kind="tcp", congestion="{CLASSES}:{kind}"}}]']


def with_queue() -> list[str]:
    return ["--set", "protocols=reno", "--set", f"path.queue={CLASSES}:LongQueue"]


@dataclass
class Peer:
    """Sockets of this test that measuring commands use, without answers."""

    udp: socket.socket = field(default_factory=lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    tcp: socket.socket = field(default_factory=socket.socket)
    accepted: socket.socket | None = None

    def __post_init__(self) -> None:
        for one in (self.udp, self.tcp):
            one.bind(("127.0.0.1", 0))
            one.settimeout(PATIENCE_S)
        self.tcp.listen()

    def port(self, one: socket.socket) -> str:
        return str(one.getsockname()[1])


@dataclass(frozen=True)
class Case:
    """A command in its own folder, and how to see that it is in the phase to stop."""

    words: Callable[[Peer], list[str]]
    wait: str
    """Text in its output; or "file" of `STARTED`, "udp" or "tcp" for a packet at the peer."""
    codes: tuple[int, int] = (INTERRUPTED, INTERRUPTED)
    """Exit codes after SIGINT and SIGTERM."""


def case(*words: str, wait: str = "file", codes: tuple[int, int] = (INTERRUPTED, INTERRUPTED)) -> Case:
    return Case(lambda _: list(words), wait, codes)


def transaction(protocol: str, port: str) -> list[str]:
    return ["transact", "127.0.0.1", "--protocol", protocol, "--port", port, "--timeout", "60s"]


NO_HANDLER = (INTERRUPTED, TERMINATED)
SERVER = (0, 0)
CASES = {
    "run": case("run", "long.toml"),
    "run-endless": case("run", "long.toml", "--jobs", "2", *with_class("Endless")),
    "run-asleep": case("run", "long.toml", *with_class("Asleep")),
    "run-queue": case("run", "long.toml", *with_queue()),
    "trace": case("trace", "long.toml", codes=NO_HANDLER),
    "trace-endless": case("trace", "long.toml", *with_class("Endless"), codes=NO_HANDLER),
    "trace-queue": case("trace", "long.toml", *with_queue(), codes=NO_HANDLER),
    "program": case("-c", PROGRAM % (CLASSES, "Endless"), codes=NO_HANDLER),
    "program-asleep": case("-c", PROGRAM % (CLASSES, "Asleep"), codes=NO_HANDLER),
    "echo": case("echo", "--port", "0", wait="Listening on", codes=SERVER),
    "relay": case(
        "relay",
        "--listen",
        "127.0.0.1:0",
        "--to",
        "127.0.0.1:9",
        "--delay",
        "1ms",
        wait="Listening on",
        codes=SERVER,
    ),
    "recv": case("recv", "--listen", "127.0.0.1:0", wait="Listening on", codes=SERVER),
    "send": Case(lambda peer: ["send", "long.toml", f"127.0.0.1:{peer.port(peer.udp)}", "--insecure"], "udp"),
    "ping": Case(
        lambda peer: [
            "ping",
            "127.0.0.1",
            "--protocol",
            "udp",
            "--port",
            peer.port(peer.udp),
            "--interval",
            "1s",
        ],
        "udp",
    ),
    "transact": Case(lambda peer: transaction("udp", peer.port(peer.udp)), "udp"),
    "transact-tcp": Case(lambda peer: transaction("tcp", peer.port(peer.tcp)), "tcp"),
    "transact-ttcp": Case(lambda peer: transaction("ttcp", peer.port(peer.udp)), "udp"),
    "path": Case(
        lambda peer: ["path", "127.0.0.1", "--protocol", "udp", "--port", peer.port(peer.udp)], "udp"
    ),
    "demo": case("demo", wait="Go-Back-N", codes=NO_HANDLER),
}


@contextmanager
def running(folder: Path, one: Case) -> Iterator[tuple[subprocess.Popen[bytes], Callable[[], None]]]:
    """Runs a command. Yields the process, and a function that waits until it is in its phase."""
    folder.mkdir()
    (folder / "long.toml").write_text(STUDY, encoding="utf-8")
    peer = Peer()
    words, marker = one.words(peer), folder / "started"
    line = python_command(*words) if words[0] == "-c" else command(*words)
    environment = {**os.environ, STARTED: str(marker)}
    with (
        peer.udp,
        peer.tcp,
        (folder / "output").open("wb") as output,
        subprocess.Popen(
            line, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment
        ) as process,
    ):
        try:
            yield process, lambda: _await(one.wait, peer, marker, folder / "output", process)
        finally:
            process.kill()
            if peer.accepted is not None:
                peer.accepted.close()


def _await(wait: str, peer: Peer, marker: Path, output: Path, process: subprocess.Popen[bytes]) -> None:
    if wait == "udp":
        peer.udp.recv(2000)
        return
    if wait == "tcp":
        peer.accepted = peer.tcp.accept()[0]
        return
    end = time.monotonic() + PATIENCE_S
    while not (marker.exists() if wait == "file" else wait in output.read_text(encoding="utf-8")):
        assert process.poll() is None, output.read_text(encoding="utf-8")
        assert time.monotonic() < end, output.read_text(encoding="utf-8")
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
@pytest.mark.slow
def test_a_signal_stops_every_long_command(tmp_path: Path, number: signal.Signals) -> None:
    names = list(CASES)
    for first in range(0, len(names), AT_ONCE):
        _stop({name: CASES[name] for name in names[first : first + AT_ONCE]}, tmp_path, number)


def _stop(cases: dict[str, Case], folder: Path, number: signal.Signals) -> None:
    with ExitStack() as stack:
        all_ = {name: stack.enter_context(running(folder / name, one)) for name, one in cases.items()}
        # Measurements end by themselves if there is no answer, so they are stopped first.
        for process, wait in reversed(all_.values()):
            wait()
            process.send_signal(number)
        for name, (process, _) in all_.items():
            code = process.wait(PATIENCE_S)
            output = (folder / name / "output").read_text(encoding="utf-8")
            expected = cases[name].codes[number is signal.SIGTERM]
            assert code in SAME_IN_A_SHELL.get(expected, (expected,)), (name, output)
            assert "Traceback" not in output, (name, output)
            assert "panicked" not in output, (name, output)
