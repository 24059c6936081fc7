"""`longfat shell`: settings of hosts, servers, captures and IPv6; skipped without namespaces."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests import requirements
from tests.cli.conftest import Refused, Start
from tests.cli.terminal import Sleep
from tests.conftest import Cli
from tests.waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.usefixtures("emulated")

ECN = Path("/proc/sys/net/ipv4/tcp_ecn")
BUFFERS = Path("/proc/sys/net/ipv4/tcp_rmem")


@pytest.fixture
def cli(cli_process: Cli) -> Cli:
    """Runs commands in a separate process, because they take over signals and the terminal."""
    return cli_process


def reported(err: str) -> dict[str, Any]:
    """Returns the JSON document on the last line of standard error."""
    content = json.loads(err.splitlines()[-1])
    assert isinstance(content, dict)
    return content


def python(program: str) -> list[object]:
    return ["--", sys.executable, "-c", program]


def test_hosts_have_the_settings_of_this_machine(cli: Cli) -> None:
    names = ["tcp_rmem", "tcp_wmem", "tcp_ecn", "tcp_no_metrics_save", "tcp_slow_start_after_idle"]
    files = [f"/proc/sys/net/ipv4/{name}" for name in names]
    done = cli("shell", "--json", "--", "cat", *files)
    assert done.stdout == "".join(Path(file).read_text(encoding="utf-8") for file in files)
    differing = {one["key"]: one for one in reported(done.stderr)["sysctls"]}
    assert not {f"net.ipv4.{name}" for name in names} & set(differing)
    assert differing["net.ipv4.icmp_ratelimit"]["value"] == "0"
    assert differing["net.ipv4.icmp_ratelimit"]["host"] is None


def test_settings_change_at_all_hosts_or_one(cli: Cli, tmp_path: Path) -> None:
    machine = ECN.read_text(encoding="utf-8").strip()
    other = "1" if machine != "1" else "2"
    options = (
        "--sysctl",
        "net.ipv4.tcp_rmem=4096 131072 999424",
        "--sysctl",
        f"receiver:net.ipv4.tcp_ecn={other}",
    )
    server = f"cat {ECN} > '{tmp_path}/ecn'"
    done = cli("shell", *options, "--server", server, "--", "sh", "-c", f"cat {BUFFERS} {ECN}; sleep 1")
    assert done.stdout.split() == ["4096", "131072", "999424", machine]
    assert (tmp_path / "ecn").read_text(encoding="utf-8").strip() == other
    [line] = [line for line in " ".join(done.stderr.split()).split("in ") if "Sysctls that differ" in line]
    assert f"receiver: net.ipv4.tcp_ecn = {other} ({machine})" in line
    assert "net.ipv4.tcp_rmem = 4096 131072 999424" in line
    assert ECN.read_text(encoding="utf-8").strip() == machine


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("net.ipv4.tcp_ecn", '--sysctl: "net.ipv4.tcp_ecn": write [HOST:]KEY=VALUE'),
        ("kernel.hostname=x", 'sysctl: "kernel.hostname" is not a setting of networks'),
        ("net.ipv4/../../kernel/hostname=x", "is not a setting of networks"),
        ("net.ipv4.tcp_enc=1", "sysctl: net.ipv4.tcp_enc: a network namespace has no such setting"),
        ("net.ipv4.tcp_ecn=x", 'sysctl: net.ipv4.tcp_ecn: the kernel refuses the value "x"'),
        ("far:net.ipv4.tcp_ecn=1", 'sysctl: there is no host "far": allowed: sender, receiver'),
    ],
)
def test_invalid_settings_are_refused(option: str, message: str, refused: Refused) -> None:
    refused(["shell", "--sysctl", option, "true"], 2, [message])


def test_a_congestion_controller_applies_to_programs_that_select_none(cli: Cli) -> None:
    connected = """
