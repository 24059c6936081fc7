"""`longfat explain` of transfers by programs that are not ours, captured by tcpdump between Linux kernels."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests import requirements
from tests.conftest import Cli
from tests.waiting import undisturbed

import longfat as lf
from longfat.analysis.captures import explained

pytestmark = [pytest.mark.usefixtures("emulated"), pytest.mark.slow]

SIZE = 4_000_000
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
FILES = """
use chroot = no
uid = root
gid = root
[files]
path = {folder}
"""
CURL = "curl -sS -o /dev/null http://receiver:8000/file"


@pytest.fixture
def captured(cli_process: Cli, tmp_path: Path) -> Callable[..., lf.Explanation]:
    """Returns the explanation of a command's traffic at its host."""
    for program in ("tcpdump", "curl", "iperf3"):
        if shutil.which(program) is None:
            requirements.skip("programs", f"needs {program}")
    (tmp_path / "file").write_bytes(bytes(SIZE))
    (tmp_path / "server.py").write_text(STALLING)
    (tmp_path / "client.py").write_text(SENDING)

    def explain(command: str, server: str, *settings: str, **path: str) -> lf.Explanation:
        file = tmp_path / "capture.pcap"
        # Without --immediate-mode, packets of the last second can stay in the kernel's buffer.
        line = (
            f"tcpdump --immediate-mode -B 16384 -U -i any -s 128 -w {file} tcp 2>tcpdump.log & "
            "while ! grep -q listening tcpdump.log; do sleep 0.1; done; "
            f"{command}; code=$?; sleep 0.5; kill %1; wait; exit $code"
        )
        words = [word for pair in (PATH | path).items() for word in pair]
        words += ["--congestion", "cubic", "--server", server, "--wait-port", "8000", *settings]
        cli_process("shell", *words, "--", "bash", "-mc", line)
        return lf.explain(file, replay=False)

    return explain


def _programs() -> Path:
    """Returns the folder of PostgreSQL's programs, which Debian has outside of PATH."""
    found = shutil.which("initdb")
    folders = [Path(found).parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not folders or shutil.which("psql") is None or shutil.which("pgbench") is None:
        requirements.skip("programs", "needs postgres, psql and pgbench")
    return folders[-1]


@pytest.fixture
def postgres() -> Iterator[str]:
    """Returns a command that starts a PostgreSQL server at port 8000. It refuses to run as root."""
    programs = _programs()
    as_user = ""
    if os.geteuid() == 0:
        as_user = "setpriv --reuid=postgres --regid=postgres --init-groups "
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        data.mkdir()
        if as_user:
            shutil.chown(folder, "postgres")
            shutil.chown(data, "postgres")
        line = f"{as_user}{programs / 'initdb'} -D {data} -A trust -U postgres -N"
        subprocess.run(line.split(), check=True, capture_output=True, cwd="/")
        with (data / "pg_hba.conf").open("a") as file:
            file.write("host all all 0.0.0.0/0 trust\nhost all all ::/0 trust\n")
        yield f"cd {folder}; exec {as_user}{programs / 'postgres'} -D {data} -h '*' -p 8000 -k {data}"


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
    assert found.one.bytes > SIZE


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


def test_a_query_of_postgresql_over_a_slow_link(
    captured: Callable[..., lf.Explanation], postgres: str
) -> None:
    query = "copy (select repeat('x', 1000) from generate_series(1, 5000)) to stdout"
    command = f'psql -h receiver -p 8000 -U postgres -o copy.txt -c "{query}"'
    found = _limited_by(explained.BANDWIDTH, lambda: captured(command, postgres))
    assert found.one is not None
    assert found.one.bytes > SIZE
    assert found.one.path["position"] == "receiver"


def test_many_small_queries_wait_for_requests(captured: Callable[..., lf.Explanation], postgres: str) -> None:
    script = "echo 'select 1;' > one.sql"
    command = f"{script}; pgbench -h receiver -p 8000 -U postgres -n -f one.sql -t 60 postgres"
    found = _limited_by(explained.APPLICATION, lambda: captured(command, postgres))
    assert found.one is not None
    assert found.one.path["base_rtt_s"] == pytest.approx(0.04, rel=0.05)


def test_a_copy_by_rsync_with_losses(captured: Callable[..., lf.Explanation], tmp_path: Path) -> None:
    if shutil.which("rsync") is None:
        requirements.skip("programs", "needs rsync")
    (tmp_path / "rsyncd.conf").write_text(FILES.format(folder=tmp_path))
    server = f"rsync --daemon --no-detach --port=8000 --config={tmp_path / 'rsyncd.conf'}"
    command = "rsync rsync://receiver:8000/files/file copy"
    settings = ("--set", "reverse.loss=1%")
    found = _limited_by(
        explained.LOSS, lambda: captured(command, server, *settings, **{"--rate": "100Mbit/s"})
    )
    assert found.one is not None
    assert found.one.bytes > SIZE
