"""Ctrl-C during `longfat explain`: it ends standard input, and stops simulations without leaving a file."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.conftest import command
from tests.waiting import PATIENCE_S

import longfat as lf

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")

INTERRUPTED = 130
STARTED_S = 2.0
"""Time after which a command has read its input."""
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


def _interrupted(process: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    """Sends SIGINT, and returns the exit code and the output. Standard input stays open."""
    time.sleep(STARTED_S)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    process.wait(PATIENCE_S)
    assert process.stdout is not None
    assert process.stderr is not None
    return process.returncode, process.stdout.read().decode(), process.stderr.read().decode()


def test_ctrl_c_ends_a_live_capture_which_is_explained(start: Start, capture: Path) -> None:
    process = start("-", "--no-replay", "--json")
    assert process.stdin is not None
    process.stdin.write(capture.read_bytes()[:300_000])
    process.stdin.flush()
    code, out, err = _interrupted(process)
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["frames"] > 1000
    assert found["ended_early"] == f"interrupted after frame {found['frames']}"


def test_ctrl_c_before_the_first_packet_ends_the_command(start: Start, tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    code, out, _ = _interrupted(start("-", "--out", report))
    assert (code, out) == (INTERRUPTED, "")
    assert not list(tmp_path.iterdir())


def test_ctrl_c_during_simulations_leaves_no_file(start: Start, capture: Path, tmp_path: Path) -> None:
    report, model = tmp_path / "report.html", tmp_path / "model.toml"
    process = start(capture, "--trials", "1000", "--out", report, "--model", model)
    code, out, _ = _interrupted(process)
    assert (code, out) == (INTERRUPTED, "")
    assert not list(tmp_path.iterdir())