import os, socket
with socket.create_connection(("receiver", 80)) as client:
    print(client.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\\0").decode())
"""
    serve = 'import socket, time; s = socket.create_server(("", 80)); time.sleep(60)'
    server = f"exec '{sys.executable}' -c '{serve}'"
    available = (
        Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text(encoding="utf-8").split()
    )
    for name in available:
        options = ("--congestion", name, "--server", server, "--wait-port", 80, "--json")
        done = cli("shell", *options, *python(connected))
        # One that only privileged programs may select applies by the routes.
        assert done.stdout == f"{name}\n"
        assert reported(done.stderr)["kernel_controller"].startswith(name)


def test_an_unknown_congestion_controller_is_refused(refused: Refused) -> None:
    words = ['congestion: "vegass" is not in this kernel: available: ']
    refused(["shell", "--congestion", "vegass", "true"], 2, words)


STOPPING = """
import pathlib, signal, sys, time
name = sys.argv[1]
def stop(number, frame):
    time.sleep(0.3)
    pathlib.Path(name).write_text("stopped")
    sys.exit()
signal.signal(signal.SIGTERM, stop)
pathlib.Path(name + ".up").touch()
while True:
    time.sleep(60)
"""


def test_servers_and_their_daemons_stop_by_sigterm(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(STOPPING)
    run = f"'{sys.executable}' server.py"
    server = f"setsid {run} daemon & {run} child & {run} server"
    names = ("daemon", "child", "server")
    wait = "; ".join(f"until test -e {name}.up; do sleep 0.05; done" for name in names)
    done = cli("shell", "--server", server, "--", "sh", "-c", f"{run} background & {wait}")
    assert done.returncode == 0
    for name in names:
        assert (tmp_path / name).read_text() == "stopped", name


def test_a_server_that_ignores_sigterm_is_killed_after_five_seconds(cli: Cli) -> None:
    long = Sleep()
    start = time.monotonic()
    cli("shell", "--server", f"trap '' TERM; {long}; {long}", "--", "true")
    assert time.monotonic() - start >= 5
    assert not long.runs()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_everything_within_two_seconds(start: Start, number: signal.Signals) -> None:
    long, other = Sleep(), Sleep()
    running = start(
        "shell", "--json", "--server", f"trap '' TERM INT; {other}; {other}", "--",
        "sh", "-c", f"trap '' TERM INT HUP; {long}; {long}"
    )  # fmt: skip
    long.wait()
    other.wait()
    sent = time.monotonic()
    running.process.send_signal(number)
    assert running.process.wait(PATIENCE_S) == 128 + signal.SIGKILL
    elapsed = time.monotonic() - sent
    wait_until(lambda: not long.runs() and not other.runs())
    # A busy machine may add to the 1.5 s of the command.
    assert elapsed < 5
    assert reported(running.err)["code"] == 128 + signal.SIGKILL


LATE = """
import socket, time
time.sleep(1)
with socket.create_server(("", 80)) as server:
    server.accept()[0].sendall(b"late\\n")
    time.sleep(60)
"""


def test_the_command_waits_for_the_port_of_the_server(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "late.py").write_text(LATE)
    fetch = "import socket; print(socket.create_connection(('receiver', 80)).makefile().readline(), end='')"
    done = cli("shell", "--server", f"exec '{sys.executable}' late.py", "--wait-port", 80, *python(fetch))
    assert done.stdout == "late\n"
    # No connection but the command's has reached the server.


def test_the_command_waits_for_a_port_of_udp(cli: Cli) -> None:
    serve = "import socket, time; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)"
    server = f"""exec '{sys.executable}' -c '{serve}; time.sleep(0.5); s.bind(("", 53)); time.sleep(60)'"""
    done = cli("shell", "--server", server, "--wait-port", "53/udp", "--", "echo", "ran")
    assert done.stdout == "ran\n"


def test_a_server_that_never_listens_is_an_error(cli: Cli) -> None:
    done = cli("shell", "--server", "exit 3", "--wait-port", "53/udp", "--", "echo", "ran", ok=False)
    assert (done.returncode, done.stdout) == (1, "")
    line = "longfat: cannot wait for the server at UDP port 53: it exited with code 3"
    assert line in done.stderr.splitlines()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--wait-port", "80"], "--wait-port requires --server"),
        (["--wait-port", "0", "--server", "x"], '--wait-port: "0" is not a port'),
        (["--wait-port", "80/sctp", "--server", "x"], '--wait-port: "80/sctp" is not a port'),
    ],
)
def test_invalid_ports_are_refused(options: list[str], message: str, refused: Refused) -> None:
    refused(["shell", *options, "true"], 2, [message])


def blocks(file: Path) -> list[tuple[int, bytes]]:
    """The interface and bytes of each packet of a capture (pcapng)."""
    data, at, found = file.read_bytes(), 0, []
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind == 6:  # an enhanced packet block
            interface, _, _, kept, _ = struct.unpack_from("<5I", data, at + 8)
            found.append((interface, data[at + 28 : at + 28 + kept]))
        at += length
    return found


SEND = """
import os, socket, time
for family, name in ((socket.AF_INET, "LONGFAT_PEER"), (socket.AF_INET6, "LONGFAT_PEER6")):
    with socket.socket(family, socket.SOCK_DGRAM) as sender:
        for number in range(10):
            sender.sendto(b"packet %d" % number, (os.environ[name], 9))
            time.sleep(0.01)
time.sleep(0.2)
"""


def test_a_capture_has_the_packets_at_both_hosts(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "both.pcapng"
    hops = "hops = [{ delay = '5ms' }, { delay = '5ms' }]"
    (tmp_path / "model.toml").write_text(f"[path]\n{hops}")
    options = ("--path", tmp_path / "model.toml", "--pcapng", file, "--json")
    done = cli("shell", *options, *python(SEND))
    packets = blocks(file)
    assert reported(done.stderr)["capture"] == {"packets": len(packets), "missing": 0}
    for number in range(10):
        payload = b"packet %d" % number
        # Sent and received once over each version of IP, and returned in ICMP errors.
        for version in (4, 6):
            found = [one for one in packets if one[1].endswith(payload) and one[1][0] >> 4 == version]
            assert [place for place, data in found if data[9 if version == 4 else 6] == 17] == [0, 1]
            assert len(found) == 4
            # The router on the path has decremented the time to live.
            lives = [data[8 if version == 4 else 7] for _, data in found]
            assert lives[:2] == [64, 63]


def test_a_capture_that_cannot_be_written_is_an_error(refused: Refused) -> None:
    refused(["shell", "--pcapng", "/no/such/folder/x", "true"], 1, ["write /no/such/folder/x: No such file"])


IPV6 = """
import os, socket
peer, own = os.environ["LONGFAT_PEER6"], os.environ["LONGFAT_ADDRESS6"]
for name, address in (("receiver", peer), ("sender", own)):
    assert socket.getaddrinfo(name, 80, socket.AF_INET6, socket.SOCK_STREAM)[0][4][0] == address
with socket.create_connection((peer, 80)) as client:
    total = sum(len(data) for data in iter(lambda: client.recv(65536), b""))
print(peer, client.family.name if hasattr(client.family, "name") else client.family, total)
"""
SERVE6 = """
import socket
with socket.create_server(("::", 80), family=socket.AF_INET6) as server:
    with server.accept()[0] as client:
        client.sendall(bytes(3_000_000))
    server.accept()
"""


@pytest.mark.parametrize("rate", ["50Mbit/s", "1Gbit/s"])
def test_programs_use_ipv6(cli: Cli, tmp_path: Path, rate: str) -> None:
    # At 1 Gbit/s, hosts pass several segments at once.
    (tmp_path / "serve.py").write_text(SERVE6)
    server = f"exec '{sys.executable}' serve.py"
    options = ("--rate", rate, "--delay", "5ms", "--server", server, "--wait-port", 80, "--json")
    done = cli("shell", *options, *python(IPV6))
    assert done.stdout.split()[0] == "fd77::a4d:2"
    assert done.stdout.split()[-1] == "3000000"
    report = reported(done.stderr)
    # IPv6 packets of 1500 bytes, and nothing but the connection.
    assert report["reverse"]["delivered_bytes"] > 3_000_000 * 1500 / 1440
    assert report["reverse"]["delivered_bytes"] < 3_300_000


def test_idle_hosts_send_nothing(cli: Cli) -> None:
    report = reported(cli("shell", "--json", "--", "sleep", "2").stderr)
    assert (report["forward"]["packets"], report["reverse"]["packets"]) == (0, 0)


PINGER = """
import os, socket, struct, sys, time
ping = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM, socket.IPPROTO_ICMPV6)
ping.settimeout(10)
if len(sys.argv) > 2:
    ping.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, int(sys.argv[2]))
    ping.setsockopt(socket.IPPROTO_IPV6, 25, 1)  # IPV6_RECVERR
