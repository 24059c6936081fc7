"""`longfat shell`: a command behind a path between real kernels; skipped without namespaces."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Refused, Start
from tests.cli.terminal import Sleep, Terminal
from tests.conftest import Cli, command
from tests.waiting import PATIENCE_S, wait_until

from longfat import _native

# Sends datagrams to a closed UDP port of the far end, which replies with ICMP errors. Prints RTTs in ms.
PROBE = """
import os, socket, sys, time
probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
probe.settimeout(5)
probe.connect((os.environ["LONGFAT_PEER"], 9))
for _ in range(int(sys.argv[1])):
    start = time.monotonic()
    probe.send(bytes(972))
    try:
        probe.recv(9)
    except ConnectionRefusedError:
        print((time.monotonic() - start) * 1e3)
"""
# Sends datagrams of 1000 bytes including headers to a closed port, and waits for the last.
SEND = """
import os, socket, sys, time
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for number in range(int(sys.argv[1])):
    sender.sendto(bytes(972), (os.environ["LONGFAT_PEER"], 9))
    if number % 20 == 19:
        time.sleep(0.01)
time.sleep(float(sys.argv[2]))
"""
SERVE = """
import socket
with socket.create_server(("", 80)) as server:
    while True:
        with server.accept()[0] as client:
            client.sendall(b"from the far end")
"""
FETCH = """
import os, socket, time
end = time.monotonic() + 60
while True:
    try:
        with socket.create_connection((os.environ["LONGFAT_PEER"], 80)) as client:
            print(client.makefile().read())
        break
    except ConnectionRefusedError:
        assert time.monotonic() < end
        time.sleep(0.02)
