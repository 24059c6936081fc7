"""`longfat explain` of transfers by programs that are not ours, captured by tcpdump between Linux kernels."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests import requirements
from tests.conftest import Cli
from tests.waiting import undisturbed

import longfat as lf
from longfat.analysis.captures import explained

pytestmark = [pytest.mark.usefixtures("emulated"), pytest.mark.slow]

PATH = {"--rate": "20Mbit/s", "--delay": "20ms", "--queue": "100pkt"}
STALLING = """
import socket, sys, time
server = socket.create_server(("0.0.0.0", 8000))
connection, _ = server.accept()
got, pause = 0, 3
while data := connection.recv(65536):
    got += len(data)
    if got > 1_000_000 and pause:
        time.sleep(pause)
        pause = 0
"""
SENDING = """
import socket
connection = socket.create_connection(("receiver", 8000))
connection.sendall(bytes(4_000_000))
connection.shutdown(socket.SHUT_WR)
connection.recv(1)
"""
SERVER = f"{sys.executable} -m http.server 8000"
CURL = "curl -sS -o /dev/null http://receiver:8000/file"


@pytest.fixture
def captured(cli_process: Cli, tmp_path: Path) -> Callable[..., lf.Explanation]:
    """Returns the explanation of a command's traffic at its host."""
    for program in ("tcpdump", "curl", "iperf3"):
        if shutil.which(program) is None:
            requirements.skip("programs", f"needs {program}")
    (tmp_path / "file").write_bytes(bytes(4_000_000))
    (tmp_path / "server.py").write_text(STALLING)
    (tmp_path / "client.py").write_text(SENDING)

    def explain(command: str, server: str, *settings: str, **path: str) -> lf.Explanation:
        file = tmp_path / "capture.pcap"
        line = (
            f"tcpdump -U -i any -s 128 -w {file} tcp 2>tcpdump.log & "
            "while ! grep -q listening tcpdump.log; do sleep 0.1; done; "
            f"{command}; sleep 0.5; kill %1; wait"
        )
        words = [word for pair in (PATH | path).items() for word in pair]
        words += ["--congestion", "cubic", "--server", server, "--wait-port", "8000", *settings]
        cli_process("shell", *words, "--", "bash", "-mc", line)
        return lf.explain(file, replay=False)

    return explain


def _limited_by(limit: str, attempt: Callable[[], lf.Explanation]) -> lf.Explanation:
    found = undisturbed(attempt, lambda found: found.limit == limit)
    assert found.limit == limit, found.limits
    return found


def test_a_download_by_curl_with_losses(captured: Callable[..., lf.Explanation]) -> None:
    settings = ("--set", "reverse.loss=1%")
    found = _limited_by(explained.LOSS, lambda: captured(CURL, SERVER, *settings, **{"--rate": "100Mbit/s"}))
    assert found.one is not None
    assert not found.one.is_client
    assert found.one.path["base_rtt_s"] == pytest.approx(0.04, rel=0.03)


def test_a_download_by_curl_over_a_slow_link(captured: Callable[..., lf.Explanation]) -> None:
    found = _limited_by(explained.BANDWIDTH, lambda: captured(CURL, SERVER, **{"--queue": "60pkt"}))
    assert found.one is not None
    assert found.one.bytes > 4_000_000


def test_iperf_with_a_deep_queue(captured: Callable[..., lf.Explanation]) -> None:
    command = "iperf3 -c receiver -p 8000 -t 8"
    path = {"--rate": "10Mbit/s", "--delay": "10ms", "--queue": "200pkt"}
    found = _limited_by(explained.BUFFERBLOAT, lambda: captured(command, "iperf3 -s -p 8000", **path))
    assert found.one is not None
    assert found.one.path["rate_bps"] == pytest.approx(9.6e6, rel=0.05)


def test_a_program_that_does_not_read(captured: Callable[..., lf.Explanation]) -> None:
    settings = ("--sysctl", "net.ipv4.tcp_rmem=4096 131072 500000")
    found = _limited_by(
        explained.STALL,
        lambda: captured(
            f"{sys.executable} client.py", f"{sys.executable} server.py", *settings, **{"--rate": "50Mbit/s"}
        ),
    )
    stall = found.to_polars().filter(cause="receiver-stall")
    assert (stall["end_s"] - stall["start_s"]).sum() == pytest.approx(3, abs=0.7)