target = socket.getaddrinfo(sys.argv[1], 0, socket.AF_INET6)[0][4][0]
start = time.monotonic()
ping.sendto(struct.pack("!BBHHH", 128, 0, 0, 0, 7), (target, 0))
try:
    print(ping.recv(100)[0], time.monotonic() - start >= 0.02)
except OSError as error:
    time.sleep(0.1)
    _, control, _, _ = ping.recvmsg(100, 1000, 0x2000)  # MSG_ERRQUEUE
    kind, code = control[0][2][5], control[0][2][6]
    print(kind, code, socket.inet_ntop(socket.AF_INET6, control[0][2][24:40]))
"""


def test_routers_answer_pings_and_report_expiry_over_ipv6(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "model.toml").write_text(
        "[path]\nhops = [{ delay = '10ms' }, { delay = '10ms' }, { delay = '1ms' }]"
    )
    (tmp_path / "ping.py").write_text(PINGER)
    run = f"'{sys.executable}' ping.py"
    line = f"{run} receiver; {run} r1; {run} receiver 2"
    done = cli("shell", "--path", tmp_path / "model.toml", "--", "sh", "-c", line)
    assert done.stdout.splitlines() == ["129 True", "129 True", "3 0 fd77::a4d:fc02"]


WITH_TUN = """
mount -t tmpfs -o mode=755 none /dev/net && mknod -m 666 /dev/net/tun c 10 200 || exit
exec "$@"
"""
AS_NOBODY = """
import ctypes, os, sys
from longfat import _native
os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE: like a process that was started by the user
print(_native.shell('{"delay": "5ms"}', ["sh", "-c", sys.argv[1]]))
"""


def test_programs_keep_the_user_of_an_unprivileged_process() -> None:
    if os.geteuid() != 0:
        requirements.skip("users", "only root becomes another user")
    probe = subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False)
    if probe.returncode != 0:
        requirements.skip("users", f"root makes no mount namespace: {probe.stderr!r}")
    # Programs have the user's number, and control their host.
    look = "id -u; id -g; ip link set lo mtu 1400 && ip link show lo | grep -o 'mtu [0-9]*'; exit 7"
    inner = [sys.executable, "-P", "-c", AS_NOBODY, look]
    line = ["unshare", "--mount", "sh", "-c", WITH_TUN, "sh", *inner]
    done = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE_S, check=False, cwd="/")
    *printed, report = done.stdout.splitlines() or [done.stderr]
    assert printed == ["65534", "65534", "mtu 1400"], done.stderr
    assert json.loads(report)["code"] == 7