"""


@pytest.fixture
def cli(cli_process: Cli) -> Cli:
    """Runs commands in a separate process, because they take over signals and the terminal."""
    return cli_process


def python(program: str, *arguments: object) -> list[object]:
    return ["--", sys.executable, "-c", program, *arguments]


def reported(err: str) -> dict[str, Any]:
    """Returns the JSON document on the last line of standard error."""
    content = json.loads(err.splitlines()[-1])
    assert isinstance(content, dict)
    return content


@pytest.mark.usefixtures("emulated")
def test_a_command_runs_behind_the_requested_path(cli: Cli) -> None:
    done = cli("shell", "--rate", "8Mbit/s", "--delay", "20ms", "--json", *python(PROBE, 20))
    trips = [float(line) for line in done.stdout.split()]
    assert len(trips) == 20
    assert min(trips) >= 41  # 20 ms each way, and 1 ms to transmit 1000 B at 8 Mbit/s
    report = reported(done.stderr)
    assert (report["code"], report["seed"]) == (0, 1)
    assert report["seconds"] >= sum(trips) / 1e3
    keys = {"rate": "8Mbit/s", "delay": "20ms"}
    assert report["path"] == {"forward": keys, "reverse": keys}
    for side in ("forward", "reverse"):
        link = report[side]
        assert (link["packets"], link["delivered"], link["lost"]) == (20, 20, 0)
        assert link["rate_bps"] == pytest.approx(8e6, rel=0.01)
    assert report["forward"]["delivered_bytes"] == 20_000
    assert 0.021 <= report["forward"]["delay_p50_s"] <= report["forward"]["delay_p99_s"]


@pytest.mark.usefixtures("emulated")
def test_the_table_has_requested_and_measured_values(cli: Cli) -> None:
    options = ("--preset", "dsl", "--loss", "10%", "--set", "reverse.loss=0%", "--seed", 4)
    done = cli("shell", *options, *python(SEND, 1000, 1))
    assert done.stdout == ""
    rows = {line[:26].strip(): line[26:].split() for line in done.stderr.splitlines()}
    # 100 ± four standard deviations of 9.5 packets.
    lost = int(rows["losses (packets)"][0])
    assert 62 <= lost <= 138
    assert rows["loss"] == [f"{lost / 10:.2f}", "%", "10%", "0.00", "%", "0%"]
    assert rows["entered (packets)"][0] == "1,000"
    assert rows["delivered (packets)"][0] == str(1000 - lost - int(rows["drops (packets)"][0]))
    # The command runs at the subscriber's end: forward is the upload.
    assert rows["rate while sending"][:3] == ["1.00", "Mbit/s", "1Mbit/s"]
    assert rows["rate while sending"][-1] == "16Mbit/s"
    assert rows["queue, maximum (packets)"][1::2] == ["64KiB", "100pkt"]
    assert rows["delay, median"][2] == "15ms"
    assert "duplicated (packets)" not in rows
    again = cli("shell", *options, "--json", *python(SEND, 1000, 1))
    assert reported(again.stderr)["forward"]["lost"] == lost  # the same seed


@pytest.mark.usefixtures("emulated")
def test_rows_of_rare_events_appear_only_if_requested(cli: Cli) -> None:
    done = cli("shell", "--duplicate", "50%", "--mtu", "500B", *python(SEND, 100, 1))
    rows = {line[:26].strip(): line[26:].split() for line in done.stderr.splitlines()}
    # Linux ignores MTUs below 552 bytes: it sends fragments of that size, which are fragmented again and
    # arrive. The ICMP errors of the far end exceed the MTU, too.
    assert rows["above the MTU (packets)"][:2] == ["100", "500B"]
    assert rows["above the MTU (packets)"][3] == "500B"
    assert rows["duplicated (packets)"][1::2] == ["50%", "50%"]
    assert "corrupted (packets)" not in rows


@pytest.mark.usefixtures("emulated")
def test_packets_dropped_by_a_host_are_reported(cli: Cli, tmp_path: Path) -> None:
    # The receive buffer of the server holds a few hundred datagrams, which it never reads.
    (tmp_path / "never_reads.py").write_text(
        "import os, socket, time\n"
        "socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "socket.bind(('0.0.0.0', 9))\n"
        "open('ready', 'w').close()\n"
        "time.sleep(1000)\n"
    )
    flood = (
        "import os, socket, time\n"
        "while not os.path.exists('ready'): time.sleep(0.01)\n"
        "sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "for number in range(5000):\n"
        "    sender.sendto(bytes(1000), (os.environ['LONGFAT_PEER'], 9))\n"
        "time.sleep(0.5)\n"
    )
    server = f"exec '{sys.executable}' never_reads.py"
    done = cli("shell", "--server", server, "--json", *python(flood))
    report = reported(done.stderr)
    forward, reverse = report["forward"], report["reverse"]
    assert (forward["packets"], forward["lost"], reverse["host_dropped"]) == (5000, 0, 0)
    assert 3000 < forward["host_dropped"] < 5000
    (tmp_path / "ready").unlink()
    done = cli("shell", "--server", server, *python(flood))
    rows = {line[:26].strip(): line[26:].split() for line in done.stderr.splitlines()}
    assert rows["loss"][0] == "0.00"
    assert 3000 < int(rows["host drops (packets)"][0].replace(",", "")) < 5000
    assert "of 5,000 packets outside of the links" in done.stderr


@pytest.mark.usefixtures("emulated")
def test_a_server_runs_at_the_far_end(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "serve.py").write_text(SERVE)
    server = f"echo serving; exec '{sys.executable}' serve.py"
    done = cli("shell", "--delay", "5ms", "--server", server, "--json", *python(FETCH))
    assert done.stdout == "from the far end\n"
    assert done.stderr.splitlines()[0] == "serving"
    assert reported(done.stderr)["reverse"]["delivered_bytes"] > len("from the far end")


@pytest.mark.usefixtures("emulated")
def test_a_server_that_fails_is_named(cli: Cli) -> None:
    wait = "until grep -qs '^State:.Z' /proc/$(cat pid)/status; do sleep 0.05; done"
    command_line = ("--", "sh", "-c", f"until test -s pid; do sleep 0.05; done; {wait}; echo ran")
    done = cli("shell", "--server", "echo $$ > pid; exit 3", "--json", *command_line)
    assert done.stdout == "ran\n"
    assert "longfat: --server: exited with code 3 before the command: echo $$ > pid; exit 3" in done.stderr
    assert reported(done.stderr)["server_code"] == 3


@pytest.mark.usefixtures("emulated")
def test_delays_of_nested_shells_add_up(cli: Cli) -> None:
    inner = command("shell", "--delay", "10ms", "--json", *python(PROBE, 5))
    done = cli("shell", "--delay", "20ms", "--json", "--", *inner)
    assert min(float(line) for line in done.stdout.split()) >= 60
    reports = [json.loads(line) for line in done.stderr.splitlines()]
    assert [report["path"]["forward"]["delay"] for report in reports] == ["10ms", "20ms"]
    assert [report["forward"]["delivered"] for report in reports] == [5, 5]


@pytest.mark.usefixtures("emulated")
def test_nothing_outside_is_reached(cli: Cli) -> None:
    program = """
