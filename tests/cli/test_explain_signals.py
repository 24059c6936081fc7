"""Ctrl-C during `longfat explain`: it ends standard input, and stops simulations without leaving a file."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.conftest import command
from tests.waiting import PATIENCE_S, wait_until

import longfat as lf

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")

INTERRUPTED = 130
SIMULATING_S = 1.2
"""Processor time after which a command has read the capture."""
Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("capture") / "capture.pcapng"
    path = {"rate": "50Mbit/s", "delay": "20ms", "queue": "200pkt", "loss": "1%"}
    lf.trace("cubic", path, "10MB", pcapng=file, snap=96, samples=False)
    return file


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts `explain`, which ends with the test."""
    running: list[subprocess.Popen[bytes]] = []

    def started(*words: str | Path) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [*command(), "explain", *map(str, words)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        running.append(process)
        return process

    yield started
    for process in running:
        process.kill()
        process.communicate()


def _feed(process: subprocess.Popen[bytes], content: bytes) -> None:
    """Writes to standard input, and waits until all is decoded: until every thread waits for more."""
    assert process.stdin is not None
    process.stdin.write(content)
    process.stdin.flush()
    descriptor = process.stdin.fileno()
    wait_until(lambda: struct.unpack("i", fcntl.ioctl(descriptor, termios.FIONREAD, b"\0" * 4)) == (0,))
    wait_until(lambda: _thread_states(process) == {"S"})


def _thread_states(process: subprocess.Popen[bytes]) -> set[str]:
    threads = Path(f"/proc/{process.pid}/task").iterdir()
    return {(thread / "stat").read_text().rpartition(")")[2].split()[0] for thread in threads}


def _processor_time(process: subprocess.Popen[bytes]) -> float:
    """The time in s that all threads of a process have used."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _interrupted(process: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    """Sends SIGINT, and returns the exit code and the output. Standard input stays open."""
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    process.wait(PATIENCE_S)
    assert process.stdout is not None
    assert process.stderr is not None
    return process.returncode, process.stdout.read().decode(), process.stderr.read().decode()


def test_ctrl_c_ends_a_live_capture_which_is_explained(start: Start, capture: Path) -> None:
    process = start("-", "--no-replay", "--json")
    _feed(process, capture.read_bytes()[:300_000])
    code, out, err = _interrupted(process)
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["frames"] > 1000
    assert found["ended_early"] == f"interrupted after frame {found['frames']}"


def test_ctrl_c_before_the_first_packet_ends_the_command(start: Start, capture: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    process = start("-", "--out", report)
    _feed(process, capture.read_bytes()[:12])
    code, out, _ = _interrupted(process)
    assert (code, out) == (INTERRUPTED, "")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_ctrl_c_during_simulations_leaves_no_file(start: Start, capture: Path, tmp_path: Path) -> None:
    report, model = tmp_path / "report.html", tmp_path / "model.toml"
    process = start(capture, "--trials", "1000", "--out", report, "--model", model)
    wait_until(lambda: _processor_time(process) > SIMULATING_S)
    code, out, _ = _interrupted(process)
    assert (code, out) == (INTERRUPTED, "")
    assert not list(tmp_path.iterdir())
