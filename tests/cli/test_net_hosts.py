"""`longfat net`: settings of hosts, the end of commands, and captures; skipped without namespaces."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import Start
from tests.cli.terminal import Sleep
from tests.cli.test_shell_hosts import STOPPING, blocks
from tests.conftest import Cli, Data
from tests.waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.usefixtures("emulated")


@pytest.fixture
def cli(cli_process: Cli) -> Cli:
    """Runs commands in a separate process, because networks outlive the command that started them."""
    return cli_process


@pytest.fixture
def study(data: Data, write: Callable[[Data], Path]) -> Path:
    """A study with a path of 5 ms each way and no loss in its first cell."""
    return write(data)


def test_options_of_hosts_apply_and_are_printed(cli: Cli, study: Path, tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_text(
        "kernel\nreceiver cat /proc/sys/net/ipv4/tcp_rmem\n"
        "receiver cat /proc/sys/net/ipv4/tcp_congestion_control\n"
    )
    options = ("--sysctl", "receiver:net.ipv4.tcp_rmem=4096 131072 999424", "--congestion", "reno")
    done = cli("net", study, "--run", lines, *options)
    first, second, buffers, controller = done.stdout.splitlines()
    assert first == "Default congestion controller of the kernel: reno"
    assert "receiver: net.ipv4.tcp_rmem = 4096 131072 999424 (" in second
    assert (buffers.split(), controller) == (["4096", "131072", "999424"], "reno")


def test_a_script_waits_for_a_port_and_captures(cli: Cli, study: Path, tmp_path: Path) -> None:
    lines, file = tmp_path / "lines", tmp_path / "net.pcapng"
    serve = 'import socket, time; time.sleep(0.5); s = socket.create_server(("", 80)); time.sleep(60)'
    fetch = 'import socket; socket.create_connection(("receiver", 80)); print("connected")'
    lines.write_text(
        f"receiver {sys.executable} -c '{serve}' &\nwait receiver 80\nsender {sys.executable} -c '{fetch}'\n"
        "wait receiver x\nwait nowhere 80\n"
    )
    done = cli("net", study, "--run", lines, "--pcapng", file, ok=False)
    assert done.stdout == "connected\n"
    port, host = [line for line in done.stderr.splitlines() if line.startswith("longfat: ")]
    assert port == 'longfat: "x" is not a port: write e.g. 5201 or 53/udp (1 to 65535)'
    assert 'there is no host "nowhere": allowed: sender, receiver' in host
    # The SYN at both hosts.
    assert [place for place, data in blocks(file) if data[33] == 2] == [0, 1]


def test_commands_in_the_background_stop_by_sigterm(cli: Cli, study: Path, tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(STOPPING)
    run = f"{sys.executable} server.py"
    lines = tmp_path / "lines"
    lines.write_text(
        f"receiver {run} server &\nsender setsid {run} daemon &\n"
        "sender until test -e server.up -a -e daemon.up; do sleep 0.05; done\n"
    )
    cli("net", study, "--run", lines)
    assert (tmp_path / "server").read_text() == (tmp_path / "daemon").read_text() == "stopped"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_testbed_within_two_seconds(
    start: Start, study: Path, tmp_path: Path, number: signal.Signals
) -> None:
    long, other = Sleep(), Sleep()
    lines = tmp_path / "lines"
    stubborn = "trap '' TERM INT HUP"
    lines.write_text(f"receiver ({stubborn}; {other}; {other}) &\nsender {stubborn}; {long}; {long}\n")
    running = start("net", study, "--run", lines)
    long.wait()
    other.wait()
    sent = time.monotonic()
    running.process.send_signal(number)
    running.process.wait(PATIENCE_S)
    elapsed = time.monotonic() - sent
    wait_until(lambda: not long.runs() and not other.runs())
    # A busy machine may add to the 1.7 s of the commands.
    assert elapsed < 5