import socket
outside = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
outside.settimeout(0.5)
outside.connect(("192.0.2.1", 9))
try:
    outside.send(b"?")
    outside.recv(9)
except OSError as error:
    print(type(error).__name__)
print(*sorted(name for _, name in socket.if_nameindex()))
"""
    done = cli("shell", *python(program))
    assert done.stdout.splitlines()[1] == "lo longfat0"


@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize(("line", "code"), [("exit 7", 7), ("kill -KILL $$", 137), ("true", 0)])
def test_the_exit_code_is_that_of_the_command(line: str, code: int, cli: Cli) -> None:
    assert cli("shell", "sh", "-c", line, ok=False).returncode == code


@pytest.mark.usefixtures("emulated")
def test_ctrl_c_stops_the_command_and_prints_the_report(start: Start) -> None:
    # Both processes receive SIGINT, as at a terminal.
    running = start("shell", "--json", "--", "sh", "-c", "echo up >&2; exec sleep 60", prepare=os.setpgrp)
    running.wait_for("up")
    os.killpg(running.process.pid, signal.SIGINT)
    assert running.finish() == 128 + signal.SIGINT
    assert reported(running.err)["code"] == 128 + signal.SIGINT


@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_processes_behind_the_path_end_with_longfat(number: int, start: Start) -> None:
    long = Sleep()
    running = start("shell", "--json", "--", "sh", "-c", f"{long} & {long}")
    long.wait()
    if number == signal.SIGKILL:
        assert running.finish(number) == -number
    else:
        assert running.finish(number) == 128 + number
        assert reported(running.err)["code"] == 128 + number
    wait_until(lambda: not long.runs())


@pytest.mark.usefixtures("emulated")
def test_without_a_command_the_users_shell_runs(tmp_path: Path) -> None:
    with contextlib.closing(Terminal("shell", "--delay", "1ms", folder=tmp_path)) as terminal:
        assert "the far end is $LONGFAT_PEER" in terminal.read_until("> ")
        terminal.type("echo at $LONGFAT_PEER\n")
        terminal.read_until("at 10.77.0.2")
        # Ctrl-C stops the shell's command, not the shell.
        long = Sleep()
        terminal.type(f"{long}\n")
        long.wait()
        terminal.type("\x03")
        terminal.type("exit 5\n")
        assert "1ms" in terminal.read_until("host drops (packets)")
        assert terminal.end() == 5


@pytest.mark.usefixtures("emulated")
def test_a_missing_command_exits_with_127(refused: Refused) -> None:
    refused(["shell", "/no/such/command"], 127, ["/no/such/command: no such command"])


@pytest.mark.usefixtures("emulated")
def test_a_path_model_has_all_its_hops(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "model.toml"
    hops = "hops = [{ delay = '5ms' }, { delay = '20ms' }, { rate = '8Mbit/s' }]"
    file.write_text(f"[measured]\nhost = 'example.net'\n[path]\n{hops}")
    code = "import socket; print(socket.gethostbyname('r1'), socket.gethostbyname('r2'))"
    done = cli("shell", "--path", file, "--set", "hops.1.loss=0%", "--json", *python(code))
    assert done.stdout.split() == ["10.77.252.1", "10.77.252.2"]
    report = reported(done.stderr)
    assert report["path"]["forward"] == {"rate": "8Mbit/s", "delay": "25ms"}
    assert [hop["reverse"].get("delay") for hop in report["path"]["hops"]] == ["5ms", "20ms", None]
    assert len(report["hops"]) == 3


def test_path_options_with_a_model_of_hops_are_refused(refused: Refused, tmp_path: Path) -> None:
    file = tmp_path / "model.toml"
    file.write_text("[path]\nhops = [{ delay = '5ms' }]")
    options = ["--path", str(file), "--rate", "1Mbit/s"]
    refused(
        ["shell", *options, "true"],
        2,
        ["--rate: cannot be set next to hops: set it for each link, e.g. path.hops.1.rate"],
    )


def test_every_key_of_a_path_is_an_option_here_too(cli: Cli) -> None:
    text = cli("shell", "--help").stdout
    keys = json.loads(_native.vocabulary())["path"]["properties"]
    assert all(f"--{key.replace('_', '-')} " in text for key in keys if key not in ("reverse", "hops"))


@pytest.mark.parametrize(
    ("options", "reported"),
    [
        (["--rate", "10"], ['--rate: "10" has no unit']),
        (["--loss", "200%"], ['--loss: "200%" is out of range: 0% to 100%']),
        (["--preset", "lann"], ['--preset: "lann" is not known: did you mean "lan"?']),
        (["--trace", "missing"], ['trace: "missing": No such file']),
        (["--set", "reverse.los=2%"], ["--set: reverse.los: unknown key"]),
        (["--seed", "-1"], ["--seed"]),
    ],
)
def test_invalid_arguments_are_refused(options: list[str], reported: list[str], refused: Refused) -> None:
    refused(["shell", *options, "true"], 2, reported)


@pytest.mark.usefixtures("emulated")
def test_a_command_that_cannot_start_has_the_exit_code_of_shells(cli: Cli) -> None:
    for program, code, why in (
        ("nosuchcommand", 127, "no such command"),
        ("/etc/passwd", 126, "permission denied"),
    ):
        done = cli("shell", "--", program, ok=False)
        assert (done.returncode, done.stdout) == (code, "")
        assert done.stderr == f"longfat: {program}: {why}\n"


@pytest.mark.usefixtures("emulated")
def test_sigterm_stops_the_command_and_prints_the_report(start: Start) -> None:
    running = start("shell", "--delay", "5ms", "--json", "--", "sh", "-c", "echo up >&2; exec sleep 100")
    running.wait_for("up")
    running.process.terminate()
    assert running.process.wait(PATIENCE_S) == 128 + signal.SIGTERM
    assert reported(running.err)["code"] == 128 + signal.SIGTERM


@pytest.mark.usefixtures("emulated")
def test_the_kernels_default_controller_is_named(cli: Cli) -> None:
    default = Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text(encoding="utf-8").strip()
    done = cli("shell", "--json", "--", "cat", "/proc/sys/net/ipv4/tcp_congestion_control")
    assert done.stdout.strip() == default
    named = reported(done.stderr)["kernel_controller"]
    assert named == default + " (version 1)" * (default == "bbr")
    assert f"Default congestion controller of the kernel: {named}" in cli("shell", "--", "true").stderr
    own = cli("shell", "--json", "--stack", "both", "--", "true")
    assert reported(own.stderr)["kernel_controller"] is None


@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize("stack", ["here", "there", "both"])
def test_longfats_tcp_carries_data_of_programs(cli: Cli, tmp_path: Path, stack: str) -> None:
    (tmp_path / "file").write_bytes(bytes(range(256)) * 2000)
    server = f"{sys.executable} -m http.server -d {tmp_path} 8000"
    options = ["--rate", "50Mbit/s", "--delay", "5ms", "--loss", "1%", "--server", server]
    fetch = (
        "import os, time, urllib.request, sys\n"
        "for _ in range(600):\n"
        "    try:\n"
        "        url = f'http://{os.environ[\"LONGFAT_PEER\"]}:8000/file'\n"
        "        sys.stdout.write(str(urllib.request.urlopen(url).read() == bytes(range(256)) * 2000))\n"
        "        break\n"
        "    except OSError:\n"
        "        time.sleep(0.1)\n"
    )
    done = cli("shell", *options, "--stack", stack, "--tcp", "congestion=vegas", *python(fetch))
    assert done.stdout == "True"


@pytest.mark.parametrize(
    ("options", "reported"),
    [
        (["--tcp", "congestion=bbr"], ["--tcp requires --stack"]),
        (
            ["--stack", "here", "--tcp", "congestoin=bbr"],
            ['--tcp: congestoin: unknown key: did you mean "congestion"?'],
        ),
        (["--stack", "here", "--tcp", "stack=kernel"], ["--tcp: stack: "]),
        (["--stack", "here", "--tcp", "ttcp=true"], ["--tcp: ttcp: unavailable, because programs connect"]),
    ],
)
def test_invalid_options_of_longfats_tcp_are_refused(
    options: list[str], reported: list[str], refused: Refused
) -> None:
    refused(["shell", *options, "true"], 2, reported)
